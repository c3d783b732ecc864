"""Single signs of Markdown in model text, unable to begin a link, a picture, HTML or a forged proof. Pure.

Each rule looks at what is shown before the sign, not at what the model wrote: taking something out can
never put a forbidden pattern together.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

TAIL_CHARS = 48  # what the rules see of the text before
_FORGED_NUMBER = re.compile(r"\[\s*\d{1,3}\s*\\?\Z")
_FORGED_SOURCE = re.compile(r"\([\s*_\\]*source[\s*_\\]*\Z")
# Letters that look like those of "Source" and are none, after NFKC and in lower case.
_LOOK_ALIKE = str.maketrans("ѕоοսгᴦсϲеҽε", "soourrcceee")
_WWW = re.compile(r"(?<![^\W_])www\Z", re.IGNORECASE)
_WORD_OR_CELL = re.compile(r"[\w|]")
_LINE_BREAKS = ("<br>", "<br/>", "<br />")
_HARMLESS_AFTER_LESS_THAN = re.compile(r"[\s\d=]")
_BRACKET_ENTITIES = ("&#", "&lbrack;", "&lsqb;", "&lpar;")


def shown_sign(window: str, tail: str, line: Sequence[str], *, may_grow: bool) -> tuple[str, int] | None:
    """What is shown for the sign that `window` begins with, and how many characters that stands for.

    None when more text must come first.

    Args:
        window: the model's text from the sign on.
        tail: the last characters shown before.
        line: what is shown of the line before, in parts.
        may_grow: whether more text may come behind `window`.
    """
    rules: dict[str, Callable[[], tuple[str, int] | None]] = {
        "]": lambda: (")" if _FORGED_NUMBER.search(tail) else "]", 1),
        "(": lambda: (" (" if tail.endswith("]") else "(", 1),
        "/": lambda: (" /" if tail.endswith(":/") else "/", 1),
        ".": lambda: (" ." if _WWW.search(tail) else ".", 1),
        ":": lambda: _colon(window, tail, may_grow=may_grow),
        "\uff1a": lambda: _colon(window, tail, may_grow=may_grow),
        "<": lambda: _less_than(window, line, may_grow=may_grow),
        "&": lambda: _ampersand(window, may_grow=may_grow),
    }
    return rules[window[0]]()


def _colon(window: str, tail: str, *, may_grow: bool) -> tuple[str, int] | None:
    if may_grow and _is_cut_off(window, ("://",)):
        return None
    before = " unchecked" if _FORGED_SOURCE.search(_as_seen(tail)) else " " if tail.endswith("]") else ""
    return (f"{before}: //", 3) if window.startswith("://") else (f"{before}{window[0]}", 1)


def _as_seen(text: str) -> str:
    """The letters that a reader sees, whatever stands for them."""
    visible = "".join(sign for sign in text if unicodedata.category(sign) not in ("Cf", "Mn"))
    return unicodedata.normalize("NFKC", visible).lower().translate(_LOOK_ALIKE)


def _less_than(window: str, line: Sequence[str], *, may_grow: bool) -> tuple[str, int] | None:
    if may_grow and (len(window) == 1 or _is_cut_off(window.lower(), _LINE_BREAKS)):
        return None
    tag = next((tag for tag in _LINE_BREAKS if window.lower().startswith(tag)), None)
    # Cells of tables need line breaks; at the start of a line one would begin a block of HTML.
    if tag is not None and any(_WORD_OR_CELL.search(part) for part in line):
        return window[: len(tag)], len(tag)
    return ("<" if _HARMLESS_AFTER_LESS_THAN.match(window, 1) else "&lt;"), 1


def _ampersand(window: str, *, may_grow: bool) -> tuple[str, int] | None:
    if may_grow and _is_cut_off(window, _BRACKET_ENTITIES):
        return None
    return ("&amp;" if window.startswith(_BRACKET_ENTITIES) else "&"), 1


def _is_cut_off(window: str, words: Iterable[str]) -> bool:
    """Whether `window` is the beginning of a word, and not a whole one."""
    return any(len(window) < len(word) and word.startswith(window) for word in words)
