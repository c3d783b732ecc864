"""Recording of ratings and opened sources. The comment of a rating is stored only with the run.

All channels rate through this module. The last rating counts; deleting the run deletes it.
"""

import asyncio
import hashlib
from datetime import UTC, datetime
from functools import partial

from shared.access.models import UserContext
from shared.platform import meters
from shared.platform.blobs import BlobStore
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.quality.models import AnswerRecord, OpeningRecord, QualityRecord, RatingRecord
from shared.quality.services import QualityServices
from shared.quality.store import QualityStore
from shared.runs.events import CitationEvent, events_of
from shared.runs.journal import committed_answer, current_record
from shared.runs.models import Feedback, FeedbackBody, RunRecord
from shared.runs.run_log import RunLog
from shared.runs.run_store import RunStore, owned_run

METER = "groundwork.quality"
SUBAGENT_METER = "groundwork.subagents"


async def count(record: QualityRecord) -> None:
    """Add a record to the metrics described in docs/logs-and-traces.md."""
    await asyncio.to_thread(_count, record)  # the first call imports opentelemetry


def _count(record: QualityRecord) -> None:
    counter, histogram = partial(meters.counter, METER), partial(meters.histogram, METER)
    if isinstance(record, OpeningRecord):
        counter("groundwork.answer.openings", "{citation}", "Sources opened").add(1)
        return
    if isinstance(record, RatingRecord):
        attributes = {"rating": record.rating or 0, "thumb": record.thumb or "none"}
        counter("groundwork.answer.ratings", "{rating}", "Ratings given").add(1, attributes)
        return
    _count_sub_agents(record)
    outcome = {"outcome": record.outcome}
    ended = {**outcome, "asked_back": record.asked_back, "delegated": bool(record.children)}
    counter("groundwork.answers", "{answer}", "Runs that ended").add(1, ended)
    if record.latency_ms is not None:
        duration = histogram("groundwork.answer.duration", "s", "Time of a run")
        duration.record(record.latency_ms / 1000, outcome)
    if record.first_token_ms is not None:
        first_token = histogram("groundwork.answer.first_token", "s", "Time to the first words")
        first_token.record(record.first_token_ms / 1000)
    citations = counter("groundwork.answer.citations", "{citation}", "Citations shown")
    citations.add(record.citations_verified, {"verified": True})
    citations.add(record.citations - record.citations_verified, {"verified": False})
    tool_calls = counter("groundwork.answer.tool_calls", "{call}", "Tool calls")
    tool_calls.add(record.tool_calls_succeeded, {"success": True})
    tool_calls.add(record.tool_calls - record.tool_calls_succeeded, {"success": False})
    todo_items = counter("groundwork.answer.todo_items", "{item}", "Items of todo lists")
    todo_items.add(record.plan_items_done, {"done": True})
    todo_items.add(record.plan_items - record.plan_items_done, {"done": False})
    if record.figures_available:
        figures = counter("groundwork.answer.figures", "{answer}", "Answers that had a figure")
        figures.add(1, {"shown": record.figures_shown > 0})


def _count_sub_agents(record: AnswerRecord) -> None:
    counter, histogram = partial(meters.counter, SUBAGENT_METER), partial(meters.histogram, SUBAGENT_METER)
    for decision in record.decisions:
        decided = {"decision": decision.decision, "profile": decision.profile or "none"}
        decisions = counter(
            "groundwork.subagent.decisions", "{decision}", "Decisions of the delegation policy"
        )
        decisions.add(1, decided)
    for child in record.children:
        profile = {"profile": child.selected}
        reduced = child.profile != child.selected
        ended = {**profile, "status": child.status, "timed_out": child.timed_out, "reduced": reduced}
        counter("groundwork.subagent.ends", "{subagent}", "Sub-agents that ended").add(1, ended)
        if child.latency_ms is not None:
            duration = histogram("groundwork.subagent.duration", "s", "Duration of a sub-agent")
            duration.record(child.latency_ms / 1000, profile)
        tokens = histogram("groundwork.subagent.tokens", "{token}", "Tokens used by a sub-agent")
        tokens.record(child.tokens, profile)
        cost = histogram("groundwork.subagent.cost", "{USD}", "Cost of a sub-agent in US dollars")
        cost.record(child.cost_usd, profile)
        claims = counter("groundwork.subagent.claims", "{claim}", "Statements of sub-agents")
        claims.add(child.proved, {**profile, "proved": True})
        claims.add(max(0, child.claims - child.proved), {**profile, "proved": False})


NOTE_LIMIT_S = 5.0  # a few milliseconds are usual; a starved machine stalls for seconds


