"""Splits a document's elements into parts, which views load one at a time. Pure.

A view loads the outline and the parts that it shows, so its cost doesn't depend on the document's length.
"""

from bisect import bisect_right
from collections.abc import Sequence

from pydantic import TypeAdapter

from shared.documents.models import Element
from shared.documents.page_models import Outline, Part
from shared.evidence.models import Citation

PART_CHARS = 20_000  # about ten printed pages, which load at once (unmeasured)
PART_PIECES = 1000  # an element needs about 1 KB of memory even if it is short
OUTLINE_FILE, PARTS_FILE = "outline.json", "reading.json"
_ELEMENTS = TypeAdapter(tuple[Element, ...])


def part_starts(elements: Sequence[Element]) -> list[int]:
    """Return the index of each part's first element; the first is 0.

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
    """Return the outline of a document, and its parts as concatenated JSON."""
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
    """Parse the elements of one part. Raise ValueError if its content is damaged."""
    return _ELEMENTS.validate_json(content)


def part_with(outline: Outline, index: int) -> int:
    """Return the index of the part with an element; the last part if the element is beyond the end."""
    return bisect_right(outline.parts, index, key=lambda part: part.start) - 1


def parts_of_page(outline: Outline, page_number: int) -> range:
    """Return the range of parts with elements of a page; empty for a page without text."""
    holding = [
        number
        for number, part in enumerate(outline.parts)
        if part.pages is not None and part.pages[0] <= page_number <= part.pages[1]
    ]
    return range(holding[0], holding[-1] + 1) if holding else range(0)


def part_from_page(outline: Outline, page_number: int) -> int:
    """Return the part where a page starts, or the next part with text; 0 without any."""
    later = (at for at, part in enumerate(outline.parts) if part.pages and part.pages[1] >= page_number)
    return next(later, 0)


def part_at_moment(outline: Outline, seconds: float) -> int:
    """Return the part that contains a moment of a recording; 0 if the outline has no timestamps."""
    started = [
        number
        for number, part in enumerate(outline.parts)
        if part.first_moment is not None and part.first_moment <= seconds
    ]
    return started[-1] if started else 0


def parts_to_search(outline: Outline, citation: Citation) -> range:
    """Return the range of parts that can contain a citation's passage."""
    if citation.page_number is not None:
        return parts_of_page(outline, citation.page_number)
    if citation.start_seconds is not None:
        return range(part_at_moment(outline, citation.start_seconds), len(outline.parts))
    return range(len(outline.parts))
