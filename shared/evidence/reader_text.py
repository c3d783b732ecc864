"""Sanitises text from a model while it is streamed, so that it contains no links, HTML or forged citations.
Pure.

A model may follow instructions in a document. Outside code, its text therefore can't load a
picture, link anywhere, contain HTML, or imitate a proved source ` (Source: manual.pdf, S. 3)[1]`:

- `[text](target)` and `![text](target)` become `text`; `[1]` becomes `(1)`; `(Source:` `(Source unchecked:`;
- control, invisible and bidirectional characters are removed;
- `&amp;` becomes `&` where it can't form another entity;
- anything that could still begin a link, picture, reference or HTML is broken by a space or a backslash.

Code is what every CommonMark reader treats as code: fences at the start of a line, and spans within one line
of a paragraph that has no open backtick. Everything else counts as text. The first line of a fence keeps only
the name of a language, because some readers take it for a table header.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Self

from shared.evidence.untrusted_text import as_seen

TAIL_CHARS = 48  # number of emitted characters that the rules can inspect
_FORGED_NUMBER = re.compile(r"\[\s*\d{1,3}\s*\\?\Z")
_FORGED_SOURCE = re.compile(r"\([\s*_\\]*source[\s*_\\]*\Z")
_WWW = re.compile(r"(?<![^\W_])www\Z", re.IGNORECASE)
_LETTER_OR_CELL = re.compile(r"[^\W\d_]|\|")
_LINE_BREAKS = ("<br>", "<br/>", "<br />")
_HARMLESS_AFTER_LESS_THAN = re.compile(r"[\s\d=]")
_JOINING = ("&", "`", "~")
_BRACKET_ENTITIES = ("&#", "&lbrack;", "&lsqb;", "&lpar;")
# Matches an escaped ampersand, as models copy it from prompts. The text that follows may not turn it into
# another entity: "&amp;lt;" stays.
_ESCAPED_AMPERSAND = re.compile(r"&(?:amp;){1,2}(?=[A-Za-z]?[\s.,)-])")
_OPEN_AMPERSAND = re.compile(r"&(?:amp;){0,2}(?:amp?|[A-Za-z])?\Z")


def shown_sign(window: str, tail: str, line: Sequence[str], *, may_grow: bool) -> tuple[str, int] | None:
    """Return the safe replacement for the first character of `window`, and the number of characters that it
    replaces. Return None if more input is needed.

    Args:
        window: the model's text from the sign on.
        tail: the last characters emitted.
        line: parts of the current line as emitted.
        may_grow: whether more text may follow `window`.
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
    before = " unchecked" if _FORGED_SOURCE.search(as_seen(tail)) else " " if tail.endswith("]") else ""
    return (f"{before}: //", 3) if window.startswith("://") else (f"{before}{window[0]}", 1)


def _less_than(window: str, line: Sequence[str], *, may_grow: bool) -> tuple[str, int] | None:
    if may_grow and _is_cut_off(window.lower(), _LINE_BREAKS):
        return None
    tag = next((tag for tag in _LINE_BREAKS if window.lower().startswith(tag)), None)
    # Keep a line break after text or in a table cell. At the start of a line or after a list number, escape
    # it, because there it would start an HTML block.
    if tag is not None and any(_LETTER_OR_CELL.search(part) for part in line):
        return window[: len(tag)], len(tag)
    return ("<" if _HARMLESS_AFTER_LESS_THAN.match(window, 1) else "&lt;"), 1


def _ampersand(window: str, *, may_grow: bool) -> tuple[str, int] | None:
    if may_grow and (_is_cut_off(window, _BRACKET_ENTITIES) or _OPEN_AMPERSAND.match(window)):
        return None
    if escaped := _ESCAPED_AMPERSAND.match(window):
        return "&", escaped.end()
    return ("&amp;" if window.startswith(_BRACKET_ENTITIES) else "&"), 1


def _is_cut_off(window: str, words: Iterable[str]) -> bool:
    """Return whether `window` is a proper prefix of one of the words, so that later input may complete it."""
    return any(len(window) < len(word) and word.startswith(window) for word in words)


