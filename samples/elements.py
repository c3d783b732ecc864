"""The elements of a sample document in reading order. `samples.pdf_writer` lays them out."""

from collections.abc import Callable
from dataclasses import dataclass

from fpdf import FPDF
from PIL import Image


@dataclass(frozen=True)
class Heading:
    """A heading, which also becomes a bookmark. In documents with a title page, level 1 starts a new page."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of running text. The writer breaks it into lines."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of items, each of which may take several lines."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table with ruling lines. The first row is the header."""

    caption: str
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]


@dataclass(frozen=True)
class Picture:
    """A raster picture that replaces a photograph. `draw` returns the image."""

    caption: str
    draw: Callable[[], Image.Image]
    width_mm: float = 110


@dataclass(frozen=True)
class Drawing:
    """A vector drawing. `draw(pdf, left, top)` draws its lines and shapes."""

    caption: str
    draw: Callable[[FPDF, float, float], None]
    height_mm: float


Element = Heading | Paragraph | Bullets | Table | Picture | Drawing


@dataclass(frozen=True)
class Document:
    """A sample document, which is written as a PDF.

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
