"""Finds the parts of an answer that a reader can follow, load or mistake for proof. It uses a Markdown parser
that the app doesn't use.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_ADDRESS = re.compile(r"(?:https?|ftp|javascript|data|mailto)://?|(?<![\w\\])www\.", re.IGNORECASE)
_SOURCE = re.compile(r"\(\s*source\s*[:\uff1a]\s*([^,()]*)", re.IGNORECASE)


def links(text: str) -> list[str]:
    """Return every URL to which the text links."""
    return [str(token.attrs["href"]) for token in _tokens(text) if token.type == "link_open"]


def pictures(text: str) -> list[str]:
    """Return every URL that is loaded when the text is displayed."""
    return [str(token.attrs["src"]) for token in _tokens(text) if token.type == "image"]


def markup(text: str) -> list[str]:
    """Return the HTML in the text, except line breaks."""
    fragments = [token.content for token in _tokens(text) if token.type in ("html_inline", "html_block")]
    return [html for html in fragments if not re.fullmatch(r"<br ?/?>", html)]


def addresses(text: str) -> list[str]:
    """Return the bare URLs that clients would turn into links."""
    return [
        address
        for token in _tokens(text)
        if token.type == "text"
        for address in _ADDRESS.findall(token.content)
    ]


def sources(text: str) -> list[str]:
    """Return the file names that the text presents as verified sources."""
    return [name.strip() for plain in _plain_texts(text) for name in _SOURCE.findall(plain)]


def numbers(text: str) -> list[int]:
    """Return the citation numbers in the text."""
    return [
        int(number) for plain in _plain_texts(text) for number in re.findall(r"\[\s*(\d{1,3})\s*\]", plain)
    ]


def _plain_texts(text: str) -> Iterator[str]:
    for token in _MARKDOWN.parse(text):
        if token.type == "inline":
            yield "".join(
                child.content for child in token.children or () if child.type in ("text", "text_special")
            )


def _tokens(text: str) -> Iterator[Token]:
    for token in _MARKDOWN.parse(text):
        yield token
        yield from token.children or ()
