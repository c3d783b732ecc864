"""Words of others inside our own sentences: names of files, titles, people, tags, options. Pure.

Who uploads a file names it, and others read that name in ` (Source: manual.pdf, S. 3)[1]`. So:

- `one_line`: any text on one line, in which nothing is hidden and no client finds a link;
- `shown_name`: a name that, moreover, closes no parenthesis of ours and looks like no source of ours;
- `markdown_text`, `markdown_name`: Markdown that shows the same, also at the start of a line.

HTML has `documents.page_html.as_text`, cards have `teams.outgoing`, terminals `cli.terminal.clean`.
"""

import re
import unicodedata

from shared.retrieval.metadata_text import visible_line

_BRACKETS = "()[]"
_NO_PARENTHESES = str.maketrans("()", "  ")
_NUMBER = re.compile(r"\[\s*(\d{1,4})\s*\]")
_PAIR = re.compile(r"\(([^()]{0,60})\)")

# Letters that look like those of "Source" and are none, after NFKC and in lower case.
_LOOK_ALIKE = str.maketrans("ѕоοսгᴦсϲеҽε", "soourrcceee")

# Clients make links of these.
_ADDRESS = re.compile(r"(?<![^\W_])www(?=\.)|:(?=//)|(?<=\w)(?=@\w)", re.IGNORECASE)
_MARKUP = re.compile(r"[\\`*|~\[\]]|(?<![^\W_])_|_(?![^\W_])")  # an underscore inside a word is none
_ENTITY_START = re.compile(r"&(?=#?\w+;)")
_BLOCK_SIGN = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+#=]))")  # of a list, a heading


def one_line(text: str) -> str:
    """The text on one line, its addresses parted."""
    return _ADDRESS.sub(r"\g<0> ", visible_line(text)).strip()


def shown_name(name: str) -> str:
    """A name as it may stand between our own words: of parentheses, short pairs alone are left."""
    seen = [(sign, unicodedata.normalize("NFKC", sign)) for sign in name]
    line = _NUMBER.sub(r"(\1)", "".join(plain if plain in _BRACKETS else sign for sign, plain in seen))
    kept: list[str] = []
    position = 0
    for pair in _PAIR.finditer(line):
        is_harmless = "source" not in as_seen(pair[1])
        kept += [line[position : pair.start()].translate(_NO_PARENTHESES)]
        kept += [pair[0] if is_harmless else pair[0].translate(_NO_PARENTHESES)]
        position = pair.end()
    return one_line("".join((*kept, line[position:].translate(_NO_PARENTHESES))))


def markdown_text(text: str) -> str:
    """Markdown that shows `one_line(text)`."""
    shown = _ENTITY_START.sub("&amp;", _MARKUP.sub(r"\\\g<0>", one_line(text)))
    return _BLOCK_SIGN.sub(r"\1\\", shown.replace("<", "&lt;").replace(">", "&gt;"))


def markdown_name(name: str) -> str:
    """Markdown that shows `shown_name(name)`."""
    return markdown_text(shown_name(name))


def as_seen(text: str) -> str:
    """The letters that a reader sees, whatever stands for them, in lower case."""
    visible = "".join(sign for sign in text if unicodedata.category(sign) not in ("Cf", "Mn"))
    return unicodedata.normalize("NFKC", visible).lower().translate(_LOOK_ALIKE)
