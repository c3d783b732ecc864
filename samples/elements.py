"""Elements of a sample document in reading order; pdf_writer lays them out."""

from collections.abc import Callable
from dataclasses import dataclass

from fpdf import FPDF
from PIL import Image


@dataclass(frozen=True)
class Heading:
    """A heading, which becomes a bookmark. Level 1 starts a new page in documents with a title page."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Running text; line breaks are the writer's."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list, one line or more per item."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Ruled table; the first row is the header."""

    caption: str
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]


@dataclass(frozen=True)
class Picture:
    """A raster picture, as a photograph would be; `draw` makes it."""

    caption: str
    draw: Callable[[], Image.Image]
    width_mm: float = 110


@dataclass(frozen=True)
class Drawing:
    """A vector drawing: `draw(pdf, left, top)` uses lines and shapes, no pixels."""

    caption: str
    draw: Callable[[FPDF, float, float], None]
    height_mm: float


Element = Heading | Paragraph | Bullets | Table | Picture | Drawing


@dataclass(frozen=True)
class Document:
    """A PDF document.

    Attributes:
        details: lines of the title page, such as author, date and number.
        language: ISO 639-1, written into the file.
        title_page: whether title and details are on a page of their own.
    """

    title: str
    author: str
    date: str
    details: tuple[str, ...]
    elements: tuple[Element, ...]
    language: str = "en"
    title_page: bool = True
