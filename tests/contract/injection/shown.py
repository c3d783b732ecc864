"""What a reader of an answer can follow, load or take for proved, found by a Markdown parser of its own."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_ADDRESS = re.compile(r"(?:https?|ftp|javascript|data|mailto)://?|(?<![\w\\])www\.", re.IGNORECASE)
_SOURCE = re.compile(r"\(\s*source\s*[:\uff1a]\s*([^,()]*)", re.IGNORECASE)


def links(text: str) -> list[str]:
    """Every address that the text links to."""
    return [str(token.attrs["href"]) for token in _tokens(text) if token.type == "link_open"]


def pictures(text: str) -> list[str]:
    """Every address that showing the text would load."""
    return [str(token.attrs["src"]) for token in _tokens(text) if token.type == "image"]


def markup(text: str) -> list[str]:
    """HTML in the text, line breaks apart."""
    found = [token.content for token in _tokens(text) if token.type in ("html_inline", "html_block")]
    return [html for html in found if not re.fullmatch(r"<br ?/?>", html)]


def addresses(text: str) -> list[str]:
    """What a reader that makes links of bare addresses would make one of."""
    return [
        found for token in _tokens(text) if token.type == "text" for found in _ADDRESS.findall(token.content)
    ]


def sources(text: str) -> list[str]:
    """File names that the text gives as checked sources."""
    return [name.strip() for plain in _plain_texts(text) for name in _SOURCE.findall(plain)]


def numbers(text: str) -> list[int]:
    """Citation numbers that the text shows."""
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
