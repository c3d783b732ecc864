"""HTML: what a browser would show, in order. Nothing is fetched: pictures, frames and styles stay links."""

import codecs
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext, data_uri_content, embedded_figures
from shared.ingestion.parsers.tables import table_elements
from shared.ingestion.parsers.text import folded_lines, meaningful_author, meaningful_title, read_text

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode


_NEVER_SHOWN = frozenset(
    "script style template noscript nav head title meta link iframe object embed canvas audio video svg "
    "annotation button select datalist input textarea map area col colgroup".split()
)
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_COLUMN_SPAN = 100
_MAX_ROW_SPAN = 1000  # browsers take more; a file that says so means to do harm
_SECTIONS = frozenset(("thead", "tbody", "tfoot"))
_CELLS = frozenset(("td", "th"))
_JOINED = frozenset(
    "a abbr b bdi bdo cite code em font i ins kbd mark q s small span strong sub sup u var wbr".split()
)
_MAX_DEPTH = 200
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark math mi mn mo mrow "
    "msub msup q rp rt ruby s samp small span strike strong sub sup time tt u var wbr".split()
)
_LISTS = frozenset(("ul", "ol", "dl", "menu"))
_DECLARED = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_DECLARATION_BYTES = 4096
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def parse_html(path: Path, context: ParseContext | None = None) -> ParsedDocument:
    """Headings, paragraphs, list items, tables and code; without navigation, scripts and what is hidden.

    Raises:
        BadDocumentError: the content is binary.
    """
    return parse_html_text(_read(path), context)


def parse_html_text(text: str, context: ParseContext | None = None) -> ParsedDocument:
    """The same for HTML that is already text, such as the body of a mail."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(text)
    title = tree.css_first("head > title")
    author = tree.css_first('head > meta[name="author" i]')
    return ParsedDocument(
        elements=tuple(read_elements(tree.body, context or ParseContext()) if tree.body is not None else ()),
        title=meaningful_title(title.text() if title is not None else None),
        author=meaningful_author(author.attributes.get("content") if author is not None else None),
    )


def _read(path: Path) -> str:
    """By byte order mark, then UTF-8 if it is valid, then as the page declares, then Windows-1252."""
    content = path.read_bytes()
    declared = _DECLARED.search(content[:_DECLARATION_BYTES])
    if declared is None or content.startswith(_BYTE_ORDER_MARKS):
        return read_text(path)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        try:
            # Pages that say Latin-1 mean Windows-1252, as browsers know. Source: WHATWG Encoding, 4.2.
            name = codecs.lookup(declared[1].decode("ascii")).name
            return content.decode("cp1252" if name == "iso8859-1" else name)
        except (LookupError, UnicodeDecodeError, ValueError):
            pass
    return read_text(path)


def is_shown(node: "LexborNode") -> bool:
    """False for scripts, navigation, controls, comments, and what is hidden by attribute or inline style."""
    tag = node.tag or ""
    if tag in _NEVER_SHOWN or tag.startswith(("-comment", "!")):
        return False
    attributes = node.attributes
    if not attributes:
        return True
    return not (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") == "navigation"
        or _HIDING_STYLE.search(attributes.get("style") or "")
    )


def is_layout(table: "LexborNode") -> bool:
    """Whether the table only places things: it says so, is one column wide, or holds other tables."""
    if table.attributes.get("role") in ("presentation", "none"):
        return True
    rows = [_children(row, _CELLS) for row in _rows(table)]
    if any(cell.tag == "th" for row in rows for cell in row):
        return False
    return max(map(len, rows), default=0) <= 1 or any(
        cell.css_first("table") is not None for row in rows for cell in row
    )


def table_rows(table: "LexborNode") -> Iterator[list[str]]:
    """The rows, top to bottom, header first where the page puts it."""
    hanging: dict[int, tuple[int, str]] = {}  # column -> rows that a cell from above still covers, its text
    for row in _rows(table):
        cells: list[str] = []
        for cell in _children(row, _CELLS):
            _put_hanging(cells, hanging)
            text = inline_text(cell)
            rows, columns = _span(cell, "rowspan", _MAX_ROW_SPAN), _span(cell, "colspan", _MAX_COLUMN_SPAN)
            for column in range(len(cells), len(cells) + columns):
                if rows > 1:
                    hanging[column] = (rows - 1, text)
                cells.append(text)
        _put_hanging(cells, hanging)
        yield cells


def inline_text(node: "LexborNode") -> str:
    """All that a reader sees of a node, on one line; blocks in it are parted by blanks."""
    return " ".join("".join(_pieces(node, 0)).split())


def _put_hanging(cells: list[str], hanging: dict[int, tuple[int, str]]) -> None:
    while len(cells) in hanging:
        rows, text = hanging.pop(len(cells))
        if rows > 1:
            hanging[len(cells)] = (rows - 1, text)
        cells.append(text)


def _pieces(node: "LexborNode", depth: int) -> Iterator[str]:
    child = node.first_child
    while child is not None:
        tag = child.tag or ""
        if tag == "-text":
            yield child.text_content or ""
        elif depth >= _MAX_DEPTH:
            yield child.text()
        elif is_shown(child):
            gap = "" if tag in _JOINED else " "
            yield gap
            yield from _pieces(child, depth + 1)
            yield gap
        child = child.next


def _rows(table: "LexborNode") -> Iterator["LexborNode"]:
    """The table's own rows, not those of tables within it."""
    for child in table.iter():
        if not is_shown(child):
            continue
        if child.tag == "tr":
            yield child
        elif child.tag in _SECTIONS:
            yield from _children(child, frozenset(("tr",)))


