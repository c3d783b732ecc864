"""Parser for Word documents (.docx). Elements have no page numbers, because Word computes pages on opening.

The body is streamed, since its tree would need thirty times the memory of its XML. Headers, footers and
comments are skipped. Footnotes and endnotes follow the paragraph that refers to them, and text boxes follow
the paragraph in which they are anchored.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from docx.opc.constants import CONTENT_TYPE
from docx.opc.package import OpcPackage, Unmarshaller
from docx.opc.part import Part, PartFactory
from docx.opc.pkgreader import PackageReader
from docx.oxml.parser import parse_xml
from docx.package import Package
from lxml.etree import iterparse  # type: ignore[import-untyped]

from shared.documents.models import Element, ElementKind, ParsedDocument
from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.office import WORD as WORD_PACKAGE
from shared.ingestion.parsers.office import drawn_elements, open_office, title_and_author
from shared.ingestion.parsers.tables import Repeats, merged_table_elements
from shared.ingestion.parsers.text import folded_lines

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_WORD_2010 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
_CHECKBOX = f"{_WORD_2010}checkbox"

# Elements to skip in running text: formatting, deletions, field codes, and content that is read as separate
# blocks.
_SKIPPED = frozenset(
    [f"{WORD}{name}" for name in "del moveFrom instrText delText delInstrText rPr pPr sdtPr ruby".split()]
    + [f"{WORD}{name}" for name in "drawing pict object txbxContent footnoteReference p tbl".split()]
    + [f"{_COMPATIBILITY}{name}" for name in ("AlternateContent", "Fallback")]
)
_MARKS = {f"{WORD}tab": " ", f"{WORD}br": "\n", f"{WORD}cr": "\n", f"{WORD}noBreakHyphen": "-"}
_TABLE, _PARAGRAPH = f"{WORD}tbl", f"{WORD}p"
# The nesting depth of w:body, which is inside w:document, is 2.
_BODY, _BODY_DEPTH = f"{WORD}body", 2
_NOT_BLOCKS = frozenset(f"{WORD}{name}" for name in "del moveFrom sectPr sdtPr tblPr tblGrid".split())
_NOTES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}s"
_STYLES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles"
_NUMBERING = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/numbering"
# Maximum column span of a cell. A wider table isn't meant for readers.
_MAX_SPAN = 100
# The names of built-in styles are English in the file, whatever the display language of Word.
_HEADING = re.compile(r"heading ([1-9])\Z", re.IGNORECASE)
_CODE = re.compile(r"(?:source ?code|code|code block|html preformatted|verbatim)\Z", re.IGNORECASE)
_BODY_OUTLINE_LEVEL = 9
_MAX_HEADING_LEVEL = 6
# Maximum number of parent styles. A longer chain must be a cycle.
_MAX_ANCESTORS = 20
# Deepest level of a list, counted from 0.
_MAX_LEVEL = 8
_ROMAN_SIGNS = "m cm d cd c xc l xl x ix v iv i".split()
_ROMAN_VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)


def parse_docx(path: Path, context: ParseContext | None = None) -> ParsedDocument:
    """Parse the headings, paragraphs, list items, tables and pictures of a Word document.

    Raises:
        BadDocumentError: the file is not a Word document, encrypted, damaged, or a decompression bomb.
    """
    with open_office(path, WORD_PACKAGE, _open_package) as (package, warnings):
        title, author = title_and_author(package)
        return ParsedDocument(
            elements=tuple(_Body(package.main_document_part, context or ParseContext()).elements()),
            title=title,
            author=author,
            warnings=warnings,
        )


def _open_package(file: IO[bytes]) -> OpcPackage:
    """Open the package, but leave its main part unparsed, because python-docx would build a large tree from
    it.
    """

    def part(name: Any, content_type: str, relationship: str, blob: bytes, package: Any) -> Any:
        is_main = content_type == CONTENT_TYPE.WML_DOCUMENT_MAIN
        return (
            Part(name, content_type, blob, package)
            if is_main
            else PartFactory(name, content_type, relationship, blob, package)
        )

    package = Package()
    unmarshal: Callable[..., None] = Unmarshaller.unmarshal
    read: Callable[[IO[bytes]], PackageReader] = PackageReader.from_file
    unmarshal(read(file), package, part)
    return package


def _body(main: Any) -> Iterator[Any]:
    """Yield the children of the document's body. To save memory, each child is freed when the next one is
    requested.
    """
    path: list[Any] = []
    for event, element in iterparse(io.BytesIO(main.blob), events=("start", "end"), resolve_entities=False):
        if event == "start":
            path.append(element)
            continue
        path.pop()
        if len(path) == _BODY_DEPTH and path[-1].tag == _BODY:
            yield element
            path[-1].remove(element)


class _Body:
    """Reader that converts the body of one document to elements."""

    def __init__(self, main: Any, context: ParseContext) -> None:
        """Read styles, numbering and notes of the document. `main` is the main part of the package."""
        self._context = context
        self._repeats = Repeats()
        self._part = main
        self._styles = _Styles(_related(main, _STYLES))
        self._numbering = _Numbering(_related(main, _NUMBERING))
        self._notes = {
            (kind, note_id): text
            for kind in ("footnote", "endnote")
            for note_id, text in _notes(_related(main, _NOTES.format(kind)), kind)
        }

    def elements(self) -> Iterator[Element]:
        for is_code, group in groupby(
            self._blocks(_body(self._part)), key=lambda element: element.kind == "code"
        ):
            # Word stores each line of code as a paragraph, so join them.
            if is_code:
                yield Element(kind="code", text="\n".join(line.text for line in group))
            else:
                yield from group

    def _blocks(self, children: Iterable[Any]) -> Iterator[Element]:
        """Yield the elements of `children`, which is an iterable of XML nodes or a node whose children are
        read.
        """
        for child in children:
            if child.tag == _PARAGRAPH:
                yield from self._paragraph(child)
            elif child.tag == _TABLE:
                yield from self._table(child)
            elif child.tag not in _NOT_BLOCKS and isinstance(child.tag, str):
                # Descend into content controls and insertions.
                yield from self._blocks(child)

    def _paragraph(self, paragraph: Any) -> Iterator[Element]:
        text = _paragraph_text(paragraph)
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
        for reference in paragraph.iter(f"{WORD}footnoteReference", f"{WORD}endnoteReference"):
            note_kind = reference.tag.removeprefix(WORD).removesuffix("Reference")
            note_id = reference.get(f"{WORD}id", "")
            if note := self._notes.get((note_kind, note_id)):
                yield Element(kind="paragraph", text=f"{note_kind.capitalize()} {note_id}: {note}")
        yield from drawn_elements(paragraph, self._part, self._context)
        for box in _boxed_blocks(paragraph):
            yield from self._blocks(box)

    def _table(self, table: Any) -> Iterator[Element]:
        rows = list(_children(table, f"{WORD}tr"))
        cells = [list(_children(row, f"{WORD}tc")) for row in rows]
        # A table with a single cell only draws a frame around text.
        if len(cells) == 1 and len(cells[0]) == 1:
            yield from self._blocks(cells[0][0])
            return
        yield from merged_table_elements(self._rows(cells))

    def _rows(self, rows: list[list[Any]]) -> Iterator[list[str]]:
        """Yield each row's cell texts. The text of a merged cell is repeated in every position that it
        covers.
        """
        above: list[str] = []
        for cells in rows:
            row: list[str] = []
            for cell in cells:
                properties = cell.find(f"{WORD}tcPr")
                span = _number(_value(properties, "gridSpan") or "1")
                continues = _value(properties, "vMerge", default="continue") == "continue"
                text = above[len(row)] if continues and len(row) < len(above) else self._cell_text(cell)
                places = min(max(span, 1), _MAX_SPAN)
                self._repeats.count(text, places)
                row.extend([text] * places)
            yield row
            above = row

    def _cell_text(self, cell: Any) -> str:
        """Return the paragraphs of a cell on one line. Nested tables are included as plain text."""
        return " ".join(
            _flat(element.text) if element.kind == "table" else element.text.strip()
            for element in self._blocks(cell)
        )


def _flat(table: str) -> str:
    header, _, *rows = table.splitlines()
    return " ".join(" ".join(row.strip("| ").split(" | ")) for row in [header, *rows])


def _children(parent: Any, tag: str) -> Iterator[Any]:
    """Yield the children with this tag, also from within content controls and insertions, but not from nested
    tables.
    """
    for child in parent:
        if child.tag == tag:
            yield child
        elif isinstance(child.tag, str) and child.tag not in (*_NOT_BLOCKS, _TABLE, _PARAGRAPH):
            yield from _children(child, tag)


def _related(main: Any, relationship: str) -> Any | None:
    """Return the XML root of the part that the main part refers to by this relationship. Return None if it is
    missing or invalid.
    """
    for related in main.rels.values():
        if related.reltype == relationship and not related.is_external:
            try:
                return parse_xml(related.target_part.blob)
            except SyntaxError:
                return None
    return None


def _notes(root: Any | None, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the id and text of each footnote or endnote. Separator lines, which have a type attribute, are
    skipped.
    """
    for note in () if root is None else root.findall(f"{WORD}{kind}"):
        if note.get(f"{WORD}type") is None:
            texts = (_paragraph_text(paragraph) for paragraph in note.iter(_PARAGRAPH))
            yield note.get(f"{WORD}id", ""), " ".join(filter(None, texts))


