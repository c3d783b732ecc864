"""Parser for PowerPoint files (.pptx): each slide becomes a page, and its title a heading.

Shapes are read from top to bottom, then from left to right.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pptx import Presentation
from pptx.exc import PythonPptxError
from pptx.presentation import Presentation as Slides

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.office import (
    PART_ERRORS,
    POWERPOINT,
    drawn_elements,
    open_office,
    title_and_author,
)
from shared.ingestion.parsers.tables import Repeats, merged_table_elements

# Number of horizontal bands per slide. Shapes whose top edges are in the same band form a row.
_BANDS = 20
_BULLETED = frozenset(("BODY", "OBJECT", "VERTICAL_BODY", "VERTICAL_OBJECT"))
_FURNITURE = frozenset(("DATE", "FOOTER", "SLIDE_NUMBER", "HEADER"))


def parse_pptx(path: Path, context: ParseContext | None = None) -> ParsedDocument:
    """Parse the titles, texts, lists, tables, chart data, pictures and speaker notes of a presentation.

    Raises:
        BadDocumentError: the file is not a presentation, encrypted, damaged, or a decompression bomb.
    """
    with open_office(path, POWERPOINT, Presentation) as (presentation, warnings):
        notes = list(warnings)
        elements = _elements(presentation, notes, context or ParseContext())
        title, author = title_and_author(presentation)
        return ParsedDocument(
            elements=tuple(elements),
            page_count=len(presentation.slides),
            title=title,
            author=author,
            warnings=tuple(notes),
        )


def _elements(presentation: Slides, notes: list[str], context: ParseContext) -> list[Element]:
    """Return the elements of all slides. Warnings about skipped slides are appended to `notes`."""
    elements: list[Element] = []
    band = max(int(presentation.slide_height or 0) // _BANDS, 1)
    for number, slide in enumerate(presentation.slides, start=1):
        if slide.element.get("show") in ("0", "false"):
            notes.append(f"Slide {number} is hidden and was left out.")
            continue
        try:
            elements.extend(list(_Slide(slide, number, band, context).elements()))
        except (*PART_ERRORS, PythonPptxError):
            notes.append(f"Slide {number} could not be read and was left out.")
    return elements


@dataclass(frozen=True)
class _Slide:
    """Reader for one slide. Shapes whose top edges are in the same band of height `band` form a row."""

    slide: Any
    number: int
    band: int
    context: ParseContext

    def elements(self) -> Iterator[Element]:
        title = self.slide.shapes.title
        if title is not None and (text := " ".join(title.text_frame.text.split())):
            yield Element(kind="heading", text=text, page_number=self.number, level=1)
        title_id = title.shape_id if title is not None else None
        others = (shape for shape in self.slide.shapes if shape.shape_id != title_id)
        for shape in self._in_reading_order(others):
            yield from self._shape(shape)
        yield from self._notes()

    def _in_reading_order(self, shapes: Iterable[Any]) -> list[Any]:
        return sorted(shapes, key=lambda shape: (int(shape.top or 0) // self.band, int(shape.left or 0)))

    def _shape(self, shape: Any) -> Iterator[Element]:
        if _placeholder(shape) in _FURNITURE:
            return
        if shape.shape_type is not None and shape.shape_type.name == "GROUP":
            for member in self._in_reading_order(shape.shapes):
                yield from self._shape(member)
        elif getattr(shape, "has_table", False):
            yield from merged_table_elements(_rows(shape.table), self.number)
        elif shape.has_text_frame:
            yield from self._texts(shape)
        # Skip groups, because each member of a group is visited separately.
        if not hasattr(shape, "shapes"):
            yield from drawn_elements(shape.element, self.slide.part, self.context, self.number)

    def _texts(self, shape: Any) -> Iterator[Element]:
        """Yield a list item for each paragraph of a body placeholder, and a single paragraph for any other
        shape.
        """
        paragraphs = [
            (text, paragraph.level)
            for paragraph in shape.text_frame.paragraphs
            if (text := " ".join(paragraph.text.split()))
        ]
        if _placeholder(shape) in _BULLETED and len(paragraphs) > 1:
            for text, level in paragraphs:
                yield Element(kind="list_item", text=f"{'  ' * level}- {text}", page_number=self.number)
        elif paragraphs:
            lines = "\n".join(text for text, _ in paragraphs)
            yield Element(kind="paragraph", text=lines, page_number=self.number)

    def _notes(self) -> Iterator[Element]:
        frame = self.slide.notes_slide.notes_text_frame if self.slide.has_notes_slide else None
        lines = (
            " ".join(paragraph.text.split()) for paragraph in (frame.paragraphs if frame is not None else ())
        )
        if text := "\n".join(filter(None, lines)):
            yield Element(kind="paragraph", text=f"Notes: {text}", page_number=self.number)


def _placeholder(shape: Any) -> str | None:
    """Return the name of the shape's placeholder type, or None if it is not a placeholder."""
    if not shape.is_placeholder:
        return None
    kind = shape.placeholder_format.type
    return kind.name if kind is not None else None


def _rows(table: Any) -> Iterator[list[str]]:
    """Yield the cell texts of each row. The text of a merged cell is repeated in every position that it
    covers.
    """
    repeats = Repeats()
    spanning: dict[tuple[int, int], str] = {}
    for row_number, row in enumerate(table.rows):
        cells = []
        for column, cell in enumerate(row.cells):
            text = spanning.pop((row_number, column), cell.text_frame.text)
            if cell.is_merge_origin:
                repeats.count(text, cell.span_height * cell.span_width)
                for down in range(cell.span_height):
                    for right in range(cell.span_width):
                        spanning[row_number + down, column + right] = text
            cells.append(text)
        yield cells
