"""Counts the steps of a backtracking matcher, so that tests detect excessive growth without a clock.

`re` has no such counter and a clock tells about the machine. This matcher backtracks as `re` does, without
its shortcuts, on trees of `re`'s own parser. Bounded repetitions end at BOUND, so that their growth ends
within the short texts that are tried.
"""

import importlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# These modules are private and untyped, but the same from Python 3.11 to 3.14.
c: Any = importlib.import_module("re._constants")
_parser: Any = importlib.import_module("re._parser")

BOUND = 6
MOST = 40_000  # maximum number of steps, which a linear pattern never reaches with the texts of the tests
MOST_PUMPS = 16
_CANDIDATES = "a0 A_-.,:;/\\|\"'()[]{}<>`~*#&!\n\t\r\0é…"
_CATEGORIES = {
    c.CATEGORY_DIGIT: str.isdigit,
    c.CATEGORY_SPACE: str.isspace,
    c.CATEGORY_WORD: lambda sign: sign.isalnum() or sign == "_",
}
_NEGATED = {
    c.CATEGORY_NOT_DIGIT: c.CATEGORY_DIGIT,
    c.CATEGORY_NOT_SPACE: c.CATEGORY_SPACE,
    c.CATEGORY_NOT_WORD: c.CATEGORY_WORD,
}
_SINGLE = (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN)
_REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
Then = Callable[[int], bool]
Nodes = Sequence[tuple[Any, Any]]


class _EndlessError(Exception):
    """Error raised after MOST steps."""


class StepCounter:
    """A step counter for one pattern. If `everywhere` is False, it matches only at the start of a text."""

    def __init__(self, pattern: re.Pattern[Any], *, everywhere: bool) -> None:
        self._flags = pattern.flags
        self.nodes: Nodes = list(_parser.parse(pattern.pattern, pattern.flags))
        self._everywhere = everywhere
        self._text, self._steps = "", 0
        self._groups: dict[int, str] = {}
        self._known: dict[tuple[int, str], bool] = {}

    def steps(self, text: str) -> float:
        """Return the number of steps to find all matches in a text, as finditer does, or infinity if it
        exceeds MOST.
        """
        try:
            self._find(text)
        except _EndlessError:
            return math.inf
        return self._steps

    def _find(self, text: str) -> None:
        self._text, self._steps, start = text, 0, 0
        while start <= len(text):
            self._groups.clear()
            end = self._end(self.nodes, start)
            if not self._everywhere:
                break
            start = start + 1 if end is None else max(end, start + 1)

    def takes(self, node: tuple[Any, Any], sign: str) -> bool:
        """Return whether a node for one character matches this character."""
        key = (id(node), sign)
        if key not in self._known:
            forms = {sign, sign.lower(), sign.upper()} if self._flags & re.IGNORECASE else {sign}
            # The upper case of "ß" has two characters, and `re` doesn't match it either.
            self._known[key] = any(_takes(node, one, self._flags) for one in forms if len(one) == 1)
        return self._known[key]

    def _end(self, nodes: Nodes, place: int) -> int | None:
        ends: list[int] = []

        def keep(end: int) -> bool:
            ends.append(end)
            return True

        return ends[0] if self._sequence(nodes, 0, place, keep) else None

    def _sequence(self, nodes: Nodes, at: int, place: int, then: Then) -> bool:
        if at == len(nodes):
            return then(place)
        return self._node(nodes[at], place, lambda end: self._sequence(nodes, at + 1, end, then))

    def _node(self, node: tuple[Any, Any], place: int, then: Then) -> bool:
        operation, value = node
        self._steps += 1
        if self._steps > MOST:
            raise _EndlessError
        if operation in _SINGLE:
            return place < len(self._text) and self.takes(node, self._text[place]) and then(place + 1)
        if operation in _REPEATS:
            return self._repeat(operation, value, place, then)
        if operation is c.BRANCH:
            return any(self._sequence(list(one), 0, place, then) for one in value[1])
        if operation is c.SUBPATTERN:
            return self._group(value, place, then)
        if operation is c.GROUPREF:
            text = self._groups.get(value)
            return text is not None and self._text.startswith(text, place) and then(place + len(text))
        return self._assertion(operation, value, place) and then(place)

    def _group(self, value: Any, place: int, then: Then) -> bool:
        def close(end: int) -> bool:
            self._groups[value[0]] = self._text[place:end]
            return then(end)

        return self._sequence(list(value[3]), 0, place, close)

    def _assertion(self, operation: Any, value: Any, place: int) -> bool:
        if operation is c.AT:
            return self._is_at(value, place)
        if operation not in (c.ASSERT, c.ASSERT_NOT):
            raise NotImplementedError(operation)
        direction, body = value
        start = place if direction > 0 else place - body.getwidth()[0]
        is_there = start >= 0 and self._sequence(
            list(body), 0, start, lambda end: direction > 0 or end == place
        )
        return is_there is (operation is c.ASSERT)

    def _is_at(self, kind: Any, place: int) -> bool:
        text, is_multiline = self._text, bool(self._flags & re.MULTILINE)
        if kind in (c.AT_BEGINNING, c.AT_BEGINNING_STRING):
            lines = is_multiline and kind is c.AT_BEGINNING
            return place == 0 or (lines and text[place - 1] == "\n")
        if kind in (c.AT_END, c.AT_END_STRING):
            lines = is_multiline and kind is c.AT_END
            rest = text[place:]
            return not rest or (kind is c.AT_END and rest == "\n") or (lines and rest[0] == "\n")
        before, after = (text[at : at + 1] if at >= 0 else "" for at in (place - 1, place))
        is_border = bool(re.match(r"\w", before)) is not bool(re.match(r"\w", after))
        return is_border is (kind is c.AT_BOUNDARY)

    def _repeat(self, operation: Any, value: Any, place: int, then: Then) -> bool:
        least, most, body = value[0], value[1], list(value[2])
        most = most if most is c.MAXREPEAT else min(most, max(least, BOUND))
        if operation is c.POSSESSIVE_REPEAT:
            return then(self._furthest(body, most, place))
        if len(body) == 1 and body[0][0] in _SINGLE:
            return self._run(body[0], least, most, place, then, is_greedy=operation is c.MAX_REPEAT)

        def again(count: int, at: int) -> bool:
            def further(end: int) -> bool:
                return (end > at or count < least) and again(count + 1, end)

            def more() -> bool:
                return count < most and self._sequence(body, 0, at, further)

            self._steps += 1
            if operation is c.MAX_REPEAT:
                return more() or (count >= least and then(at))
            return (count >= least and then(at)) or more()

        return again(0, place)

    def _run(
        self, node: tuple[Any, Any], least: int, most: Any, place: int, then: Then, *, is_greedy: bool
    ) -> bool:
        """Match a repetition of a single-character node, without recursion for each character."""
        end = self._furthest([node], most, place)
        lengths = range(least, end - place + 1)
        for length in reversed(lengths) if is_greedy else lengths:
            self._steps += 1
            if then(place + length):
                return True
        return False

    def _furthest(self, body: Nodes, most: Any, place: int) -> int:
        for _ in range(len(self._text) if most is c.MAXREPEAT else most):
            end = self._end(body, place)
            if end is None:
                break
            place = end
        return place


