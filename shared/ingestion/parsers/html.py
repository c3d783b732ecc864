"""Parser for HTML that extracts the visible content in document order. Linked pictures and styles are not
fetched.
"""

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext, embedded_figures
from shared.ingestion.parsers.tables import Repeats, merged_table_elements
from shared.ingestion.parsers.text import folded_lines, meaningful_author, meaningful_title, read_text

_NEVER_SHOWN = frozenset(
    "script style template noscript nav head title meta link iframe object embed canvas audio video svg "
    "annotation button select datalist input textarea map area col colgroup".split()
)
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_COLUMN_SPAN = 100
# Maximum row span of a cell. Browsers accept a larger value, but it suggests an attack.
_MAX_ROW_SPAN = 1000
_SECTIONS = frozenset(("thead", "tbody", "tfoot"))
_CELLS = frozenset(("td", "th"))
_MAX_DEPTH = 200
# Maximum nesting depth of tags. Ordinary pages have tens of levels, and browsers stop at 512.
_MAX_NESTED = 1000
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*)[^<>]*>?")
# Elements that don't count towards the nesting depth, because they have no end tag or may omit it.
_UNNESTED = frozenset(
    "a area base body br circle col colgroup dd dt ellipse embed g head hr html image img input li line link "
    "meta nobr optgroup option p param path polygon polyline rect rp rt source stop tbody td tfoot th thead "
    "tr track use wbr".split()
)
# Class names and ids of content around the main text, such as navigation and adverts.
_SURROUNDINGS = frozenset(
    "footer site-footer page-footer global-footer nav navbar navigation site-nav main-nav main-menu mainmenu "
    "topbar breadcrumb breadcrumbs share-buttons share-bar social-links social-share related-articles "
    "related-posts newsletter newsletter-signup skip-link skip-to-content site-header sidebar-nav "
    "toc-sidebar advert advertisement mw-portlet vector-dropdown vector-menu".split()
)
_CONSENT = re.compile(r"cookie|consent|gdpr|onetrust", re.IGNORECASE)
_SURROUNDING_ROLES = frozenset(("contentinfo", "search", "banner", "dialog", "alertdialog"))
_SURROUNDING_TAGS = frozenset(("footer", "header", "aside", "dialog"))
_TEXT_PARTS = frozenset(("main", "article"))
# Maximum share of a page's text in content around the main text. A larger part is the main text.
_MOST_SURROUNDING = 0.5
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# Inline elements. Those in `_JOINED` are read without a space before and after them.
_JOINED = frozenset(
    "a abbr b bdi bdo cite code em font i ins kbd mark q s small span strong sub sup u var wbr".split()
)
_INLINE = _JOINED | frozenset(
    "acronym big data del dfn label math mi mn mo mrow msub msup rp rt ruby samp strike time tt".split()
)
_LISTS = frozenset(("ul", "ol", "dl", "menu"))
_DECLARED = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_DECLARATION_BYTES = 4096
_DATA_URI = re.compile(r"\s*data:image/[\w.+-]+;base64,(.+)", re.DOTALL | re.IGNORECASE)


def parse_html(path: Path, context: ParseContext | None = None) -> ParsedDocument:
    """Parse the visible headings, paragraphs, list items, tables, code and embedded pictures of an HTML file.

    Scripts, navigation, cookie banners, and the site's header and footer are skipped.

    Raises:
        BadDocumentError: the content is binary.
    """
    return parse_html_text(declared_text(path), context, is_page=True)


def declared_text(path: Path, charset: str | None = None) -> str:
    """Read an HTML file. It is decoded with `charset` if given, otherwise with the encoding that the page
    declares.

    Raises:
        BadDocumentError: the content is binary.
    """
    return read_text(path, _known_encoding(charset) or _declared_encoding(path))


def parse_html_text(
    text: str, context: ParseContext | None = None, *, is_page: bool = False
) -> ParsedDocument:
    """Parse HTML text, such as the body of an e-mail.

    Args:
        is_page: whether to skip navigation, banners and other content around the main text.
    """
    tree = LexborHTMLParser(flatten(text))
    title = tree.css_first("head > title")
    author = tree.css_first('head > meta[name="author" i]')
    walk = _Walk(context or ParseContext(), is_page=is_page)
    return ParsedDocument(
        elements=tuple(walk.read(tree.body) if tree.body is not None else ()),
        title=meaningful_title(title.text() if title is not None else None),
        author=meaningful_author(author.attributes.get("content") if author is not None else None),
    )