# maximum number of withheld characters; a longer link, code span or fence line is emitted as plain text
_MAX_HELD = 500
_SPECIAL = re.compile(r"[`~!\[\](:\uff1a/.<&]")
_RUN = re.compile(r"`+|~+")
MAX_FENCE_CHARS = 16  # longer fences are escaped, because each part of a split message repeats its fence
_FENCE = re.compile(r"(?:(`{3,16})(?P<info>[^`\n]*)|(~{3,16}+)(?!~)(?P<tilde_info>[^\n]*))\n")
_CODE_LANGUAGE = re.compile(r"[ \t]*([\w+#.-]{1,30})(?=\s|\Z)")
# Matches a code fence in a list or after indentation. Its end depends on whether the list continues.
_INNER_FENCE = re.compile(r"(?=[ \t>\d*+-])([ \t>*+-]|\d{1,9}[.)])*(`{3,}(?=[^`]*\Z)|~{3,})")
_FENCE_CLOSES = re.compile(r" {0,3}(`+|~+)[ \t]*\Z")
_LABEL = re.compile(r"\[([^\[\]`\\\n]*)\]")
_OPEN_LABEL = re.compile(r"\[[^\[\]`\\\n]*\Z")
_NUMBER = re.compile(r"\s*\d{1,3}\s*")
_TARGET = re.compile(r"""\s*(?:<[^<>]*>|[^\s<]\S*|)(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*""")
_ODD_BACKSLASHES = re.compile(r"(?<!\\)\\(?:\\\\)*\Z")

# A lone carriage return is a line break only in some clients, terminals obey control characters, and
# invisible or bidirectional characters can disguise text.
_SHOWN_AS = {
    ord("\r"): " ",
    **dict.fromkeys(code for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"),
    **dict.fromkeys(
        (0x200B, 0xFEFF, *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xE0000, 0xE0080))
    ),
    ord("\uff3b"): "(",  # Full-width brackets could imitate the brackets of a citation.
    ord("\uff3d"): ")",
}

Shown = tuple[str, int]
"""A piece of output, and the number of input characters that it replaces."""