def _paragraph_text(paragraph: Any) -> str:
    """Return the text of a paragraph with white space collapsed. Forced line breaks are kept."""
    return folded_lines("".join(_pieces(paragraph)))


def _boxed_blocks(paragraph: Any) -> Iterator[Any]:
    """Yield the contents of the outermost text boxes anchored in a paragraph.

    Word stores each box twice, for new readers (Choice) and for old ones (Fallback). Only one copy is read.
    """
    for child in paragraph:
        if child.tag == f"{WORD}txbxContent":
            yield child
        elif child.tag == f"{_COMPATIBILITY}AlternateContent":
            choices = child.findall(f"{_COMPATIBILITY}Choice") or list(child)
            yield from _boxed_blocks(choices[0]) if choices else ()
        elif isinstance(child.tag, str) and child.tag != f"{_COMPATIBILITY}Fallback":
            yield from _boxed_blocks(child)


def _pieces(element: Any) -> Iterator[str]:
    for child in element:
        tag = child.tag
        if tag == f"{WORD}t":
            yield child.text or ""
        elif tag in _MARKS:
            yield _MARKS[tag]
        elif tag == f"{WORD}sdt" and child.find(f"{WORD}sdtPr/{_CHECKBOX}") is not None:
            yield _checkbox(child)
        elif tag == f"{MATH}oMath":
            yield f" {_formula(child)} "
        elif tag not in _SKIPPED and isinstance(tag, str):
            yield from _pieces(child)


