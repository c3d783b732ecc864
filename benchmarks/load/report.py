"""Summarises a load run: percentiles, throughput, memory and faults. Pure."""

import math
import os
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.load.visitor import Asked
from benchmarks.load.watching import Sample, Watch, slope_mb_per_minute
from local.run_all.stack import FUNCTIONS_HOST

MOMENTS = ("first_event", "first_token", "ended")
HEADINGS = {"first_event": "first event", "first_token": "first token", "ended": "completion"}
GROWTH_LIMIT_MB_PER_MINUTE = 8.0
"""Faster growth is a fault. Memory that Python retains after a burst is less: 1 to 4 were measured."""
SHOWN_FAULTS = 20
# The process that runs the app, as opposed to its host.
WORKER = "Functions worker"


def phase(questions: Sequence[Asked], watch: Watch, began: float, ended: float, users: int) -> dict[str, Any]:
    """Return the summary of a phase. `began` and `ended` are values of time.monotonic()."""
    seconds = ended - began
    samples = [one for one in watch.samples if began <= one.at <= ended]
    return {
        "users": users,
        "seconds": round(seconds, 1),
        "questions": len(questions),
        "questions_per_s": round(len(questions) / seconds, 2),
        "outcomes": dict(Counter(one.outcome or "no end" for one in questions)),
        "behaviours": dict(Counter(one.behaviour for one in questions)),
        "reconnects": sum(one.reconnects for one in questions),
        "faults": [f"{one.run_id}: {fault}" for one in questions for fault in one.faults][:SHOWN_FAULTS],
        "errors": sum(bool(one.faults) for one in questions),
        "ms": {name: percentiles(_times(questions, name)) for name in MOMENTS},
        "health_ms": percentiles([took for at, took in watch.probes_ms if began <= at <= ended]),
        "processes": {name: _process(name, samples) for name in watch.pids},
    }


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """Return p50, p95, p99 and maximum of the values. All are None if there are no values."""
    ranked = sorted(values)
    if not ranked:
        return dict.fromkeys(("p50", "p95", "p99", "max"))
    return {
        "p50": round(statistics.median(ranked), 1),
        "p95": _at(ranked, 0.95),
        "p99": _at(ranked, 0.99),
        "max": round(ranked[-1], 1),
    }


def growth(results: dict[str, Any]) -> list[str]:
    """Return a message for each process whose memory grew too fast in the second half of a phase. `results`
    is the summary of that phase.
    """
    return [
        f"{name} grows by {seen['second_half_mb_per_minute']:.1f} MB a minute"
        for name, seen in results["processes"].items()
        if name in (FUNCTIONS_HOST, WORKER) and seen["second_half_mb_per_minute"] > GROWTH_LIMIT_MB_PER_MINUTE
    ]


def as_text(alone: dict[str, Any], crowd: dict[str, Any]) -> str:
    """Format the summaries of both phases as Markdown tables."""
    phases = (alone, crowd)
    lines = [f"| | {' | '.join(_heading(one) for one in phases)} |", "|---|---|---|"]
    for name in MOMENTS:
        cells = [_row(one["ms"][name]) for one in phases]
        lines.append(f"| {HEADINGS[name]}, ms: p50 / p95 / p99 | {' | '.join(cells)} |")
    lines.append(f"| health, ms: p50 / p95 / p99 | {' | '.join(_row(one['health_ms']) for one in phases)} |")
    lines.append(f"| questions a second | {' | '.join(str(one['questions_per_s']) for one in phases)} |")
    lines.append(f"| errors | {' | '.join(str(one['errors']) for one in phases)} |")
    lines += ["", "| process, under load | MB at start | at end | MB a minute, second half | cores busy |"]
    lines.append("|---|---|---|---|---|")
    lines += [
        f"| {name} | {seen['first_mb']} | {seen['last_mb']} | {seen['second_half_mb_per_minute']} "
        f"| {seen['cores']} |"
        for name, seen in crowd["processes"].items()
    ]
    outcomes = ", ".join(f"{count} {name}" for name, count in crowd["outcomes"].items())
    return "\n".join([*lines, "", f"Under load: {outcomes}; {crowd['reconnects']} reconnections."])


def _heading(one: dict[str, Any]) -> str:
    return f"{one['users']} user{'s' if one['users'] > 1 else ''}, {one['seconds']:.0f} s"


def _row(values: dict[str, float | None]) -> str:
    return " / ".join(
        "-" if values[name] is None else f"{values[name]:.0f}" for name in ("p50", "p95", "p99")
    )


def _times(questions: Sequence[Asked], name: str) -> list[float]:
    """Return the milliseconds from each question to the named event. Questions that were cancelled or resumed
    count only for the first event.
    """
    counted = questions if name == "first_event" else [one for one in questions if one.behaviour == "reads"]
    return [took for one in counted if (took := one.since_sent(name)) is not None]


def _at(ranked: Sequence[float], share: float) -> float:
    # Percentile by the nearest-rank method.
    return round(ranked[math.ceil(share * len(ranked)) - 1], 1)


def _process(name: str, samples: Sequence[Sample]) -> dict[str, float]:
    if not samples:
        return dict.fromkeys(("first_mb", "last_mb", "most_mb", "second_half_mb_per_minute", "cores"), 0.0)
    rss = [(one.at, one.rss_mb[name]) for one in samples]
    first, last = samples[0], samples[-1]
    seconds = max(last.at - first.at, 1e-9)
    return {
        "first_mb": round(rss[0][1], 1),
        "last_mb": round(rss[-1][1], 1),
        "most_mb": round(max(size for _, size in rss), 1),
        "mb_per_minute": round(slope_mb_per_minute(rss), 2),
        "second_half_mb_per_minute": round(slope_mb_per_minute(rss[len(rss) // 2 :]), 2),
        "cores": round((last.cpu_s[name] - first.cpu_s[name]) / seconds, 2),
    }


def machine() -> dict[str, Any]:
    """Return the number of cores and the load average of this machine."""
    return {"cores": os.cpu_count(), "load": os.getloadavg()}
