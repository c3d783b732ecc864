"""What stands on a PDF page, as plain values. `pdfium_page` reads them; the rules above work on them alone.

Coordinates are those of the page as it is read, in points: turned so that most of its text is upright.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from shared.ingestion.parsers.pdf_geometry import Region

HYPHEN_MARK = "\ufffe"  # what PDFium writes for a hyphen at the end of a line
TICKED, UNTICKED = "[x]", "[ ]"  # as in Word documents


class Word(NamedTuple):
    """Letters between two blanks, and their bounds. A tuple: a page has a thousand."""

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
    """Words that follow each other on one line of the page's content.

    Attributes:
        size: font size of the middle letter, as drawn: the first may be a large number or bullet, the last a
            small footnote mark.
        is_bold: first and middle letter are; a bold word at the begin of a paragraph does not count.
        quarters: clockwise turns of 90 degrees that make its letters upright, 0 to 3.
    """

    words: tuple[Word, ...]
    size: float
    is_bold: bool
    quarters: int = 0


class Edge(NamedTuple):
    """A straight line along an axis, part of a path."""

    left: float
    bottom: float
    right: float
    top: float


class Drawn(NamedTuple):
    """A path, picture or shading.

    Attributes:
        region: visible bounds; None for what leaves nothing to see on white paper.
        segment_count: lines and curves of a path; 1 for others.
        edges: of a path, those that may be ruling lines; white ones too, tables are drawn with them.
        is_pale: filled with a light colour, as the ground of text.
    """

    kind: Literal["path", "picture", "shading"]
    region: Region | None
    segment_count: int = 1
    edges: tuple[Edge, ...] = ()
    is_pale: bool = False


class TaggedHeading(NamedTuple):
    """The bounds of a heading's text, or of a part of it, and its level (1-6)."""

    box: Region
    level: int


FieldKind = Literal["value", "tick", "note"]


class FormField(NamedTuple):
    """A filled field or a typed note.

    Attributes:
        name: what the field is called, empty where only a program would call it so.
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
    """A page as it was read.

    Attributes:
        region: its visible part; the lower left corner is the origin.
        lines: in the order of the content.
        drawn: in the order of the content; those within forms among them.
        has_objects: whether the page holds anything, be it letters that say nothing.
        quarters: clockwise turns of 90 degrees from the page as a viewer shows it to the page as it is read.
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