def _checkbox(control: Any) -> str:
    checked = control.find(f"{WORD}sdtPr/{_CHECKBOX}/{_WORD_2010}checked")
    is_checked = checked is not None and checked.get(f"{_WORD_2010}val") in ("1", "true", "on")
    return "[x] " if is_checked else "[ ] "


def _formula(element: Any) -> str:
    """Convert a formula to one line of approximate LaTeX. Of unsupported elements, only the plain text is
    kept.
    """
    convert = _FORMULAS.get(element.tag)
    if convert is not None:
        return convert(element)
    if element.tag == f"{MATH}t":
        return element.text or ""
    return "".join(_formula(child) for child in element if isinstance(child.tag, str))


def _part(element: Any, name: str) -> str:
    child = element.find(f"{MATH}{name}")
    return "" if child is None else _formula(child)


def _root(element: Any) -> str:
    degree = _part(element, "deg")
    return rf"\sqrt{f'[{degree}]' if degree else ''}{{{_part(element, 'e')}}}"


def _sum(element: Any) -> str:
    sign = _sign(element, "naryPr", "chr", "∫")
    return f"{sign}_{{{_part(element, 'sub')}}}^{{{_part(element, 'sup')}}}{_part(element, 'e')}"


def _delimited(element: Any) -> str:
    inner = ",".join(_formula(part) for part in element.findall(f"{MATH}e"))
    return f"{_sign(element, 'dPr', 'begChr', '(')}{inner}{_sign(element, 'dPr', 'endChr', ')')}"


