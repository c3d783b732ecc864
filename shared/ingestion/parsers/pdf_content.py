"""Data types for the content of a PDF page.

`pdfium_page` creates them, and layout analysis uses nothing else. Coordinates are in points and refer to the
page in its reading orientation, in which most of the text is upright.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from shared.ingestion.parsers.pdf_geometry import Region

# PDFium replaces a hyphen at a line end with this character.
HYPHEN_MARK = "\ufffe"
# Marks of tick boxes, the same as for Word documents.
TICKED, UNTICKED = "[x]", "[ ]"


class Word(NamedTuple):
    """A sequence of letters without spaces, and its bounds. It is a tuple for speed, because a page has about
    a thousand words.
    """

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


class TextLine(NamedTuple):
    """Consecutive words on one line of a page, in content order.

    Attributes:
        size: rendered font size of the middle letter, because the first letter may be a large number or
            bullet, and the last one a small footnote mark.
        is_bold: whether the first and middle letters are bold, so that a bold word at the start of a
            paragraph isn't enough.
        quarters: clockwise quarter turns that make the letters upright, 0 to 3.
    """

    words: tuple[Word, ...]
    size: float
    is_bold: bool
    quarters: int = 0


class Rule(NamedTuple):
    """A straight horizontal or vertical line.

    Attributes:
        at: y coordinate of a horizontal line, x coordinate of a vertical one.
        start, end: extent along the other axis.
    """

    at: float
    start: float
    end: float
    is_vertical: bool = False


class Drawn(NamedTuple):
    """Bounds and properties of a path, picture or shading drawn on the page.

    Attributes:
        region: visible bounds; None if nothing is visible on white paper.
        segment_count: number of lines and curves in a path; 1 for other objects.
        rules: straight segments that may border table cells, including white ones, which some tables use.
        is_pale: whether the object is filled with a light colour, like a text background.
    """

    kind: Literal["path", "picture", "shading"]
    region: Region | None
    segment_count: int = 1
    rules: tuple[Rule, ...] = ()
    is_pale: bool = False


class TaggedHeading(NamedTuple):
    """Bounds and level (1-6) of a tagged heading, or of a part of one."""

    box: Region
    level: int


FieldKind = Literal["value", "tick", "note"]


class FormField(NamedTuple):
    """A filled form field, or a typed note.

    Attributes:
        name: label of the field; empty if it is a generated identifier.
    """

    text: str
    kind: FieldKind
    name: str
    box: Region

    @property
    def middle(self) -> float:
        return (self.box.bottom + self.box.top) / 2


@dataclass(frozen=True)
class PageContent:
    """Content of a page, rotated to the orientation in which it is read.

    Attributes:
        region: visible part of the page; its lower left corner is the origin.
        lines: text in content order.
        drawn: drawn objects in content order, including those in form objects.
        has_objects: whether the page has any objects, including meaningless letters.
        quarters: clockwise quarter turns from the viewer's orientation to the reading orientation.
    """

    region: Region
    lines: tuple[TextLine, ...]
    drawn: tuple[Drawn, ...]
    fields: tuple[FormField, ...]
    headings: tuple[TaggedHeading, ...]
    has_objects: bool
    quarters: int = 0

    @property
    def words(self) -> Iterator[Word]:
        return (word for line in self.lines for word in line.words)
