"""OpenTelemetry metrics of sub-agents: the API alone, which does nothing until a deployment sets up an SDK.

It is imported with the first record, off the event loop: that takes some 40 ms, and no start waits for it.
"""

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from shared.models.subagent_metrics import ChildRecord, DecisionRecord, MetricRecord

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram

METER = "groundwork.subagents"


@dataclass(frozen=True)
class Instruments:
    """The instruments; their names, units and attributes are in docs/delegation.md."""

    decisions: "Counter"
    ends: "Counter"
    duration: "Histogram"
    tokens: "Histogram"
    cost: "Histogram"
    claims: "Counter"


async def count(record: MetricRecord) -> None:
    """Add a record to the metrics."""
    instruments = await asyncio.to_thread(instruments_of_process)
    if isinstance(record, DecisionRecord):
        instruments.decisions.add(1, {"decision": record.decision, "profile": record.profile or "none"})
    else:
        _count_child(instruments, record)


@cache
def instruments_of_process() -> Instruments:
    """Made once, by whatever provider is set by then (or later: the API's proxies pass it on)."""
    from opentelemetry import metrics

    meter = metrics.get_meter(METER)
    return Instruments(
        decisions=meter.create_counter(
            "groundwork.subagent.decisions", "{decision}", "Decisions to delegate"
        ),
        ends=meter.create_counter("groundwork.subagent.ends", "{subagent}", "Sub-agents that ended"),
        duration=meter.create_histogram("groundwork.subagent.duration", "s", "Time of a sub-agent"),
        tokens=meter.create_histogram("groundwork.subagent.tokens", "{token}", "Tokens of a sub-agent"),
        cost=meter.create_histogram("groundwork.subagent.cost", "{USD}", "US dollars of a sub-agent"),
        claims=meter.create_counter("groundwork.subagent.claims", "{claim}", "Statements of sub-agents"),
    )


def _count_child(instruments: Instruments, record: ChildRecord) -> None:
    profile = {"profile": record.selected}
    instruments.ends.add(
        1,
        {
            **profile,
            "status": record.status,
            "timed_out": record.timed_out,
            "reduced": record.profile != record.selected,
        },
    )
    if record.latency_ms is not None:
        instruments.duration.record(record.latency_ms / 1000, profile)
    instruments.tokens.record(record.tokens, profile)
    instruments.cost.record(record.cost_usd, profile)
    instruments.claims.add(record.proved, {**profile, "proved": True})
    instruments.claims.add(max(0, record.claims - record.proved), {**profile, "proved": False})