def _sign(element: Any, properties: str, name: str, usual: str) -> str:
    """Return the symbol in the properties of a formula element, such as a bracket or a sum sign. Without one,
    return `usual`.
    """
    child = element.find(f"{MATH}{properties}/{MATH}{name}")
    sign: str = usual if child is None else child.get(f"{MATH}val", usual)
    return sign


_FORMULAS: Mapping[str, Callable[[Any], str]] = {
    f"{MATH}f": lambda e: rf"\frac{{{_part(e, 'num')}}}{{{_part(e, 'den')}}}",
    f"{MATH}sSup": lambda e: f"{_part(e, 'e')}^{{{_part(e, 'sup')}}}",
    f"{MATH}sSub": lambda e: f"{_part(e, 'e')}_{{{_part(e, 'sub')}}}",
    f"{MATH}sSubSup": lambda e: f"{_part(e, 'e')}_{{{_part(e, 'sub')}}}^{{{_part(e, 'sup')}}}",
    f"{MATH}rad": _root,
    f"{MATH}nary": _sum,
    f"{MATH}d": _delimited,
}


@dataclass(frozen=True)
class _ParagraphShape:
    """Structural role of a paragraph: heading, list item, code or plain text.

    Attributes:
        heading_level: 1-6; None if it isn't a heading.
        list_id: id of the list; None outside lists.
        list_level: depth in the list, counted from 0.
    """

    heading_level: int | None = None
    list_id: str | None = None
    list_level: int = 0
    is_code: bool = False


class _Styles:
    """Paragraph styles of one document."""

    def __init__(self, styles: Any | None) -> None:
        """Index the styles. `styles` is the root of styles.xml, or None if the document has none."""
        elements = () if styles is None else styles.findall(f"{WORD}style")
        self._styles = {style.get(f"{WORD}styleId"): style for style in elements}
        self._default = next(
            (
                key
                for key, style in self._styles.items()
                if style.get(f"{WORD}type") == "paragraph" and style.get(f"{WORD}default") in ("1", "true")
            ),
            None,
        )

    def shape(self, paragraph: Any) -> _ParagraphShape:
        """Return the paragraph's role, based on its own properties, its style, and the ancestors of that
        style.
        """
        own = paragraph.find(f"{WORD}pPr")
        chain = self._chain(_value(own, "pStyle") or self._default)
        names = [_value(style, "name") or "" for style in chain]
        properties = [own, *(style.find(f"{WORD}pPr") for style in chain)]
        list_id = _first(properties, f"numPr/{WORD}numId")
        level = _first(properties, f"numPr/{WORD}ilvl")
        return _ParagraphShape(
            heading_level=_heading_level(names, _first(properties, "outlineLvl")),
            list_id=None if list_id == "0" else list_id,
            list_level=int(level) if level and level.isdigit() else 0,
            is_code=any(_CODE.match(name) for name in names),
        )

    def _chain(self, style_id: str | None) -> list[Any]:
        chain: list[Any] = []
        while style_id in self._styles and len(chain) < _MAX_ANCESTORS:
            style = self._styles[style_id]
            chain.append(style)
            style_id = _value(style, "basedOn")
        return chain


def _heading_level(names: list[str], outline_level: str | None) -> int | None:
    if names and names[0].lower() == "title":
        return 1
    if outline_level and outline_level.isdigit():
        level = int(outline_level)
        return None if level >= _BODY_OUTLINE_LEVEL else min(level + 1, _MAX_HEADING_LEVEL)
    heading = next((match for name in names if (match := _HEADING.match(name))), None)
    return min(int(heading[1]), _MAX_HEADING_LEVEL) if heading else None