def _takes(node: tuple[Any, Any], sign: str, flags: int) -> bool:
    operation, value = node
    if operation is c.LITERAL:
        return bool(ord(sign) == value)
    if operation is c.NOT_LITERAL:
        return bool(ord(sign) != value)
    if operation is c.ANY:
        return sign != "\n" or bool(flags & re.DOTALL)
    if operation is c.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    if operation is c.CATEGORY:
        return _CATEGORIES[value](sign) if value in _CATEGORIES else not _CATEGORIES[_NEGATED[value]](sign)
    is_negated = bool(value) and value[0][0] is c.NEGATE
    return any(_takes(one, sign, flags) for one in value[is_negated:]) is not is_negated


def hostile_texts(counter: StepCounter, times: int) -> Iterator[str]:
    """Yield texts with which the unlimited repetitions of the pattern match `times` times and then fail."""
    pumps = dict.fromkeys(_pumps(counter, counter.nodes, ""))
    for prefix, pump in itertools.islice(pumps, MOST_PUMPS):
        for suffix in ("", "\0", "\n!"):
            yield prefix + pump * times + suffix
        yield (prefix + pump) * times + "\0"


def _pumps(counter: StepCounter, nodes: Nodes, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield (prefix, pump) for each unlimited repetition: a text that precedes it, and a text that it
    repeats.
    """
    for node in nodes:
        operation, value = node
        if operation in _REPEATS:
            if value[1] is c.MAXREPEAT:
                yield from ((prefix, pump) for pump in _samples(counter, list(value[2])) if pump)
            yield from _pumps(counter, list(value[2]), prefix)
        elif operation is c.SUBPATTERN:
            yield from _pumps(counter, list(value[3]), prefix)
        elif operation is c.BRANCH:
            for one in value[1]:
                yield from _pumps(counter, list(one), prefix)
        elif operation in (c.ASSERT, c.ASSERT_NOT):
            yield from _pumps(counter, list(value[1]), prefix)
        prefix += _samples(counter, [node])[0]


def _samples(counter: StepCounter, nodes: Nodes) -> list[str]:
    """Return up to four short texts that the nodes match."""
    samples = [""]
    for node in nodes:
        operation, value = node
        if operation in _SINGLE:
            own = [sign for sign in _own_signs(node) + _CANDIDATES if counter.takes(node, sign)]
        elif operation in _REPEATS:
            own = [one * value[0] for one in _samples(counter, list(value[2]))] + [""] * (value[0] == 0)
            own = own[-1:] if value[0] == 0 else own
        elif operation is c.SUBPATTERN:
            own = _samples(counter, list(value[3]))
        elif operation is c.BRANCH:
            own = [text for one in value[1] for text in _samples(counter, list(one))[:2]]
        else:
            own = [""]
        samples = [before + after for after in dict.fromkeys(own[:12]) for before in samples][:4]
    return samples or [""]


def _own_signs(node: tuple[Any, Any]) -> str:
    operation, value = node
    if operation is c.LITERAL:
        return chr(value)
    if operation is c.RANGE:
        return chr(value[0])
    return "".join(map(_own_signs, value)) if operation is c.IN else ""
