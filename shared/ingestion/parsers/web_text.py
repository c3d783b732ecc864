"""Extraction of the main text, title and publication date of a web page, for a language model."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.html import declared_text, flatten, parse_html_text
from shared.ingestion.registry import MAGIC_BYTES, Parser, check_content
from shared.platform.models import Model

MAX_TEXT_CHARS = 40_000
MAX_TITLE_CHARS = 200
# Minimum length of a page's main part. A shorter part only wraps other content.
_LEAST_CHARS = 200
# Maximum nesting depth at which a publication date is searched for in JSON-LD.
_MAX_DEPTH = 6
_DATE_TAGS = (
    'meta[property="article:published_time"]',
    'meta[itemprop="datePublished"]',
    'meta[name="date" i]',
    'meta[name="dc.date" i]',
)


class PageText(Model):
    """Text extracted from a web page.

    Attributes:
        text: paragraphs separated by blank lines.
        published_at: date declared by the page, ISO 8601; None if there is none.
        is_cut: whether the text was truncated.
    """

    title: str = ""
    text: str
    published_at: str | None = None
    is_cut: bool = False


def read_page_text(path: Path, filename: str, charset: str | None = None) -> PageText:
    """Extract the main text, title and publication date from a saved web page.

    Args:
        filename: any name whose suffix selects the parser.
        charset: encoding declared by the server, if any.

    Raises:
        BadDocumentError: the page cannot be parsed.
    """
    with path.open("rb") as file:
        file_format = check_content(filename, file.read(MAGIC_BYTES))
    published_at = None
    if filename.endswith(".html"):
        content = flatten(declared_text(path, charset))
        published_at, main = _published_and_main(content)
        document = parse_html_text(main or content)
        if main and not document.title:
            document = document.model_copy(update={"title": parse_html_text(content).title})
    else:
        parse: Parser = resolve_name(file_format.parser)
        document = parse(path, ParseContext())
    text = "\n\n".join(element.text for element in document.elements if element.text)
    return PageText(
        title=(document.title or "")[:MAX_TITLE_CHARS],
        text=text[:MAX_TEXT_CHARS],
        published_at=published_at,
        is_cut=len(text) > MAX_TEXT_CHARS,
    )


def _published_and_main(content: str) -> tuple[str | None, str | None]:
    """Return the publication date of a page, and the HTML of its main part. Each is None if the page doesn't
    mark it.
    """
    tree = LexborHTMLParser(content)
    articles = tree.css("article")
    main = tree.css_first("main") or (articles[0] if len(articles) == 1 else None)
    tagged = [node.attributes.get("content") for query in _DATE_TAGS for node in tree.css(query)]
    linked = [node.text() for node in tree.css('script[type="application/ld+json"]')]
    dates = [*(date for text in linked for date in _dates_in(text)), *tagged]
    is_main = main is not None and len(main.text()) >= _LEAST_CHARS
    return next(filter(None, map(_as_date, dates)), None), main.html if main is not None and is_main else None


def _dates_in(text: str) -> Iterator[str]:
    try:
        yield from _published(json.loads(text), _MAX_DEPTH)
    except (ValueError, RecursionError):
        return


def _published(value: Any, depth: int) -> Iterator[str]:
    if depth and isinstance(value, list):
        for item in value[:20]:
            yield from _published(item, depth - 1)
    elif depth and isinstance(value, dict):
        if isinstance(date := value.get("datePublished"), str):
            yield date
        yield from _published(value.get("@graph"), depth - 1)
        yield from _published(value.get("mainEntity"), depth - 1)


def _as_date(text: str | None) -> str | None:
    """Return a date unchanged if it is in ISO 8601 format, otherwise None."""
    date = (text or "").strip()
    if not re.fullmatch(r"\d{4}-\d\d-\d\d(T[\d:.]{4,15}(Z|[+-]\d\d:?\d\d)?)?", date):
        return None
    try:
        datetime.fromisoformat(date)
    except ValueError:
        return None
    return date
