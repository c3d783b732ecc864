"""Tables of a page as rows of cells. A cell that spans rows or columns stands in every place it covers."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shared.ingestion.parsers.html_visible import is_shown

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_MAX_COLUMN_SPAN = 100
_MAX_ROW_SPAN = 1000  # browsers take more; a file that says so means to do harm
_SECTIONS = frozenset(("thead", "tbody", "tfoot"))
_CELLS = frozenset(("td", "th"))
_JOINED = frozenset(
    "a abbr b bdi bdo cite code em font i ins kbd mark q s small span strong sub sup u var wbr".split()
)
_MAX_DEPTH = 200


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