def key_of(run_id: str) -> str:
    """Return the stable key of a run's quality records. It is a digest, because records outlive runs and must
    not identify them.
    """
    return hashlib.sha256(f"quality of {run_id}".encode()).hexdigest()[:32]


async def keep(record: AnswerRecord | OpeningRecord, quality: QualityStore) -> None:
    """Store a record, and add it to the metrics unless it was stored before."""
    try:
        async with asyncio.timeout(NOTE_LIMIT_S):
            if not await quality.add(record):
                return
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("quality.write_failed", kind=record.kind, error_type=type(failed).__name__)
    await count(record)


async def note_opening(run_id: str, n: int, user: UserContext, services: QualityServices) -> None:
    """Record that the user opened the source of citation `n` of one of their runs.

    Never raises, and takes at most 5 s for its three round trips. Foreign or unknown runs and invalid numbers
    are ignored. It runs in the background while the source is shown.
    """
    try:
        async with asyncio.timeout(NOTE_LIMIT_S):
            await open_source(run_id, n, user, services)
    except NotFoundError:
        return  # a made-up or forwarded URL
    except Exception as failed:  # noqa: BLE001  # a source that is shown must not fail for being counted
        get_logger().warning("quality.write_failed", kind="opening", error_type=type(failed).__name__)


async def open_source(run_id: str, n: int, user: UserContext, services: QualityServices) -> None:
    """Record that the user opened a source, like `note_opening`, but let errors propagate.

    Raises:
        NotFoundError: the user has no such run, or it has no such citation.
    """
    record = await owned_run(run_id, user, services.runs)
    if n not in await _cited_numbers(record, services.blobs, services.run_log):
        raise NotFoundError(f"The run has no citation {n}.", "Use a number in its `citations`.")
    await keep(OpeningRecord(key=key_of(record.run_id), at=record.created_at, n=n), services.quality)


async def _cited_numbers(record: RunRecord, blobs: BlobStore, run_log: RunLog) -> frozenset[int]:
    if record.status == "completed":
        answer = await committed_answer(record.run_id, blobs, run_log)
        return frozenset(citation.n for citation in answer.citations)
    if not record.has_log:
        return frozenset()
    events = events_of(await run_log.read(record.run_id))
    return frozenset(event.n for event in events if isinstance(event, CitationEvent))


_ENDED = ("completed", "failed", "cancelled")


async def rate_run(
    run_id: str, rating: FeedbackBody, user: UserContext, services: QualityServices
) -> Feedback:
    """Store the user's rating of one of their runs, replacing an earlier one.

    Raises:
        NotFoundError: the user has no such run.
        ConflictError: the run has not ended.
    """
    record = await owned_run(run_id, user, services.runs)
    record = await current_record(record, services.run_log)
    if record.status not in _ENDED:
        raise ConflictError("The run has not ended yet.", "Rate it after its last event.")
    fields = {**rating.model_dump(), "reasons": tuple(dict.fromkeys(rating.reasons))}
    feedback = Feedback(**fields, given_at=datetime.now(UTC))
    counted = RatingRecord(
        key=key_of(record.run_id),
        at=record.created_at,
        has_comment=feedback.comment is not None,
        **feedback.model_dump(include={"rating", "thumb", "reasons"}),
    )
    await services.quality.put_rating(counted)
    try:
        # Write the comment last: it is stored only in the run and is deleted with it.
        await services.runs.set_feedback(record.run_id, feedback)
    except NotFoundError:
        await services.quality.remove_rating(counted.at, counted.key)
        raise _missing_run(run_id) from None
    await count(counted)
    return feedback


async def feedback_of(run_id: str, user: UserContext, runs: RunStore) -> Feedback:
    """Return the user's rating of one of their runs.

    Raises:
        NotFoundError: the user has no such run or has not rated it.
    """
    record = await owned_run(run_id, user, runs)
    if record.feedback is None:
        raise NotFoundError("The run has not been rated.", "PUT a rating or a thumb.")
    return record.feedback


async def withdraw_feedback(run_id: str, user: UserContext, runs: RunStore, quality: QualityStore) -> None:
    """Delete the user's rating of one of their runs. Missing ratings are ignored.

    Raises:
        NotFoundError: the user has no such run.
    """
    record = await owned_run(run_id, user, runs)
    try:
        await runs.set_feedback(record.run_id, None)
    except NotFoundError:
        raise _missing_run(run_id) from None
    await quality.remove_rating(record.created_at, key_of(record.run_id))


def _missing_run(run_id: str) -> NotFoundError:
    return NotFoundError(f"There is no run {run_id[:64]!r}.", "Its thread was cleared or deleted meanwhile.")
