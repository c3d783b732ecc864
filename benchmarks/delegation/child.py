"""What a sub-agent adds to a question beside its model's time, against the same question without sub-agents.

Both are asked of one stack, whose host is restarted in between; taps tell when the model was called.
"""

import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from benchmarks.answer.asking import ask, steps_of
from benchmarks.answer.breakdown import busy_ms
from benchmarks.answer.tap import Taps
from benchmarks.answer.tapped import tapped
from local.run_all.stack import LocalStack
from samples.acl import ANNA

MAX_CHILD_MS = 150.0  # the aim: of one child, without model time
QUESTIONS = (
    "Compare the revenue in the annual report 2023 and the annual report 2024.",
    "Summarise the Heron 400 installation guide.",
    "Which passage says how often the bearings of the Heron 400 must be greased?",
)
# The sample documents are short: their comparisons and summaries would need no sub-agent.
ARMS = {
    "with": {"SUBAGENTS_ENABLED": "true", "WHOLE_DOCUMENTS_TOKENS": "0"},
    "without": {"SUBAGENTS_ENABLED": "false"},
}
_PREFIX = "/runtime/webhooks/durabletask/instances"


@dataclass(frozen=True)
class Asked:
    """One question in milliseconds.

    Attributes:
        own_ms: the whole time less the time with a call of the model open.
        children_ms: of each sub-agent the same, from the moment its parent scheduled it until it was told.
        searches_ms: the part of these in which a search was open.
    """

    question: str
    total_ms: float
    own_ms: float
    children_ms: tuple[float, ...]
    searches_ms: tuple[float, ...]


def measure(rounds: int) -> dict[str, list[Asked]]:
    """Each question so often with sub-agents and without, in turns."""
    taps = Taps()
    groups: dict[str, list[Asked]] = {arm: [] for arm in ARMS}
    with (
        tempfile.TemporaryDirectory(prefix="groundwork-bench-", ignore_cleanup_errors=True) as folder,
        tapped(Path(folder), taps) as stack,
    ):
        for _ in range(rounds):
            for arm, settings in ARMS.items():
                stack.kill_host()
                stack.start_host(settings)
                _ask(stack, taps, QUESTIONS[0])  # the first of a process opens connections and loads modules
                groups[arm] += [_ask(stack, taps, question) for question in QUESTIONS]
    return groups


def summary(groups: dict[str, list[Asked]]) -> dict[str, Any]:
    """Medians, and how what sub-agents add compares with the baseline, which is the same question without."""
    own = {arm: [one.own_ms for one in asked] for arm, asked in groups.items()}
    pairs = list(zip(own["with"], own["without"], strict=True))
    children = [child for one in groups["with"] for child in one.children_ms]
    searches = [child for one in groups["with"] for child in one.searches_ms]
    return {
        "questions": len(pairs),
        "children": len(children),
        "own_ms": {arm: _spread(values) for arm, values in own.items()},
        "added_ms": _spread([with_ - without for with_, without in pairs]),
        "ratio_to_without": _spread([with_ / without for with_, without in pairs]),
        "child_ms": _spread(children),
        "child_searches_ms": _spread(searches),
        "load": os.getloadavg()[0],
    }


def _ask(stack: LocalStack, taps: Taps, question: str) -> Asked:
    asked = ask(stack, stack.token(ANNA), question, None)
    steps_of(stack, asked.run_id)  # waits until the orchestration has ended
    seen = taps.between(asked.asked, asked.completed)
    total = (asked.completed - asked.asked) * 1000
    spans = _children(stack, asked.run_id)
    return Asked(
        question=question,
        total_ms=total,
        own_ms=total - busy_ms("model", asked.asked, asked.completed, seen),
        children_ms=tuple((end - begin) * 1000 - busy_ms("model", begin, end, seen) for begin, end in spans),
        searches_ms=tuple(busy_ms("search", begin, end, seen) for begin, end in spans),
    )


def _children(stack: LocalStack, run_id: str) -> list[tuple[float, float]]:
    """When the parent scheduled each child, and when it learned of its end; seconds since the epoch."""
    told = httpx.get(
        f"{stack.base_url}{_PREFIX}/{run_id}", params={"showHistory": "true"}, headers=stack.host_headers
    ).json()
    ended = [one for one in told["historyEvents"] if one["EventType"] == "SubOrchestrationInstanceCompleted"]
    return [(_moment(one["ScheduledTime"]), _moment(one["Timestamp"])) for one in ended]


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return {name: round(value, 2) for name, value in (("p50", statistics.median(ordered)), ("p95", p95))}


def as_text(told: dict[str, Any]) -> str:
    """A table for people."""
    lines = [
        f"{told['children']} sub-agents of {told['questions']} questions",
        "",
        "| | p50 | p95 |",
        "|---|---|---|",
    ]
    rows = {
        "question without sub-agents, ms": told["own_ms"]["without"],
        "with sub-agents, ms": told["own_ms"]["with"],
        "added, ms": told["added_ms"],
        "with / without": told["ratio_to_without"],
        "one sub-agent, ms": told["child_ms"],
        "of it searches, ms": told["child_searches_ms"],
    }
    lines += [f"| {name} | {value.get('p50', '')} | {value.get('p95', '')} |" for name, value in rows.items()]
    return "\n".join([*lines, "", f"All without the model's time; load {told['load']:.1f}"])
