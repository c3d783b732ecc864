"""Where a question's time went, by step. Pure: takes the history's spans and the exchanges, gives figures."""

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
    """A step by its action's kind, from scheduled to recorded as completed; seconds since the epoch."""

    kind: str
    began: float
    ended: float


@dataclass(frozen=True)
class Part:
    """One part of a question's time in milliseconds. `busy`: while at least one such request was open.

    `own`: the time in which none was: our own code, and the executor.
    """

    kind: str
    wall_ms: float
    busy_ms: dict[str, float]
    own_ms: float
    requests: dict[str, int]


def parts_of(
    asked: float, completed: float, steps: Sequence[Span], exchanges: Sequence[Exchange]
) -> list[Part]:
    """The parts of a question that was asked, and answered to its reader, at these moments."""
    # What the last step does after the reader has the answer costs the reader nothing.
    spans = [(step.kind, step.began, min(step.ended, completed)) for step in steps]
    gaps = [(one.ended, after.began) for one, after in pairwise(steps)]
    return [
        part(BEFORE, [(asked, steps[0].began)], exchanges),
        *(part(kind, [(began, ended)], exchanges) for kind, began, ended in spans),
        part(BETWEEN, gaps, exchanges),
    ]


def part(kind: str, spans: Sequence[tuple[float, float]], exchanges: Iterable[Exchange]) -> Part:
    """What happened within spans that do not overlap."""
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
    """Which of KINDS a request is."""
    return "storage" if exchange.service in STORAGE else exchange.service


def busy_ms(kind: str, began: float, ended: float, exchanges: Iterable[Exchange]) -> float:
    """For how long at least one request of a kind was open."""
    return _covered([(began, ended)], [one for one in exchanges if kind_of(one) == kind]) * 1000


def _covered(spans: Sequence[tuple[float, float]], exchanges: Sequence[Exchange]) -> float:
    """Seconds of the spans in which at least one exchange was open."""
    total = 0.0
    for start, end in spans:
        reached = start
        for one in sorted(exchanges, key=lambda exchange: exchange.began):
            begin, until = max(one.began, reached), min(one.ended, end)
            if until > begin:
                total += until - begin
                reached = until
    return total