def flatten(text: str) -> str:
    """Return HTML without the tags nested more than 1,000 levels deep, for which the HTML library needs
    quadratic time.
    """
    depth = 0

    def replacement(tag: re.Match[str]) -> str:
        nonlocal depth
        if tag[2].lower() in _UNNESTED:
            return tag[0]
        if not tag[1]:
            depth += 1
        is_kept = depth <= _MAX_NESTED
        if tag[1]:
            depth = max(depth - 1, 0)
        return tag[0] if is_kept else " "

    return _TAG.sub(replacement, text) if text.count("<") > _MAX_NESTED else text


def _declared_encoding(path: Path) -> str | None:
    with path.open("rb") as file:
        declared = _DECLARED.search(file.read(_DECLARATION_BYTES))
    return None if declared is None else _known_encoding(declared[1].decode("ascii"))


def _known_encoding(name: str | None) -> str | None:
    try:
        name = codecs.lookup(name or "").name
    except LookupError:
        return None
    # Pages declared as Latin-1 use Windows-1252. Source: WHATWG Encoding, 4.2.
    return "cp1252" if name == "iso8859-1" else name


def _is_shown(node: LexborNode) -> bool:
    """Return whether an element is visible content. Scripts, navigation, controls, comments and hidden
    elements aren't.

    Style sheets are not evaluated: only attributes and inline styles hide an element.
    """
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


def _is_layout(table: LexborNode) -> bool:
    """Return whether a table only arranges content: by its role, a single column, or nested tables."""
    if table.attributes.get("role") in ("presentation", "none"):
        return True
    rows = [_children(row, _CELLS) for row in _rows(table)]
    if any(cell.tag == "th" for row in rows for cell in row):
        return False
    return max(map(len, rows), default=0) <= 1 or any(
        cell.css_first("table") is not None for row in rows for cell in row
    )


def _table_rows(table: LexborNode, repeats: Repeats) -> Iterator[list[str]]:
    """Yield the rows of a table as cell texts, from the top. Merged cells are repeated in every row and
    column that they cover.
    """
    # Merged cells from rows above, keyed by column: the number of rows that the cell still covers, and its
    # text.
    hanging: dict[int, tuple[int, str]] = {}
    for row in _rows(table):
        cells: list[str] = []
        # The final None fills the columns after the last cell.
        for cell in (*_children(row, _CELLS), None):
            while len(cells) in hanging:
                rows, text = hanging.pop(len(cells))
                if rows > 1:
                    hanging[len(cells)] = (rows - 1, text)
                cells.append(text)
            if cell is not None:
                text, rows = _inline_text(cell), _span(cell, "rowspan", _MAX_ROW_SPAN)
                columns = range(len(cells), len(cells) + _span(cell, "colspan", _MAX_COLUMN_SPAN))
                repeats.count(text, len(columns) * rows)
                cells += [text] * len(columns)
                hanging |= dict.fromkeys(columns, (rows - 1, text)) if rows > 1 else {}
        yield cells


def _inline_text(node: LexborNode) -> str:
    """Return the visible text of a node on one line, with spaces between block elements."""
    return " ".join("".join(_pieces(node, 0)).split())


def _pieces(node: LexborNode, depth: int) -> Iterator[str]:
    child = node.first_child
    while child is not None:
        tag = child.tag or ""
        if tag == "-text":
            yield child.text_content or ""
        elif depth >= _MAX_DEPTH:
            yield child.text()
        elif _is_shown(child):
            gap = "" if tag in _JOINED else " "
            yield gap
            yield from _pieces(child, depth + 1)
            yield gap
        child = child.next


def _rows(table: LexborNode) -> Iterator[LexborNode]:
    """Yield the rows of a table, but not the rows of nested tables."""
    for child in table.iter():
        if not _is_shown(child):
            continue
        if child.tag == "tr":
            yield child
        elif child.tag in _SECTIONS:
            yield from _children(child, frozenset(("tr",)))


def _children(node: LexborNode, tags: frozenset[str]) -> list[LexborNode]:
    return [child for child in node.iter() if child.tag in tags and _is_shown(child)]


def _span(cell: LexborNode, name: str, most: int) -> int:
    value = cell.attributes.get(name) or "1"
    return max(1, min(int(value), most)) if re.fullmatch(r"\d{1,6}", value.strip()) else 1


