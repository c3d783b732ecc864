"""Breaks down a question's time by step, based on the times of steps and recorded requests. Pure."""

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
    """A step of a run, from its scheduling to the recording of its end, in seconds since the epoch."""

    kind: str
    began: float
    ended: float


@dataclass(frozen=True)
class Part:
    """A part of a question's time, in milliseconds. `busy_ms` is the time during which a request was open, by
    kind of server.

    `own_ms` is the time without open requests, spent in the app's code and the executor.
    """

    kind: str
    wall_ms: float
    busy_ms: dict[str, float]
    own_ms: float
    requests: dict[str, int]


def parts_of(
    asked_at: float, completed: float, steps: Sequence[Span], exchanges: Sequence[Exchange]
) -> list[Part]:
    """Divide the time from the question to its complete answer into parts: the time before the first step,
    each step, and the time between steps.
    """
    # The last step continues after the answer was sent, but the reader doesn't wait for that.
    spans = [(step.kind, step.began, min(step.ended, completed)) for step in steps]
    gaps = [(one.ended, after.began) for one, after in pairwise(steps)]
    return [
        part(BEFORE, [(asked_at, steps[0].began)], exchanges),
        *(part(kind, [(began, ended)], exchanges) for kind, began, ended in spans),
        part(BETWEEN, gaps, exchanges),
    ]


def part(kind: str, spans: Sequence[tuple[float, float]], exchanges: Iterable[Exchange]) -> Part:
    """Add up the time and the requests within these spans, which must not overlap, to one part."""
    seen = [one for one in exchanges if not one.is_poll]
    busy = {name: _covered_seconds(spans, [one for one in seen if kind_of(one) == name]) for name in KINDS}
    wall = sum(end - start for start, end in spans)
    counts = Counter(kind_of(one) for one in seen if any(start <= one.began < end for start, end in spans))
    return Part(
        kind,
        wall * 1000,
        {name: seconds * 1000 for name, seconds in busy.items()},
        (wall - _covered_seconds(spans, seen)) * 1000,
        {name: counts[name] for name in KINDS},
    )


def kind_of(exchange: Exchange) -> str:
    """Return the kind of server that received a request: "model", "search" or "storage"."""
    return "storage" if exchange.service in STORAGE else exchange.service


def busy_ms(kind: str, began: float, ended: float, exchanges: Iterable[Exchange]) -> float:
    """Return the milliseconds during which at least one request of a kind was open."""
    return _covered_seconds([(began, ended)], [one for one in exchanges if kind_of(one) == kind]) * 1000


def _covered_seconds(spans: Sequence[tuple[float, float]], exchanges: Sequence[Exchange]) -> float:
    """Return the seconds within the spans during which at least one request was open."""
    total = 0.0
    for start, end in spans:
        reached = start
        for one in sorted(exchanges, key=lambda exchange: exchange.began):
            begin, until = max(one.began, reached), min(one.ended, end)
            if until > begin:
                total += until - begin
                reached = until
    return total