@dataclass
class ReaderText:
    """An incremental sanitiser for model text. Its output doesn't depend on how the input is split into
    pieces.

    Output is delayed only for text that may still become a link, a code span or the first line of a fence.
    """

    _held: str = ""
    _tail: str = ""
    # Kept as parts, because repeated concatenation would take quadratic time.
    _line: list[str] = field(default_factory=list)
    _fence: str = ""
    _inner_fence: "_InnerFence | None" = None
    _has_open_backtick: bool = False

    def feed(self, text: str) -> str:
        """Sanitise the next piece of model text. Return the output that later input can no longer change."""
        return self._read(self._held + text.translate(_SHOWN_AS), at_end=False)

    @classmethod
    def after(cls, text: str) -> Self:
        """Return a sanitiser in the state after `text`, which was already shown. A code block that `text`
        opens stays open.
        """
        reader = cls()
        reader.feed(text)
        reader.finish()
        return reader

    def note(self, note: str) -> str:
        """Return the withheld model text, sanitised, followed by `note`, which the app wrote and which is not
        sanitised.
        """
        before = self.finish()
        blank = " " if (before or self._tail) and not self._tail[-1:].isspace() else ""
        return before + self.own(blank + note)

    def own(self, text: str) -> str:
        """Record a text that the app wrote and return it unchanged. Call `finish` first to flush withheld
        model text.
        """
        return self._shown(text)

    @property
    def open_fence(self) -> str:
        """The characters that close the open code block, such as three backticks, or "" if no block is
        open.
        """
        return self._fence

    def finish(self) -> str:
        """Return the withheld text, sanitised. Call this at the end of the model's output."""
        return self._read(self._held, at_end=True)

    def _read(self, text: str, *, at_end: bool) -> str:
        self._held = ""
        parts: list[str] = []
        position = 0
        while position < len(text):
            step = self._step(text, position, at_end=at_end)
            if step is None:
                self._held = text[position:]
                break
            parts.append(step[0])
            position += step[1]
        return "".join(parts)

    def _step(self, text: str, position: int, *, at_end: bool) -> Shown | None:
        """Sanitise the text at `position`. Return the output and the number of characters consumed, or None
        if more input is needed.

        Looks ahead at most `_MAX_HELD`, so that the result doesn't depend on how much input has arrived.
        """
        if self._fence:
            end = text.find("\n", position) + 1 or len(text)
            return self._plain(text[position:end])
        special = _SPECIAL.search(text, position)
        start = len(text) if special is None else special.start()
        if start > position:
            return self._plain(text[position:start])
        window = text[position : position + _MAX_HELD]
        may_grow = not at_end and len(window) < _MAX_HELD
        if window[0] in "`~":
            return self._backticks(window, may_grow=may_grow)
        if window[0] in "![":
            return self._bracket(window, may_grow=may_grow)
        return self._sign(window, may_grow=may_grow)

    def _plain(self, text: str) -> Shown:
        return self._shown(text), len(text)

    def _sign(self, window: str, *, may_grow: bool) -> Shown | None:
        sign = shown_sign(window, self._tail, self._line, may_grow=may_grow)
        return None if sign is None else (self._shown(sign[0]), sign[1])

    def _shown(self, text: str) -> str:
        """Record text as emitted and return it unchanged. Each line end updates the code fence and paragraph
        state.
        """
        self._tail = (self._tail + text)[-TAIL_CHARS:]
        *lines, rest = text.split("\n")
        for line in lines:
            self._end_line("".join((*self._line, line)))
            self._line = []
        if rest:
            self._line.append(rest)
        return text

    def _end_line(self, line: str) -> None:
        closing = _FENCE_CLOSES.match(line)
        if self._fence:
            self._fence = "" if closing and closing[1].startswith(self._fence) else self._fence
        elif self._inner_fence is not None:
            self._inner_fence = self._inner_fence.after(line)
        elif inner := _INNER_FENCE.match(line):
            # Tabs have no fixed width, and a quotation ends with its first line without ">".
            is_certain = not {"\t", ">"} & set(inner[0])
            self._inner_fence = _InnerFence(inner[2], inner.start(2), is_certain=is_certain)
        if not line.strip(" \t"):
            self._has_open_backtick = False

    def _backticks(self, window: str, *, may_grow: bool) -> Shown | None:
        """Sanitise a run of backticks or tildes, which may start a code fence or code span or be plain text.
        Return None if more input is needed.
        """
        length = len(window) - len(window.lstrip(window[0]))
        if may_grow and length == len(window):
            return None
        if not self._line and length >= len("```"):
            return self._fence_line(window, length, may_grow=may_grow)
        return (
            self._plain(window[:length])
            if window[0] == "~"
            else self._span(window, length, may_grow=may_grow)
        )

    def _fence_line(self, window: str, length: int, *, may_grow: bool) -> Shown | None:
        if self._inner_fence is not None:
            # This line may close the inner fence or open another, so the following lines are treated as text.
            self._has_open_backtick = True
            return self._plain(window[:length])
        if opening := _FENCE.match(window):
            fence = opening[1] or opening[3]
            language = _CODE_LANGUAGE.match(opening["info"] or opening["tilde_info"] or "")
            fence_text = self._shown(f"{fence}{language[1] if language else ''}\n")
            self._fence, self._has_open_backtick = fence, False
            return fence_text, opening.end()
        if may_grow and "\n" not in window:
            return None
        # Some clients would start a code fence here, so the first character is escaped.
        self._has_open_backtick = True
        return self._shown("\\" + window[:1]), 1

    def _span(self, window: str, length: int, *, may_grow: bool) -> Shown | None:
        if _ODD_BACKSLASHES.search(self._tail):
            return self._plain("`")
        line, line_break, _ = window.partition("\n")
        end = None if self._has_open_backtick else _span_end(line, length)
        may_grow = may_grow and not line_break
        if end is not None and not (may_grow and end == len(window)):
            return self._plain(window[:end])
        if may_grow and not self._has_open_backtick:
            return None
        self._has_open_backtick = True
        return self._plain(window[:length])

    def _bracket(self, window: str, *, may_grow: bool) -> Shown | None:
        """Sanitise text in brackets. Links and images are reduced to their labels, and numbers are rewritten
        so that they don't look like citations.
        """
        start = 1 if window[0] == "!" else 0
        if start == len(window):
            return None if may_grow else self._plain("!")
        if window[start] != "[":
            return self._plain("!")
        label = _LABEL.match(window, start)
        if label is None:
            is_open = may_grow and _OPEN_LABEL.match(window, start)
            return None if is_open else self._open_bracket(start)
        if may_grow and label.end() == len(window):
            return None
        return self._label(window, label, may_grow=may_grow)

    def _label(self, window: str, label: re.Match[str], *, may_grow: bool) -> Shown | None:
        end = label.end()
        if window.startswith("(", end):
            # A link can't extend beyond a blank line, because the paragraph ends there.
            paragraph, blank_line, _ = window[end:].partition("\n\n")
            target_end = _closing_parenthesis(window[:end] + paragraph, end)
            if target_end is None and may_grow and not blank_line:
                return None
            if target_end is not None and _TARGET.fullmatch(window, end + 1, target_end):
                end = target_end + 1
        if _NUMBER.fullmatch(label[1]):
            blank = " " if self._tail.endswith("]") else ""
            return self._shown(f"{blank}({label[1].strip()})"), end
        return self._open_bracket(label.start()) if end == label.end() else (self._link_text(label[1]), end)

    def _link_text(self, label: str) -> str:
        """Sanitise the label of a link whose brackets and target are removed. Spaces in their place keep the
        text before and after them from forming an entity, a code span or a fence.
        """
        is_joined = self._tail.endswith("&") or (self._tail.endswith("~") and label.startswith("~"))
        before = self._shown(" ") if is_joined else ""
        text = self._read(label, at_end=True)
        return before + text + (self._shown(" ") if self._tail.endswith(_JOINING) else "")

    def _open_bracket(self, start: int) -> Shown:
        return self._shown(
            ("!" if start else "") + (" [" if start or self._tail[-1:] in ("]", "!") else "[")
        ), start + 1


