"""Breakdown of a question's time by step. Pure: spans of the history and exchanges in, figures out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.answer.tap import Exchange

STORAGE = frozenset({"blob", "table", "queue"})
KINDS = ("model", "search", "storage")
BEFORE, BETWEEN = "before the first step", "between steps"


@dataclass(frozen=True)
class Span:
    """A step by its kind, from scheduling to recorded completion, in seconds since the epoch."""

    kind: str
    began: float
    ended: float


@dataclass(frozen=True)
class Part:
    """A part of a question's time in milliseconds. `busy` is the time with at least one open request of a
    kind.

    `own` is the time without any: our own code and the executor.
    """

    kind: str
    wall_ms: float
    busy_ms: dict[str, float]
    own_ms: float
    requests: dict[str, int]


def parts_of(
    asked_at: float, completed: float, steps: Sequence[Span], exchanges: Sequence[Exchange]
) -> list[Part]:
    """Return the parts of a question between asking and the reader's answer."""
    # Work of the last step after the answer was sent doesn't delay the reader.
    spans = [(step.kind, step.began, min(step.ended, completed)) for step in steps]
    gaps = [(one.ended, after.began) for one, after in pairwise(steps)]
    return [
        part(BEFORE, [(asked_at, steps[0].began)], exchanges),
        *(part(kind, [(began, ended)], exchanges) for kind, began, ended in spans),
        part(BETWEEN, gaps, exchanges),
    ]


def part(kind: str, spans: Sequence[tuple[float, float]], exchanges: Iterable[Exchange]) -> Part:
    """Summarise what happened within non-overlapping spans."""
    seen = [one for one in exchanges if not one.is_poll]
    busy = {name: _covered(spans, [one for one in seen if kind_of(one) == name]) for name in KINDS}
    wall = sum(end - start for start, end in spans)
    counts = Counter(kind_of(one) for one in seen if any(start <= one.began < end for start, end in spans))
    return Part(
        kind,
        wall * 1000,
        {name: seconds * 1000 for name, seconds in busy.items()},
        (wall - _covered(spans, seen)) * 1000,
        {name: counts[name] for name in KINDS},
    )


def kind_of(exchange: Exchange) -> str:
    """Return which of KINDS a request is."""
    return "storage" if exchange.service in STORAGE else exchange.service


def busy_ms(kind: str, began: float, ended: float, exchanges: Iterable[Exchange]) -> float:
    """Return how long at least one request of a kind was open."""
    return _covered([(began, ended)], [one for one in exchanges if kind_of(one) == kind]) * 1000


def _covered(spans: Sequence[tuple[float, float]], exchanges: Sequence[Exchange]) -> float:
    """Return the seconds of the spans in which at least one exchange was open."""
    total = 0.0
    for start, end in spans:
        reached = start
        for one in sorted(exchanges, key=lambda exchange: exchange.began):
            begin, until = max(one.began, reached), min(one.ended, end)
            if until > begin:
                total += until - begin
                reached = until
    return total
