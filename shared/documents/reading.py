"""Format of stored reading views. The elements of a document are divided into parts, so that a view loads
only the parts that it shows.

A view loads the outline and the parts that it shows, so its cost doesn't depend on the document's length.
"""

from bisect import bisect_right
from collections.abc import Sequence

from pydantic import TypeAdapter

from shared.documents.models import Element
from shared.documents.page_models import Outline, Part
from shared.evidence.models import Citation

# Maximum length of a part, which is loaded as a whole: about ten printed pages (unmeasured).
PART_CHARS = 20_000
# Maximum number of elements per part, because even a short element needs about 1 KB of memory.
PART_PIECES = 1000
OUTLINE_FILE, PARTS_FILE = "outline.json", "reading.json"
_ELEMENTS = TypeAdapter(tuple[Element, ...])


def part_starts(elements: Sequence[Element]) -> list[int]:
    """Return the index of the first element of each part. The first index is always 0.

    A part ends before a page or heading if it is at least half full, and before any element once it is full.
    """
    starts = [0]
    size = 0
    last_page: int | None = None
    for index, element in enumerate(elements):
        length = len(element.text)
        is_border = element.kind == "heading" or element.page_number != last_page
        is_full = size + length > PART_CHARS or (is_border and size > PART_CHARS / 2)
        if index > starts[-1] and (is_full or index - starts[-1] >= PART_PIECES):
            starts.append(index)
            size = 0
        size += length
        last_page = element.page_number
    return starts


def encode(elements: Sequence[Element], page_count: int | None) -> tuple[Outline, bytes]:
    """Split the elements of a document into parts. Return the outline and the parts as concatenated JSON."""
    starts = part_starts(elements)
    parts, content = [], bytearray()
    for start, end in zip(starts, [*starts[1:], len(elements)], strict=True):
        pieces = tuple(elements[start:end])
        encoded = _ELEMENTS.dump_json(pieces)
        pages = [one.page_number for one in pieces if one.page_number is not None]
        moments = [one.start_seconds for one in pieces if one.start_seconds is not None]
        part = Part(
            start=start,
            first_byte=len(content),
            size_bytes=len(encoded),
            pages=(min(pages), max(pages)) if pages else None,
            first_moment=moments[0] if moments else None,
        )
        parts.append(part)
        content += encoded
    return Outline(parts=tuple(parts), piece_count=len(elements), page_count=page_count), bytes(content)


def decode(content: bytes) -> tuple[Element, ...]:
    """Parse the JSON of one part. Raises `ValueError` if it is damaged."""
    return _ELEMENTS.validate_json(content)


def part_with(outline: Outline, index: int) -> int:
    """Return the index of the part that contains an element, or of the last part if the element index is too
    large.
    """
    return bisect_right(outline.parts, index, key=lambda part: part.start) - 1


def parts_of_page(outline: Outline, page_number: int) -> range:
    """Return the range of parts that contain elements of a page. The range is empty if the page has no
    text.
    """
    holding = [
        number
        for number, part in enumerate(outline.parts)
        if part.pages is not None and part.pages[0] <= page_number <= part.pages[1]
    ]
    return range(holding[0], holding[-1] + 1) if holding else range(0)


def part_from_page(outline: Outline, page_number: int) -> int:
    """Return the index of the part in which a page starts. If the page has no text, use the next page with
    text; if there is none, return 0.
    """
    later = (at for at, part in enumerate(outline.parts) if part.pages and part.pages[1] >= page_number)
    return next(later, 0)


def part_at_moment(outline: Outline, seconds: float) -> int:
    """Return the index of the part that contains a time in a recording, or 0 if the outline has no times."""
    started = [
        number
        for number, part in enumerate(outline.parts)
        if part.first_moment is not None and part.first_moment <= seconds
    ]
    return started[-1] if started else 0


def parts_to_search(outline: Outline, citation: Citation) -> range:
    """Return the range of parts that may contain the cited passage."""
    if citation.page_number is not None:
        return parts_of_page(outline, citation.page_number)
    if citation.start_seconds is not None:
        return range(part_at_moment(outline, citation.start_seconds), len(outline.parts))
    return range(len(outline.parts))