@dataclass(frozen=True)
class _InnerFence:
    """A code fence that is indented or inside a list. Markdown clients render it as code, but not all agree
    on where it ends, so its contents are sanitised like other text.

    Attributes:
        signs: backticks or tildes of its first line.
        column: of `signs`, from 0.
        is_certain: whether no line has possibly ended the list. Afterwards a fence at the start of a line may
            begin or end code, so nothing counts as code.
    """

    signs: str
    column: int
    is_certain: bool = True

    def after(self, line: str) -> "_InnerFence | None":
        """Return the state after another line, or None if the line closes the fence for all clients."""
        text = line.strip(" ")
        if not self.is_certain or not text:
            return self
        column = len(line) - len(line.lstrip(" "))
        closing = _FENCE_CLOSES.match(text)
        if closing and closing[1].startswith(self.signs):
            # With another indentation, it ends the code or belongs to it, depending on the list around it.
            return None if column == self.column else replace(self, is_certain=False)
        return self if column >= self.column else replace(self, is_certain=False)


def readable(text: str) -> str:
    """Return a complete model text, sanitised for readers: without links, HTML or forged citations."""
    reader = ReaderText()
    return reader.feed(text) + reader.finish()


def readable_line(text: str) -> str:
    """Return a model text, sanitised and on one line, for use within a sentence of the app.

    Removes backticks, because an open one would turn our following text into code.
    """
    return readable(" ".join(text.replace("`", "'").split()))


def _span_end(line: str, length: int) -> int | None:
    """Return the end of the code span that the `length` backticks at the start of `line` open, or None if it
    isn't closed.

    A span that contains "|" doesn't count, because in a table it would end at the cell border.
    """
    closing = (run for run in _RUN.finditer(line, length) if run[0] == "`" * length)
    end = next((run.end() for run in closing), None)
    return None if end is None or "|" in line[:end] else end


def _closing_parenthesis(window: str, opening: int) -> int | None:
    depths = accumulate({"(": 1, ")": -1}.get(sign, 0) for sign in window[opening:])
    return next((position for position, depth in enumerate(depths, opening) if depth == 0), None)
