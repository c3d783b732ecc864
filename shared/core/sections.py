"""Sections: runs of elements that may share blocks. Pure.

A section ends where the page, the moment of a recording, or a heading of level 1 or 2 begins, and at a deeper
heading once it is long enough to stand alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.models.blocks import Element

_CLOSED_LEVEL = 2
_PATH_SEPARATOR = " > "


@dataclass
class Section:
    """Elements in order. `path` holds the headings that all of them stand under, outermost first."""

    path: tuple[str, ...]
    page_number: int | None
    start_seconds: float | None
    elements: list[Element] = field(default_factory=list)

    @property
    def size_chars(self) -> int:
        return sum(len(element.text) for element in self.elements)

    @property
    def has_body(self) -> bool:
        """Whether there is anything but headings."""
        return any(element.kind != "heading" for element in self.elements)


def split_sections(elements: Sequence[Element], enough_chars: int) -> Iterator[Section]:
    """The sections of a document, in order; no element is left out.

    Args:
        enough_chars: from this size on a section ends at any heading, not only at a high one.
    """
    outline = Outline()
    current: Section | None = None
    for element in elements:
        path = outline.enter(element)
        if current is not None and _ends_before(current, element, enough_chars):
            yield current
            current = None
        if current is None:
            current = Section(path, element.page_number, element.start_seconds)
        elif element.kind == "heading":
            current.path = _shared(current.path, path) if current.has_body else path
        current.elements.append(element)
    if current is not None:
        yield current


def path_text(path: Sequence[str]) -> str:
    """ "3 Safety > 3.2 Valves"."""
    return _PATH_SEPARATOR.join(path)


def heading_line(text: str) -> str:
    """A heading on one line."""
    return " ".join(text.split())


class Outline:
    """The headings that are open at a point of the document."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, element: Element) -> tuple[str, ...]:
        """The path at `element`, itself included if it is a heading."""
        if element.kind == "heading":
            level = element.level or 1
            line = heading_line(element.text)
            self._open = [known for known in self._open if known[0] < level]
            # A title page's title comes again on the next page: "Report > Report" says nothing more.
            if not self._open or self._open[-1][1] != line:
                self._open.append((level, line))
        return tuple(text for _, text in self._open)


def _ends_before(section: Section, element: Element, enough_chars: int) -> bool:
    if (element.page_number, element.start_seconds) != (section.page_number, section.start_seconds):
        return True
    # Headings without text beneath them, such as a title page's, go with what follows them.
    if element.kind != "heading" or not section.has_body:
        return False
    return (element.level or 1) <= _CLOSED_LEVEL or section.size_chars >= enough_chars


def _shared(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return tuple(first[:length])