def _children(node: "LexborNode", tags: frozenset[str]) -> list["LexborNode"]:
    return [child for child in node.iter() if child.tag in tags and is_shown(child)]


def _span(cell: "LexborNode", name: str, most: int) -> int:
    value = cell.attributes.get(name) or "1"
    return max(1, min(int(value), most)) if re.fullmatch(r"\d{1,6}", value.strip()) else 1


def read_elements(body: "LexborNode", context: ParseContext) -> list[Element]:
    """The elements of a page's body, in order; pictures are those that stand in the page itself."""
    walk = _Walk(context)
    walk.enter(body, depth=0)
    walk.end_block()
    return walk.elements


class _Walk:
    """Collects running text until a block ends."""

    def __init__(self, context: ParseContext) -> None:
        self.elements: list[Element] = []
        self._context = context
        self._running: list[str] = []
        self._lists: list[_OpenList] = []

    def enter(self, node: "LexborNode", depth: int) -> None:
        """Read all children of `node`."""
        child = node.first_child
        while child is not None:
            self._read(child, depth)
            child = child.next

    def end_block(self) -> None:
        """Make an element of the running text, if there is any."""
        text = folded_lines("".join(self._running))
        self._running.clear()
        if not text:
            return
        if self._lists:
            self.elements.append(Element(kind="list_item", text=self._lists[-1].take_mark() + text))
        else:
            self.elements.append(Element(kind="paragraph", text=text))

    def _read(self, node: "LexborNode", depth: int) -> None:
        tag = node.tag or ""
        if tag == "-text":
            # Line ends of the source are blanks; those of <br> are put in below.
            self._running.append(re.sub(r"\s+", " ", node.text_content or ""))
        elif not is_shown(node):
            return
        elif tag == "br":
            self._running.append("\n")
        elif depth >= _MAX_DEPTH:
            self._running.append(" ".join(inline_text(node).split()))
        elif tag in _INLINE:
            self.enter(node, depth + 1)
        else:
            self.end_block()
            self._block(node, tag, depth + 1)
            self.end_block()

    def _block(self, node: "LexborNode", tag: str, depth: int) -> None:
        if tag in _HEADINGS:
            text = " ".join(inline_text(node).split())
            self._add([Element(kind="heading", text=text, level=_HEADINGS[tag])] if text else [])
        elif tag == "pre":
            code = node.text().strip("\n").rstrip()
            self._add([Element(kind="code", text=code)] if code.strip() else [])
        elif tag == "table" and not is_layout(node):
            self._table(node)
        elif tag == "img":
            self._picture(node)
        elif tag in _LISTS:
            self._lists.append(_OpenList(node, depth=len(self._lists)))
            self.enter(node, depth)
            self.end_block()
            self._lists.pop()
        else:
            if tag in ("li", "dt", "dd") and self._lists:
                self._lists[-1].next_item(is_detail=tag == "dd")
            self.enter(node, depth)

    def _table(self, table: "LexborNode") -> None:
        for caption in table.css("caption"):
            self._running.append(inline_text(caption))
            break
        self.end_block()
        self._add(table_elements(table_rows(table)))

    def _picture(self, image: "LexborNode") -> None:
        content = data_uri_content(image.attributes.get("src") or "")
        if content is not None:
            self._add(embedded_figures(content, image.attributes.get("alt") or "", self._context))

    def _add(self, elements: Iterable[Element]) -> None:
        self.elements.extend(elements)


class _OpenList:
    """A list that is open, and the mark that its next paragraph begins with: only an item's first has one."""

    def __init__(self, node: "LexborNode", depth: int) -> None:
        start = node.attributes.get("start") or ""
        self._number = int(start) if re.fullmatch(r"\d{1,6}", start) else 1
        self._ordered = node.tag == "ol"
        self._indent = "  " * depth
        self._mark = self._indent

    def next_item(self, *, is_detail: bool) -> None:
        if is_detail:  # the explanation of a term
            self._mark = f"{self._indent}  - "
            return
        self._mark = f"{self._indent}{self._number}. " if self._ordered else f"{self._indent}- "
        self._number += 1

    def take_mark(self) -> str:
        mark, self._mark = self._mark, f"{self._indent}  "
        return mark
