"""JSON objects in the midst of text, as models write them. Pure."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

_MOST_STARTS = 20  # braces at which an object is looked for: prose may be full of them


class Found(NamedTuple):
    """An object, and the characters of the text that it takes: from `start`, before `end`."""

    start: int
    end: int
    value: dict[str, Any]


def objects_in(text: str) -> Iterator[Found]:
    """Objects in the order of the text; those within another one are part of that one."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_MOST_STARTS):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # the latter: thousands of braces
            end = at + 1
        else:
            yield Found(at, end, value)
        at = text.find("{", end)


class ObjectPieces:
    """Of a text that comes in pieces: the first object in it, without what is around it."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._is_escaped = False
        self._is_done = False

    def feed(self, piece: str) -> str:
        """What of the piece belongs to the object."""
        return "".join(sign for sign in piece if self._belongs(sign))

    def _belongs(self, sign: str) -> bool:
        if self._is_done or (self._depth == 0 and sign != "{"):
            return False
        if self._in_string:
            self._in_string = self._is_escaped or sign != '"'
            self._is_escaped = sign == "\\" and not self._is_escaped
            return True
        self._in_string = sign == '"'
        self._depth += (sign in "{[") - (sign in "}]")
        self._is_done = self._depth == 0
        return True