def _first(properties: list[Any], name: str) -> str | None:
    return next((value for part in properties if (value := _value(part, name)) is not None), None)


def _value(element: Any | None, name: str, default: str | None = None) -> str | None:
    """Return the `val` attribute of the child `name`. Return `default` if the child has no such attribute,
    and None if there is no such child.
    """
    child = None if element is None else element.find(f"{WORD}{name}")
    return None if child is None else child.get(f"{WORD}val", default)


@dataclass(frozen=True)
class _Level:
    format: str
    text: str
    start: int


@dataclass
class _List:
    """List definition with its levels and current counters."""

    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)


class _Numbering:
    """Generator of list numbers and bullets, which Word computes instead of storing them in the text.

    Stateful: call `mark` once per paragraph, in document order. Source: ECMA-376 part 1, 17.9. A paragraph
    names a list (numId) and a level (ilvl). The list names an abstract list with a format for each level.
    Deeper levels restart after an item of a higher level.
    """

    def __init__(self, numbering: Any | None) -> None:
        """Index the lists. `numbering` is the root of numbering.xml, or None if the document has none."""
        self._lists: dict[str, _List] = {}
        if numbering is None:
            return
        abstract = {
            element.get(f"{WORD}abstractNumId"): _List(_levels(element))
            for element in numbering.findall(f"{WORD}abstractNum")
        }
        for element in numbering.findall(f"{WORD}num"):
            base_list = abstract.get(_value(element, "abstractNumId"))
            if base_list is None:
                continue
            starts = {
                _number(override.get(f"{WORD}ilvl")): _number(_value(override, "startOverride") or "1")
                for override in element.findall(f"{WORD}lvlOverride")
            }
            # A list with its own start numbers gets its own counters instead of those of its definition.
            if starts:
                levels = base_list.levels
                base_list = _List(
                    {key: replace(level, start=starts.get(key, level.start)) for key, level in levels.items()}
                )
            self._lists[element.get(f"{WORD}numId")] = base_list

    def mark(self, list_id: str, level: int) -> str | None:
        """Return the mark of the next list item: "-" for a bullet, a number such as "2.1.", or None for an
        unknown list.
        """
        numbering_list = self._lists.get(list_id)
        if numbering_list is None:
            return None
        level = min(level, _MAX_LEVEL)
        shape = numbering_list.levels.get(level, _Level("bullet", "", 1))
        numbering_list.counts[level] = numbering_list.counts.get(level, shape.start - 1) + 1
        for deeper in [other for other in numbering_list.counts if other > level]:
            del numbering_list.counts[deeper]
        if shape.format in ("bullet", "none"):
            return "-"
        text = shape.text
        for number in range(_MAX_LEVEL + 1):
            other = numbering_list.levels.get(number, shape)
            count = numbering_list.counts.get(number, other.start)
            text = text.replace(f"%{number + 1}", numeral(count, other.format))
        return text.strip() or "-"


def _levels(abstract: Any) -> dict[int, _Level]:
    return {
        _number(element.get(f"{WORD}ilvl")): _Level(
            format=_value(element, "numFmt") or "decimal",
            text=_value(element, "lvlText") or "",
            start=_number(_value(element, "start") or "1"),
        )
        for element in abstract.findall(f"{WORD}lvl")
    }


def _number(text: str | None) -> int:
    return int(text) if text and text.lstrip("-").isdigit() else 0


def numeral(number: int, style: str) -> str:
    """Format a number in one of Word's numbering styles. Unknown styles use decimal digits."""
    text = f"{number:02d}" if style == "decimalZero" else str(number)
    if style in ("lowerLetter", "upperLetter") and number > 0:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif style in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        text = ""
        for value, sign in zip(_ROMAN_VALUES, _ROMAN_SIGNS, strict=True):
            count, number = divmod(number, value)
            text += sign * count
    return text.upper() if style.startswith("upper") else text
