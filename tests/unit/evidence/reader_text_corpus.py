"""Hostile Markdown from a seeded generator, and a Markdown parser that finds its active parts."""

import random
import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from shared.evidence.reader_text import ReaderText

HOST = "evil.example"
_INLINE = (
    *("[", "](", "](", "]", "!", "![", ")", "(", "<", ">", ":", "/", "\\", "`", "``", "|", "#", "&"),
    *(f"https://{HOST}/x", f"http://{HOST}", f"//{HOST}", f"www.{HOST}", "://", "https", "HTTPS", "ftp://"),
    *(f"<https://{HOST}>", f"<x@{HOST}>", f"x@{HOST}", "javascript:alert(1)", "data:image/png;base64,xx"),
    *("&#91;", "&lbrack;", "&colon;", "&#x3a;", "&sol;", "&lt;", "&amp;", "&#40;", "&Tab;", "&NewLine;"),
    *("<img src=x>", "<a href=x>", "<br>", "<br/>", "<br ", "<!--", "-->", "<?", "<![CDATA[", "</div>"),
    *("[1]", "[a]", "[a][b]", "[^1]", "(Source: m.pdf, S. 3)[1]", "Source", "**", "_", '"', "'", "\\["),
    *("\u200b", "\u00ad", "\u202e", "\uff3b1\uff3d", "\uff1a//", "\u2028", "\x85", "\x0b", "\r", "\x1b]8;;"),
    *("a", "word", " ", "  ", "\t", "$", "^", "{{"),
)
_LINES = (
    *("\n", "\n\n", "\n\n\n", "\n    ", "\n   ", "\n  ", "\n ", "\n- ", "\n1. ", "\n> ", "\n- - ", "\n\t"),
    *("```", "~~~", "````", "~~~~", "\n```", "\n~~~", "\n   ```", "\n ~~~", "\n- ```", "\n```js\n"),
    *(
        "\n```\n",
        "\n~~~\n",
        "\n  ```\n",
        "\n   ```\n",
        "\n> ```\n",
        "\n|---|---|\n",
        "\n-|-\n",
        "\n---\n",
        "\n===\n",
        "| a | b |",
        "- ",
    ),
    *(f"\n[a]: https://{HOST}/x\n", f"[2]: https://{HOST}", f"\n[Sign in](https://{HOST}/login)\n"),
    *(f"![p](https://{HOST}/i.png) | b", "[x](/api/documents/1)", f"[^1]: https://{HOST}", "\n<div>\n"),
)
_CODE = ("fence", "code_block", "code_inline")
_EXTENDED_AUTOLINK = re.compile(r"(?<![^\W_])www\.|(?:https?|ftp)://", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)


def hostile_texts(count: int, seed: int) -> Iterator[tuple[str, random.Random]]:
    """Yield texts of 2 to 16 parts, each with the random generator for further choices."""
    source = random.Random(seed)
    for _ in range(count):
        parts = (source.choice(source.choice((_INLINE, _LINES))) for _ in range(source.randint(2, 16)))
        yield "".join(parts), source


def in_pieces(text: str, source: random.Random) -> str:
    """Return the text that readers see if it is streamed in pieces of 1 to 6 characters."""
    reader, parts, position = ReaderText(), [], 0
    while position < len(text):
        end = position + source.randint(1, 6)
        parts.append(reader.feed(text[position:end]))
        position = end
    return "".join([*parts, reader.finish()])


def live_parts(text: str, own: frozenset[str] = frozenset()) -> list[str]:
    """Return the links, pictures and HTML that a Markdown parser finds, except those in `own`.

    CommonMark with tables and raw HTML by markdown-it, and the bare addresses that GitHub's Markdown links.

    Args:
        own: targets of our own links and pictures.
    """
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    live: list[str] = []
    for token in _all_tokens(parser.parse(text)):
        if token.type in ("link_open", "image"):
            target = str(token.attrs.get("href") or token.attrs.get("src"))
            live += [] if target in own else [f"{token.type} {target}"]
        elif token.type in ("html_block", "html_inline"):
            live += [] if _LINE_BREAK.fullmatch(token.content.strip()) else [token.content]
        elif token.type == "text" and _EXTENDED_AUTOLINK.search(token.content):
            live.append(token.content)
    return live


def _all_tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        if token.type in _CODE:
            continue
        yield token
        yield from _all_tokens(token.children or [])
