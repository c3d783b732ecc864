"""Thoughts that a reasoning model writes ahead of its answer, where its server leaves them in the text. Pure.

Only a leading element is a thought: an answer may well speak of `<think>`.
"""

from typing import Literal

_OPENING, _CLOSING = "<think>", "</think>"


class ThoughtFilter:
    """Leaves out of a text that comes in pieces what is in a leading `<think>` element."""

    def __init__(self) -> None:
        self._state: Literal["beginning", "thinking", "thought", "answering"] = "beginning"
        self._held = ""  # what may be a tag, or half of one

    def feed(self, piece: str) -> str:
        """The text up to here that is no thought."""
        if self._state == "answering":
            return piece
        self._held += piece
        if self._state == "beginning":
            self._begin()
        if self._state == "thinking":
            self._think()
        if self._state == "thought" and self._held.strip():
            self._held = self._held.lstrip()
            self._state = "answering"
        return self._let_go() if self._state == "answering" else ""

    def finish(self) -> str:
        """What was held and turned out to be no thought."""
        return self._let_go() if self._state == "beginning" else ""

    def _begin(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(_OPENING):
            self._state = "thinking"
        elif not _OPENING.startswith(begun):
            self._state = "answering"

    def _think(self) -> None:
        _, closed, rest = self._held.partition(_CLOSING)
        if closed:
            self._state, self._held = "thought", rest
        else:
            self._held = self._held[-len(_CLOSING) :]

    def _let_go(self) -> str:
        held, self._held = self._held, ""
        return held


def without_thoughts(text: str) -> str:
    """A whole text without its leading thoughts."""
    thoughts = ThoughtFilter()
    return thoughts.feed(text) + thoughts.finish()
