"""Word documents: the body in order. No pages: Word lays them out anew each time it opens the file.

Headers, footers and comments are left out; footnotes and endnotes follow the paragraph that refers to them,
and text boxes the paragraph that they are anchored in.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from shared.documents.models import Element, ElementKind, ParsedDocument
from shared.ingestion.parsers.context import Workbench, bare_workbench
from shared.ingestion.parsers.docx_text import (
    WORD,
    Numbering,
    Styles,
    boxed_blocks,
    note_references,
    paragraph_text,
)
from shared.ingestion.parsers.office import WORD as WORD_PACKAGE
from shared.ingestion.parsers.office import drawn_elements, open_office, picture_elements, title_and_author
from shared.ingestion.parsers.tables import markdown_table

if TYPE_CHECKING:
    from docx.document import Document

_TABLE, _PARAGRAPH = f"{WORD}tbl", f"{WORD}p"
_SKIPPED = frozenset(f"{WORD}{name}" for name in "del moveFrom sectPr sdtPr tblPr tblGrid".split())
_NOTES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}s"
_NUMBERING = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/numbering"
_MAX_SPAN = 100  # columns; a table wider than this is not laid out for people


def parse_docx(path: Path, bench: Workbench | None = None) -> ParsedDocument:
    """Headings by style or outline level, paragraphs, list items with their numbers, tables.

    Raises:
        BadDocumentError: not a Word document, encrypted, damaged, or a decompression bomb.
    """
    with open_office(path, WORD_PACKAGE, _open) as (document, warnings):
        title, author = title_and_author(document)
        return ParsedDocument(
            elements=tuple(_Body(document, bench or bare_workbench()).elements()),
            title=title,
            author=author,
            warnings=warnings,
        )


def _open(file: IO[bytes]) -> "Document":
    from docx import Document

    return Document(file)


class _Body:
    """Reads one document."""

    def __init__(self, document: "Document", bench: Workbench) -> None:
        self._bench = bench
        self._root = document.element.body
        self._part = document.part
        self._styles = Styles(document.styles.element)
        self._numbering = Numbering(_related(document, _NUMBERING))
        self._notes = {
            (kind, note_id): text
            for kind in ("footnote", "endnote")
            for note_id, text in _notes(_related(document, _NOTES.format(kind)), kind)
        }

    def elements(self) -> Iterator[Element]:
        code: list[str] = []
        for element in self._blocks(self._root):
            if element.kind == "code":  # each line is a paragraph
                code.append(element.text)
                continue
            yield from _code(code)
            code = []
            yield element
        yield from _code(code)

    def _blocks(self, parent: Any) -> Iterator[Element]:
        for child in parent:
            if child.tag == _PARAGRAPH:
                yield from self._paragraph(child)
            elif child.tag == _TABLE:
                yield from self._table(child)
            elif child.tag not in _SKIPPED and isinstance(child.tag, str):  # content controls, insertions
                yield from self._blocks(child)

    def _paragraph(self, paragraph: Any) -> Iterator[Element]:
        text = paragraph_text(paragraph)
        shape = self._styles.shape(paragraph)
        mark = self._numbering.mark(shape.list_id, shape.list_level) if shape.list_id and text else None
        if text and shape.heading_level:
            number = f"{mark} " if mark and mark != "-" else ""
            yield Element(kind="heading", text=number + " ".join(text.split()), level=shape.heading_level)
        elif text and mark:
            yield Element(kind="list_item", text=f"{'  ' * shape.list_level}{mark} {text}")
        elif text:
            kind: ElementKind = "code" if shape.is_code else "paragraph"
            yield Element(kind=kind, text=text)
        for called, note_id in note_references(paragraph):
            if note := self._notes.get((called, note_id)):
                yield Element(kind="paragraph", text=f"{called.capitalize()} {note_id}: {note}")
        yield from drawn_elements(paragraph, self._part)
        yield from picture_elements(paragraph, self._part, self._bench)
        for box in boxed_blocks(paragraph):
            yield from self._blocks(box)

    def _table(self, table: Any) -> Iterator[Element]:
        rows = list(_children(table, f"{WORD}tr"))
        cells = [list(_children(row, f"{WORD}tc")) for row in rows]
        if len(cells) == 1 and len(cells[0]) == 1:  # a frame around text
            yield from self._blocks(cells[0][0])
            return
        if text := markdown_table(self._rows(cells)):
            yield Element(kind="table", text=text)

    def _rows(self, rows: list[list[Any]]) -> Iterator[list[str]]:
        """Merged cells stand in every place that they cover."""
        above: list[str] = []
        for cells in rows:
            row: list[str] = []
            for cell in cells:
                span, continues = _spans(cell)
                column = len(row)
                text = above[column] if continues and column < len(above) else self._cell_text(cell)
                row.extend([text] * span)
            yield row
            above = row

    def _cell_text(self, cell: Any) -> str:
        """Its paragraphs and lists on one line; of a table within it, the cells in order."""
        parts = []
        for element in self._blocks(cell):
            is_table = element.kind == "table"
            parts.append(_flat(element.text) if is_table else element.text.strip())
        return " ".join(parts)


def _code(lines: list[str]) -> Iterator[Element]:
    if lines:
        yield Element(kind="code", text="\n".join(lines))


def _flat(table: str) -> str:
    header, _, *rows = table.splitlines()
    return " ".join(" ".join(row.strip("| ").split(" | ")) for row in [header, *rows])


def _children(parent: Any, tag: str) -> Iterator[Any]:
    """Children of the name, those in content controls and insertions too, but none of a nested table."""
    for child in parent:
        if child.tag == tag:
            yield child
        elif (
            child.tag not in _SKIPPED and child.tag not in (_TABLE, _PARAGRAPH) and isinstance(child.tag, str)
        ):
            yield from _children(child, tag)


def _spans(cell: Any) -> tuple[int, bool]:
    """Columns that it covers, and whether it goes on from the row above."""
    properties = cell.find(f"{WORD}tcPr")
    if properties is None:
        return 1, False
    span = properties.find(f"{WORD}gridSpan")
    columns = span.get(f"{WORD}val", "1") if span is not None else "1"
    merge = properties.find(f"{WORD}vMerge")
    continues = merge is not None and merge.get(f"{WORD}val", "continue") == "continue"
    return (min(int(columns), _MAX_SPAN) if columns.isdigit() else 1), continues


def _related(document: "Document", relationship: str) -> Any | None:
    """The root of a part of the document; None when there is none or it is not XML."""
    from docx.oxml.parser import parse_xml

    for related in document.part.rels.values():
        if related.reltype == relationship and not related.is_external:
            try:
                return parse_xml(related.target_part.blob)
            except SyntaxError:
                return None
    return None


def _notes(root: Any | None, kind: str) -> Iterator[tuple[str, str]]:
    """Id and text of each note. Those with a type are the lines between text and notes."""
    for note in () if root is None else root.findall(f"{WORD}{kind}"):
        if note.get(f"{WORD}type") is None:
            texts = (paragraph_text(paragraph) for paragraph in note.iter(_PARAGRAPH))
            yield note.get(f"{WORD}id", ""), " ".join(filter(None, texts))
