"""What only the step that writes an answer knows of its quality; kept for the step that commits it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import GroundworkError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.quality.measures import answer_record
from shared.quality.models import AnswerRecord
from shared.quality.recording import NOTE_LIMIT_S, keep, key_of
from shared.quality.services import QualityServices
from shared.runs.event_log import EventLog
from shared.runs.events import RunEvent, ToolResultEvent, ToolStartedEvent, events_of, latest_todo
from shared.runs.models import RunAnswer, RunRecord, RunRequest, WritingFacts
from shared.runs.run_log import RunLog
from shared.runs.working_memory import WorkingMemory


async def note_end(
    record: RunRecord | None, services: QualityServices, answer: RunAnswer | None = None, answer_step: int = 0
) -> None:
    """Record how a run ended. Never raises; four round trips, three of them at once.

    Args:
        record: as it was stored at the end; None = the run was erased, and nothing is recorded.
        answer_step: the step that wrote the answer; 0 = it is not known.
    """
    if record is None:
        return
    try:
        async with asyncio.timeout(NOTE_LIMIT_S):
            ended = await _ended(record, services.blobs, services.run_log, answer, answer_step)
    except Exception as failed:  # noqa: BLE001  # an answer that was sent must not fail for its record
        get_logger().warning("quality.write_failed", kind="answer", error_type=type(failed).__name__)
    else:
        await keep(ended, services.quality)


async def _ended(
    record: RunRecord, blobs: BlobStore, run_log: RunLog, answer: RunAnswer | None, answer_step: int
) -> AnswerRecord:
    memory = WorkingMemory(blobs, record.run_id)
    request, events, facts = await run_together(
        memory.find(None, RunRequest),
        _events(record.run_id, run_log),
        memory.find(answer_step, WritingFacts, "facts"),  # step 0 keeps none
    )
    calls = sum(isinstance(event, ToolStartedEvent) for event in events)
    # What was repeated after a crash was called twice.
    succeeded = sum(isinstance(event, ToolResultEvent) and event.success for event in events)
    return answer_record(record, answer, facts or WritingFacts()).model_copy(
        update={
            "key": key_of(record.run_id),
            "project_id": request.project_id if request else None,
            "tool_calls": calls,
            "tool_calls_succeeded": min(calls, succeeded),
            **({} if record.todo else _plan(events)),
        }
    )


async def _events(run_id: str, run_log: RunLog) -> list[RunEvent]:
    try:
        return events_of(await run_log.read(run_id))
    except NotFoundError:
        return []


def _plan(events: Sequence[RunEvent]) -> dict[str, int]:
    """The todo list of a run that failed, as it was shown last."""
    todo = latest_todo(events)
    return {"plan_items": len(todo), "plan_items_done": sum(item.status == "done" for item in todo)}


def writing_facts(event_log: EventLog, since: datetime, figures_available: int) -> WritingFacts:
    """What is known of one attempt; `since` when its asker began to wait, with zone."""
    sent_at = event_log.first_token_at
    waited = None if sent_at is None else max(0, round((sent_at - since) / timedelta(milliseconds=1)))
    return WritingFacts(first_token_ms=waited, figures_available=figures_available)


async def keep_facts(memory: WorkingMemory, step: int, facts: WritingFacts) -> None:
    """Keep them with the answer. Never raises: the answer does not depend on it."""
    try:
        await memory.write(step, facts, "facts")
    except GroundworkError as failed:
        get_logger().warning("quality.write_failed", kind="facts", error_type=failed.code)
