"""A walk through an HTML tree that collects its elements. Knows which tags are blocks, lists and headings."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from shared.ingestion.parsers.embedded_pictures import data_uri_content, embedded_figures
from shared.ingestion.parsers.html_tables import inline_text, is_layout, table_rows
from shared.ingestion.parsers.html_visible import is_shown
from shared.ingestion.parsers.markdown_table import table_elements
from shared.ingestion.workbench import Workbench
from shared.models.blocks import Element

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark math mi mn mo mrow "
    "msub msup q rp rt ruby s samp small span strike strong sub sup time tt u var wbr".split()
)
_LISTS = frozenset(("ul", "ol", "dl", "menu"))
_MAX_DEPTH = 200  # below it text is taken as it comes: nobody nests blocks so deep for readers


def read_elements(body: "LexborNode", bench: Workbench) -> list[Element]:
    """The elements of a page's body, in order; pictures are those that stand in the page itself."""
    walk = _Walk(bench)
    walk.enter(body, depth=0)
    walk.end_block()
    return walk.elements


class _Walk:
    """Collects running text until a block ends."""

    def __init__(self, bench: Workbench) -> None:
        self.elements: list[Element] = []
        self._bench = bench
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
            self._add(embedded_figures(content, image.attributes.get("alt") or "", self._bench))

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


def folded_lines(text: str) -> str:
    """White space folded; lines stay lines, empty ones go."""
    return "\n".join(line for line in _folded(text.split("\n")) if line)


def _folded(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield " ".join(line.split())
