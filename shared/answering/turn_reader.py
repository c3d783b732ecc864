"""Telling a note on progress from the answer while a turn is written. Pure, incremental.

Text before `<answer>` is a thought. Text without the tag is the answer if the turn calls no tool, which is
known only at its end; but a turn that cites has begun its answer, whether it says so or not.

A fence of Markdown around the whole answer is taken off: it would show tables and headings as code.
"""

import re

_TAG = re.compile(r"</?answer>", re.IGNORECASE)
_TAGS = ("<answer>", "</answer>")
_TAG_CHARS = max(map(len, _TAGS))
_WRAPPER = re.compile(r"(?:```|~~~) *(?:markdown|md)[^\S\n]*\n", re.IGNORECASE)
_MAY_BE_WRAPPER = re.compile(r"`{0,3}|~{0,3}|(?:```|~~~) *[a-z]{0,8}[^\S\n]*", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(?:```|~~~)(.*)")
_MAY_BE_FENCE = re.compile(r" {0,3}(?:`{0,2}|~{0,2}|(?:```|~~~).*)")
_CITES = re.compile(r"<(?:cite|figure|gap)\b", re.IGNORECASE)
_GAP = re.compile(r"<gap\b", re.IGNORECASE)


class _Unwrapper:
    """Takes the fence of Markdown off that a text is wrapped in; fences inside it stay."""

    def __init__(self) -> None:
        self._held = ""
        self._is_wrapped: bool | None = None  # None: it has not shown yet
        self._is_in_code = False
        self._at_line_start = True

    def feed(self, text: str, *, at_end: bool = False) -> str:
        """The text without its wrapper, as far as it is certain."""
        self._held += text
        if self._is_wrapped is None:
            wrapper = _WRAPPER.match(self._held)
            if wrapper is None and not at_end and _MAY_BE_WRAPPER.fullmatch(self._held):
                return ""
            self._is_wrapped = wrapper is not None
            self._held = self._held[wrapper.end() :] if wrapper else self._held
        shown = ""
        while self._is_wrapped and self._held:
            line, line_end, rest = self._held.partition("\n")
            if self._at_line_start and not line_end and not at_end and _MAY_BE_FENCE.fullmatch(line):
                return shown
            if not (self._at_line_start and self._ends_wrapper(line)):
                shown += line + line_end
            self._held, self._at_line_start = rest, bool(line_end)
        shown, self._held = shown + self._held, ""
        return shown

    def _ends_wrapper(self, line: str) -> bool:
        fence = _FENCE.fullmatch(line)
        if fence is None:
            return False
        if self._is_in_code or fence[1].strip():
            self._is_in_code = not self._is_in_code
            return False
        self._is_wrapped = False
        return True


class TurnReader:
    """Reads one turn.

    Attributes:
        thought: what stood before the answer; all of the text while no answer has begun.
        has_answer: the answer has begun.
    """

    def __init__(self, *, must_answer: bool = False) -> None:
        """`must_answer`: the turn can call no tool, so that all of its text is the answer."""
        self.thought = ""
        self.has_answer = must_answer
        self._held = ""
        self._has_text = False
        self._unwrapper = _Unwrapper()

    def feed(self, piece: str) -> str:
        """The next text of the answer; empty while it has not begun."""
        if self.has_answer:
            return self._answer(piece)
        self.thought += piece
        if begun := _TAG.search(self.thought):
            answer, self.thought = self.thought[begun.end() :], self.thought[: begun.start()]
        elif _CITES.search(self.thought):
            answer, self.thought = self.thought, ""
        else:
            return ""
        self.has_answer = True
        return self._answer(answer)

    def finish(self, *, is_answer: bool) -> str:
        """The rest of the answer. `is_answer`: the turn calls no tool, so that it is one."""
        if not self.has_answer and is_answer:
            self.has_answer, text, self.thought = True, self.thought, ""
            return self._answer(text) + self._rest()
        return self._rest()

    def _answer(self, piece: str) -> str:
        """Text without the tags, whatever pieces they come in."""
        text = _TAG.sub("", self._held + piece)
        if not self._has_text:
            text = text.lstrip()
        cut = next(
            (
                place
                for place in range(max(0, len(text) - _TAG_CHARS), len(text))
                if any(tag.startswith(text[place:].lower()) for tag in _TAGS)
            ),
            len(text),
        )
        self._held = text[cut:]
        self._has_text = self._has_text or cut > 0
        return self._unwrapper.feed(text[:cut])

    def _rest(self) -> str:
        rest, self._held = self._held, ""
        return self._unwrapper.feed(rest, at_end=True)


def from_first_gap(said: str) -> str:
    """What a turn wrote from its first gap on, and readers have not seen yet."""
    begun = _GAP.search(said)
    return _TAG.sub("", said[begun.start() :]) if begun else ""
