"""Quality metrics over a period, for administrators."""

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

from shared.platform.settings import Settings
from shared.quality.models import (
    AnswerCounts,
    AnswerRecord,
    Measure,
    OpeningRecord,
    Outcome,
    QualityMeasures,
    QualityMetrics,
    QualityRecord,
    RatingRecord,
    Ratings,
    Times,
)
from shared.quality.store import QualityStore
from shared.runs.models import Reason, RunAnswer, RunRecord, WritingFacts

Number = TypeVar("Number", int, float)


def percentile(values: Sequence[Number], share: float) -> Number | None:
    """Return a percentile of `values` by the nearest-rank method, or None if there are no values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def answer_record(record: RunRecord, answer: RunAnswer | None, facts: WritingFacts) -> AnswerRecord:
    """Build the quality record of a finished run. The caller sets its key."""
    asked_back, todo = record.ask_step > 0, record.todo
    outcome: Outcome = "cancelled" if record.status == "cancelled" else "failed"
    if record.status == "completed" and answer is not None:
        outcome = "abstained" if answer.abstained else "answered"
    took = None if asked_back or record.finished_at is None else record.finished_at - record.created_at
    counted = AnswerRecord(
        key="",
        at=record.created_at,
        outcome=outcome,
        asked_back=asked_back,
        plan_items=len(todo),
        plan_items_done=sum(item.status == "done" for item in todo),
        figures_available=facts.figures_available,
        latency_ms=None if took is None else max(0, round(took / timedelta(milliseconds=1))),
        first_token_ms=facts.first_token_ms,
    )
    if answer is None:
        return counted
    return counted.model_copy(
        update={
            # Figures found by sub-agents were available too.
            "figures_available": max(facts.figures_available, len(answer.figures)),
            "figures_shown": len(answer.figures),
            "citations": len(answer.citations),
            "citations_verified": sum(one.verified or one.kind == "table" for one in answer.citations),
            "warnings": len(answer.warnings),
        }
    )


@dataclass
class QualitySums:
    """Sums over the records of a period. All records of one run must be passed in one call."""

    project_id: str | None = None
    runs: list[AnswerRecord] = field(default_factory=list)
    ratings: list[RatingRecord] = field(default_factory=list)
    opened: int = 0

    def add(self, records: Iterable[QualityRecord]) -> None:
        """Add records to the sums. If a project is set, only records of runs in that project are counted."""
        answers: dict[str, AnswerRecord] = {}
        ratings: dict[str, RatingRecord] = {}
        openings: set[str] = set()
        for record in records:
            if isinstance(record, AnswerRecord):
                answers[record.key] = record
            elif isinstance(record, OpeningRecord):
                openings.add(record.key)
            else:
                ratings[record.key] = record
        if self.project_id is not None:
            answers = {key: one for key, one in answers.items() if one.project_id == self.project_id}
            ratings = {key: one for key, one in ratings.items() if key in answers}
        self.runs.extend(answers.values())
        self.ratings.extend(ratings.values())
        self.opened += sum(_is_cited(answers[key]) for key in openings if key in answers)

    def counts(self) -> AnswerCounts:
        """Return the number of runs with each outcome."""
        outcomes = Counter(run.outcome for run in self.runs)
        return AnswerCounts(
            runs=len(self.runs),
            answered=outcomes["answered"],
            abstained=outcomes["abstained"],
            failed=outcomes["failed"],
            cancelled=outcomes["cancelled"],
            asked_back=sum(run.asked_back for run in self.runs),
            delegated=sum(bool(run.children) for run in self.runs),
            with_warnings=sum(run.warnings > 0 for run in self.runs),
        )

    def rating_summary(self) -> Ratings:
        """Return the summary of user ratings."""
        numbers = [one.rating for one in self.ratings if one.rating is not None]
        frequencies = Counter(numbers)
        reasons: Counter[Reason] = Counter(reason for one in self.ratings for reason in set(one.reasons))
        return Ratings(
            rated=len(self.ratings),
            average=round(sum(numbers) / len(numbers), 3) if numbers else None,
            distribution=(frequencies[1], frequencies[2], frequencies[3], frequencies[4], frequencies[5]),
            thumbs_up=sum(one.thumb == "up" for one in self.ratings),
            thumbs_down=sum(one.thumb == "down" for one in self.ratings),
            reasons=dict(sorted(reasons.items())),
            comments=sum(one.has_comment for one in self.ratings),
        )

    def times(self) -> Times:
        """Return percentiles of the time taken by runs that ended with an answer."""
        completed = [run for run in self.runs if _is_completed(run)]
        latencies = [run.latency_ms for run in completed if run.latency_ms is not None]
        first = [run.first_token_ms for run in completed if run.first_token_ms is not None]
        return Times(
            latency_p50_ms=percentile(latencies, 0.50),
            latency_p95_ms=percentile(latencies, 0.95),
            first_token_p50_ms=percentile(first, 0.50),
            first_token_p95_ms=percentile(first, 0.95),
        )

    def measures(self) -> QualityMeasures:
        """Return the quality measures together with their targets."""
        runs = self.runs
        completed = [run for run in runs if _is_completed(run)]
        cited = [run for run in completed if _is_cited(run)]
        pictured = [run for run in runs if run.outcome == "answered" and run.figures_available]
        planned = [run for run in runs if run.plan_items and run.outcome != "cancelled"]
        ended = [run for run in runs if run.outcome != "cancelled"]
        asked_back = sum(run.asked_back for run in runs)
        calls, citations = sum(run.tool_calls for run in runs), sum(run.citations for run in completed)
        return QualityMeasures(
            click_through_rate=_measure(self.opened, len(cited), "lower", 0.30, operator.le),
            answers_with_figures=_measure(
                sum(run.figures_shown > 0 for run in pictured), len(pictured), "higher", 0.60
            ),
            plan_completion=_measure(
                # Every item is done, without a clarification.
                sum(run.plan_items_done == run.plan_items and not run.asked_back for run in planned),
                len(planned),
                "higher",
                0.80,
            ),
            clarification_rate=_measure(asked_back, len(runs), "lower", 0.20, operator.lt),
            tool_success=_measure(sum(run.tool_calls_succeeded for run in runs), calls, "higher", 0.95),
            citation_accuracy=_measure(
                sum(run.citations_verified for run in completed), citations, "higher", 1.0
            ),
            abstention_rate=_measure(
                sum(run.outcome == "abstained" for run in completed), len(completed), "lower"
            ),
            failure_rate=_measure(sum(run.outcome == "failed" for run in ended), len(ended), "lower"),
        )


def _measure(
    part: int,
    whole: int,
    better: Literal["higher", "lower"],
    aim: float | None = None,
    meets: Callable[[float, float], bool] = operator.ge,
) -> Measure:
    """Return `part` as a share of the total; `meets(value, aim)` compares it with its target."""
    if not whole:
        return Measure(value=None, of=0, better=better, aim=aim)
    value = part / whole
    meets_aim = None if aim is None else meets(value, aim)
    return Measure(value=round(value, 4), of=whole, better=better, aim=aim, met=meets_aim)


def _is_completed(run: AnswerRecord) -> bool:
    return run.outcome in ("answered", "abstained")


def _is_cited(run: AnswerRecord) -> bool:
    return _is_completed(run) and run.citations > 0


MOST_RECORDS = 100_000  # per request: 1.6 s of CPU time and 160 MB, besides reading
_DAY = timedelta(days=1)


async def read_period(
    quality: QualityStore, now: datetime, hours: int
) -> tuple[datetime, list[QualityRecord]]:
    """Return the start of the period that was read, and the quality records of the period.

    It covers the last `hours`, or a shorter time if there are more than `MOST_RECORDS` records.

    Raises:
        GroundworkError: the records can't be read.
    """
    since, records = now - timedelta(hours=hours), list[QualityRecord]()
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    covered = now
    # Read the newest day first, so that the record limit drops the oldest records. A run's records share a
    # day.
    while day + _DAY > since and len(records) < MOST_RECORDS:
        covered, last = max(day, since), min(day + _DAY, now)
        in_period = quality.between(covered, last)
        records += [record async for record in in_period if covered <= record.at < last]
        day -= _DAY
    return covered, records


async def quality_metrics(
    quality: QualityStore, now: datetime, hours: int, project_id: str | None = None
) -> QualityMetrics:
    """Return the measures of the last `hours`. Raise GroundworkError if the records can't be read."""
    since, records = await read_period(quality, now, hours)
    sums = QualitySums(project_id)
    sums.add(records)
    return QualityMetrics(
        since=since,
        until=now,
        complete=since == now - timedelta(hours=hours),
        project_id=project_id,
        answers=sums.counts(),
        ratings=sums.rating_summary(),
        times=sums.times(),
        measures=sums.measures(),
    )


async def purge_old_quality(
    now: datetime, settings: Settings, quality: QualityStore, most: int = 10_000
) -> int:
    """Delete up to `most` records older than RUN_RETENTION_DAYS. Return their number."""
    limit = now - timedelta(days=settings.conversations.run_retention_days)
    return await quality.delete_before(limit, most)
