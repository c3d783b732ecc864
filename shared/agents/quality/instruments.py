"""OpenTelemetry metrics of quality in use: the API alone, which does nothing until an SDK is set up.

It is imported with the first record, off the event loop: that takes some 40 ms, and no start waits for it.
"""

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from shared.models.quality import AnswerRecord, OpeningRecord, QualityRecord, RatingRecord

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram

METER = "groundwork.quality"


@dataclass(frozen=True)
class Instruments:
    """The instruments; their names, units and attributes are in docs/quality.md."""

    answers: "Counter"
    duration: "Histogram"
    first_token: "Histogram"
    citations: "Counter"
    tool_calls: "Counter"
    todo_items: "Counter"
    figures: "Counter"
    ratings: "Counter"
    openings: "Counter"


async def count(record: QualityRecord) -> None:
    """Add a record to the metrics."""
    instruments = await asyncio.to_thread(instruments_of_process)
    if isinstance(record, AnswerRecord):
        _count_answer(instruments, record)
    elif isinstance(record, OpeningRecord):
        instruments.openings.add(1)
    else:
        _count_rating(instruments, record)


@cache
def instruments_of_process() -> Instruments:
    """Made once, by whatever provider is set by then (or later: the API's proxies pass it on)."""
    from opentelemetry import metrics

    meter = metrics.get_meter(METER)
    return Instruments(
        answers=meter.create_counter("groundwork.answers", "{answer}", "Runs that ended"),
        duration=meter.create_histogram("groundwork.answer.duration", "s", "Time of a run"),
        first_token=meter.create_histogram("groundwork.answer.first_token", "s", "Time to the first words"),
        citations=meter.create_counter("groundwork.answer.citations", "{citation}", "Citations shown"),
        tool_calls=meter.create_counter("groundwork.answer.tool_calls", "{call}", "Tool calls"),
        todo_items=meter.create_counter("groundwork.answer.todo_items", "{item}", "Items of todo lists"),
        figures=meter.create_counter("groundwork.answer.figures", "{answer}", "Answers that had a figure"),
        ratings=meter.create_counter("groundwork.answer.ratings", "{rating}", "Ratings given"),
        openings=meter.create_counter("groundwork.answer.openings", "{citation}", "Sources opened"),
    )


def _count_answer(to: Instruments, record: AnswerRecord) -> None:
    outcome = {"outcome": record.outcome}
    delegated = record.sub_agents > 0
    to.answers.add(1, {**outcome, "asked_back": record.asked_back, "delegated": delegated})
    if record.latency_ms is not None:
        to.duration.record(record.latency_ms / 1000, outcome)
    if record.first_token_ms is not None:
        to.first_token.record(record.first_token_ms / 1000)
    to.citations.add(record.citations_verified, {"verified": True})
    to.citations.add(record.citations - record.citations_verified, {"verified": False})
    to.tool_calls.add(record.tool_calls_succeeded, {"success": True})
    to.tool_calls.add(record.tool_calls - record.tool_calls_succeeded, {"success": False})
    to.todo_items.add(record.plan_items_done, {"done": True})
    to.todo_items.add(record.plan_items - record.plan_items_done, {"done": False})
    if record.figures_available:
        to.figures.add(1, {"shown": record.figures_shown > 0})


def _count_rating(to: Instruments, record: RatingRecord) -> None:
    to.ratings.add(1, {"rating": record.rating or 0, "thumb": record.thumb or "none"})
