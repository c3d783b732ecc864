"""HTML: what a browser would show, in order. Nothing is fetched: pictures, frames and styles stay links."""

import codecs
import re
from pathlib import Path

from shared.ingestion.parsers.html_walk import read_elements
from shared.ingestion.parsers.properties import meaningful_author, meaningful_title
from shared.ingestion.parsers.text import read_text
from shared.ingestion.workbench import Workbench, bare_workbench
from shared.models.blocks import ParsedDocument

_DECLARED = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_DECLARATION_BYTES = 4096
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def parse_html(path: Path, bench: Workbench | None = None) -> ParsedDocument:
    """Headings, paragraphs, list items, tables and code; without navigation, scripts and what is hidden.

    Raises:
        BadDocumentError: the content is binary.
    """
    return parse_html_text(_read(path), bench)


def parse_html_text(text: str, bench: Workbench | None = None) -> ParsedDocument:
    """The same for HTML that is already text, such as the body of a mail."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(text)
    title = tree.css_first("head > title")
    author = tree.css_first('head > meta[name="author" i]')
    return ParsedDocument(
        elements=tuple(read_elements(tree.body, bench or bare_workbench()) if tree.body is not None else ()),
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
