"""Sanitises names and other text from users for use in sentences of the app. Pure.

File names, titles, people, tags and options are untrusted: the uploader of a file chooses its name, and other
users read it in ` (Source: manual.pdf, S. 3)[1]`.

- `one_line`: any text on one line, with nothing hidden and nothing that a client turns into a link;
- `shown_name`: also can't close a surrounding parenthesis or imitate a source;
- `markdown_text`, `markdown_name`: Markdown that displays the same, also at the start of a line.

HTML uses `documents.page_html.as_text`, cards `teams.outgoing`, terminals `cli.terminal.clean`.
"""

import re
import unicodedata

from shared.retrieval.metadata_text import visible_line

_BRACKETS = "()[]"
_NO_PARENTHESES = str.maketrans("()", "  ")
_NUMBER = re.compile(r"\[\s*(\d{1,4})\s*\]")
_PAIR = re.compile(r"\(([^()]{0,60})\)")

# Characters that resemble the letters of "Source", after NFKC normalisation and in lower case.
_LOOK_ALIKE = str.maketrans("ѕоοսгᴦсϲеҽε", "soourrcceee")

# Clients turn text that contains these signs into links.
_ADDRESS = re.compile(r"(?<![^\W_])www(?=\.)|:(?=//)|(?<=\w)(?=@\w)", re.IGNORECASE)
_MARKUP = re.compile(r"[\\`*|~\[\]]|(?<![^\W_])_|_(?![^\W_])")  # Underscores inside a word are not markup.
_ENTITY_START = re.compile(r"&(?=#?\w+;)")
# Matches characters that would start a list or a heading.
_BLOCK_SIGN = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+#=]))")


def one_line(text: str) -> str:
    """Return the text on one line. Spaces are inserted into web and mail addresses so that clients don't turn
    them into links.
    """
    return _ADDRESS.sub(r"\g<0> ", visible_line(text)).strip()


def shown_name(name: str) -> str:
    """Return a name on one line that can't imitate a citation in a sentence of the app. Only short balanced
    parentheses are kept.
    """
    seen = [(sign, unicodedata.normalize("NFKC", sign)) for sign in name]
    line = _NUMBER.sub(r"(\1)", "".join(plain if plain in _BRACKETS else sign for sign, plain in seen))
    parts: list[str] = []
    position = 0
    for pair in _PAIR.finditer(line):
        is_harmless = "source" not in as_seen(pair[1])
        parts += [line[position : pair.start()].translate(_NO_PARENTHESES)]
        parts += [pair[0] if is_harmless else pair[0].translate(_NO_PARENTHESES)]
        position = pair.end()
    return one_line("".join((*parts, line[position:].translate(_NO_PARENTHESES))))


def markdown_text(text: str) -> str:
    """Return the text on one line, escaped so that Markdown clients show it literally."""
    escaped = _ENTITY_START.sub("&amp;", _MARKUP.sub(r"\\\g<0>", one_line(text)))
    return _BLOCK_SIGN.sub(r"\1\\", escaped.replace("<", "&lt;").replace(">", "&gt;"))


def markdown_name(name: str) -> str:
    """Return a file or user name for a sentence of the app, escaped so that Markdown clients show it
    literally.
    """
    return markdown_text(shown_name(name))


def as_seen(text: str) -> str:
    """Return the text in lower case, with look-alike characters replaced by the letters that they imitate."""
    visible = "".join(sign for sign in text if unicodedata.category(sign) not in ("Cf", "Mn"))
    return unicodedata.normalize("NFKC", visible).lower().translate(_LOOK_ALIKE)
