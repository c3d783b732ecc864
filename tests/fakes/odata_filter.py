"""OData filters over rows in memory. Only the forms that the application writes are supported; others raise
an error.

Grammar: comparisons, `search.in`, `collection/any(x: …)`, `and`, `or`, `not`, parentheses.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

from shared.platform.errors import InvalidQueryError

Row = dict[str, Any]
Condition = Callable[[Row], bool]

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))|(?P<number>-?\d+(?:\.\d+)?)"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<mark>[(),:/]))"
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda left, right: bool(left == right),
    "ne": lambda left, right: bool(left != right),
    "gt": lambda left, right: left is not None and bool(left > right),
    "ge": lambda left, right: left is not None and bool(left >= right),
    "lt": lambda left, right: left is not None and bool(left < right),
    "le": lambda left, right: left is not None and bool(left <= right),
}
_CONSTANTS = {"true": True, "false": False, "null": None}


@lru_cache(maxsize=256)
def compile_filter(text: str | None) -> Condition:
    """Compile the filter to a predicate on rows. A filter of None matches every row."""
    if text is None:
        return lambda row: True
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._position = 0

    def parse(self) -> Condition:
        condition = self._any_of()
        if self._position != len(self._tokens):
            raise self._error()
        return condition

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise self._error()
            tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        return tokens

    def _any_of(self) -> Condition:
        parts = [self._all_of()]
        while self._accept("or"):
            parts.append(self._all_of())
        return lambda row: any(part(row) for part in parts)

    def _all_of(self) -> Condition:
        parts = [self._single()]
        while self._accept("and"):
            parts.append(self._single())
        return lambda row: all(part(row) for part in parts)

    def _single(self) -> Condition:
        if self._accept("not"):
            inner = self._single()
            return lambda row: not inner(row)
        if self._accept("("):
            inner = self._any_of()
            self._expect(")")
            return inner
        name = self._take("name")
        if name == "search.in":
            return self._search_in()
        if self._accept("/"):
            return self._lambda(name)
        compare = _COMPARE.get(self._take("name"))
        if compare is None:
            raise self._error()
        value = self._value()
        return lambda row: compare(row.get(name), value)

    def _search_in(self) -> Condition:
        self._expect("(")
        name = self._take("name")
        self._expect(",")
        values = str(self._value())
        delimiter = str(self._value()) if self._accept(",") else ","
        self._expect(")")
        choices = set(values.split(delimiter))
        return lambda row: row.get(name) in choices

    def _lambda(self, collection: str) -> Condition:
        self._expect("any")
        self._expect("(")
        variable = self._take("name")
        self._expect(":")
        inner = self._any_of()
        self._expect(")")
        return lambda row: any(inner({variable: value}) for value in row.get(collection) or ())

    def _value(self) -> Any:
        kind, text = self._tokens[self._position] if self._position < len(self._tokens) else ("", "")
        self._position += 1
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text)
        if kind == "time":
            return text
        # In filters of tables, such as datetime'2026-03-01T12:00:00Z'.
        if kind == "name" and text == "datetime":
            return datetime.fromisoformat(str(self._value()))
        if kind == "name" and text in _CONSTANTS:
            return _CONSTANTS[text]
        raise self._error()

    def _take(self, kind: str) -> str:
        if self._position < len(self._tokens) and self._tokens[self._position][0] == kind:
            self._position += 1
            return self._tokens[self._position - 1][1]
        raise self._error()

    def _accept(self, text: str) -> bool:
        if self._position < len(self._tokens) and self._tokens[self._position][1] == text:
            self._position += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._error()

    def _error(self) -> InvalidQueryError:
        return InvalidQueryError(f"The fake index cannot read the filter: {self._text}")
