"""How a document is cut for reading: by its pages, or into parts that load at once. Pure."""

import re
from collections.abc import Sequence

from shared.errors import CallerError, NotFoundError
from shared.models.blocks import Element

PART_CHARS = 20_000  # some ten printed pages: a screen that loads at once (unmeasured)
_NUMBER = re.compile(r"[0-9]{1,7}", re.ASCII)


def page_number_of(text: str) -> int:
    """The number in an address.

    Raises:
        NotFoundError: no page is called so.
    """
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise NotFoundError(f"There is no page {text[:20]!r}.", "Pages are counted from 1.")
    return int(text)


def has_pages(elements: Sequence[Element]) -> bool:
    """Whether the format has pages, slides or sheets of its own."""
    return any(element.page_number is not None for element in elements)


def page_of(elements: Sequence[Element], page_number: int) -> tuple[Element, ...]:
    """The pieces of one page."""
    return tuple(element for element in elements if element.page_number == page_number)


def part_starts(elements: Sequence[Element]) -> list[int]:
    """Where each part begins; the first at 0.

    A part ends before a page or a heading once it is half full, and between any two pieces when it is full.
    """
    starts = [0]
    size = 0
    last_page: int | None = None
    for index, element in enumerate(elements):
        length = len(element.text)
        is_border = element.kind == "heading" or element.page_number != last_page
        is_full = size + length > PART_CHARS or (is_border and size > PART_CHARS / 2)
        if is_full and index > starts[-1]:
            starts.append(index)
            size = 0
        size += length
        last_page = element.page_number
    return starts


def part_at(starts: Sequence[int], cursor: str) -> int:
    """The part that a cursor leads to: the one that holds the piece that it names.

    Raises:
        CallerError: it is none of ours.
    """
    if not cursor:
        return 0
    if not _NUMBER.fullmatch(cursor):
        raise CallerError("The cursor is not one of this list.", "Send the cursor of the answer before.")
    return max(part for part, start in enumerate(starts) if start <= int(cursor))


def element_at(elements: Sequence[Element], seconds: float) -> int:
    """The piece that is being said at a moment of a recording; 0 where there are no moments."""
    found = 0
    for index, element in enumerate(elements):
        if element.start_seconds is not None and element.start_seconds <= seconds:
            found = index
    return found