class _Walk:
    """Traversal that collects running text, and appends it as an element at the end of each block."""

    def __init__(self, context: ParseContext, *, is_page: bool) -> None:
        self.elements: list[Element] = []
        # Maximum length of text that may be dropped as surroundings; 0 keeps all text.
        self._surrounding_chars = 0.0
        self._is_page = is_page
        self._has_text_part = False
        # Number of open `main` and `article` elements.
        self._text_parts = 0
        self._context = context
        self._running: list[str] = []
        self._lists: list[_OpenList] = []
        self._repeats = Repeats()

    def read(self, body: LexborNode) -> list[Element]:
        """Return the elements of the body in document order. Only embedded pictures are included."""
        if self._is_page:
            self._surrounding_chars = _MOST_SURROUNDING * len(body.text())
            self._has_text_part = body.css_first("main, article") is not None
        self._enter(body, depth=0)
        self._end_block()
        return self.elements

    def _enter(self, node: LexborNode, depth: int) -> None:
        child = node.first_child
        while child is not None:
            self._read(child, depth)
            child = child.next

    def _end_block(self) -> None:
        """Append the collected text as an element, unless it is empty."""
        text = folded_lines("".join(self._running))
        self._running.clear()
        if text and self._lists:
            self.elements.append(Element(kind="list_item", text=self._lists[-1].take_mark() + text))
        elif text:
            self.elements.append(Element(kind="paragraph", text=text))

    def _read(self, node: LexborNode, depth: int) -> None:
        tag = node.tag or ""
        if tag == "-text":
            # Newlines in the source count as spaces; only <br> breaks a line.
            self._running.append(re.sub(r"\s+", " ", node.text_content or ""))
        elif not _is_shown(node):
            return
        elif tag == "br":
            self._running.append("\n")
        elif depth >= _MAX_DEPTH:
            self._running.append(_inline_text(node))
        elif tag in _INLINE:
            self._enter(node, depth + 1)
        else:
            self._end_block()
            if not self._surrounds(node, tag):
                self._block(node, tag, depth + 1)
            self._end_block()

    def _block(self, node: LexborNode, tag: str, depth: int) -> None:
        if tag in _HEADINGS:
            if text := _inline_text(node):
                self.elements.append(Element(kind="heading", text=text, level=_HEADINGS[tag]))
        elif tag == "pre":
            code = node.text().strip("\n").rstrip()
            self.elements += [Element(kind="code", text=code)] if code.strip() else []
        elif tag == "table" and not _is_layout(node):
            self._table(node)
        elif tag == "img":
            self._picture(node)
        elif tag in _LISTS:
            self._lists.append(_OpenList(node, depth=len(self._lists)))
            self._enter(node, depth)
            self._end_block()
            self._lists.pop()
        else:
            if tag in ("li", "dt", "dd") and self._lists:
                self._lists[-1].next_item(is_detail=tag == "dd")
            self._text_parts += tag in _TEXT_PARTS
            self._enter(node, depth)
            self._text_parts -= tag in _TEXT_PARTS

    def _surrounds(self, node: LexborNode, tag: str) -> bool:
        """Return whether a node is boilerplate around the main text, such as a footer or a cookie notice. A
        node that contains a main title never is.
        """
        if not self._surrounding_chars:
            return False
        attributes = node.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        is_outside = not self._text_parts and (tag != "aside" or self._has_text_part)
        is_named = (
            not _SURROUNDINGS.isdisjoint(names.lower().split())
            or _CONSENT.search(f"{names} {attributes.get('aria-label') or ''}") is not None
            or attributes.get("role") in _SURROUNDING_ROLES
            or (tag in _SURROUNDING_TAGS and is_outside)
        )
        return (
            is_named
            and node.css_first("h1, main, article") is None
            and len(node.text()) < self._surrounding_chars
        )

    def _table(self, table: LexborNode) -> None:
        caption = table.css_first("caption")
        if caption is not None:
            self._running.append(_inline_text(caption))
        self._end_block()
        self.elements += merged_table_elements(_table_rows(table, self._repeats))

    def _picture(self, image: LexborNode) -> None:
        """Add a picture that is embedded as a data URL. Other URLs are never fetched."""
        data = _DATA_URI.match(image.attributes.get("src") or "")
        if data is not None:
            with suppress(binascii.Error):
                content = base64.b64decode("".join(data[1].split()))
                self.elements += embedded_figures(content, image.attributes.get("alt") or "", self._context)


class _OpenList:
    """State of a list that is being read, with the mark for its next paragraph. Only the first paragraph of
    an item gets a bullet or number.
    """

    def __init__(self, node: LexborNode, depth: int) -> None:
        start = node.attributes.get("start") or ""
        self._number = int(start) if re.fullmatch(r"\d{1,6}", start) else 1
        self._ordered = node.tag == "ol"
        self._indent = "  " * depth
        self._mark = self._indent

    def next_item(self, *, is_detail: bool) -> None:
        # The definition of a term becomes a nested item.
        if is_detail:
            self._mark = f"{self._indent}  - "
            return
        self._mark = f"{self._indent}{self._number}. " if self._ordered else f"{self._indent}- "
        self._number += 1

    def take_mark(self) -> str:
        mark, self._mark = self._mark, f"{self._indent}  "
        return mark
