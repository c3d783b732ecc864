"""The record of how a run ended, for quality metrics."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.platform.telemetry import get_logger
from shared.quality.measures import answer_record
from shared.quality.models import AnswerRecord
from shared.quality.recording import NOTE_LIMIT_S, keep, key_of
from shared.quality.services import QualityServices
from shared.runs.event_log import EventLog
from shared.runs.events import RunEvent, ToolResultEvent, ToolStartedEvent, latest_todo
from shared.runs.journal import Journal
from shared.runs.models import RunAnswer, RunRecord, WritingFacts


async def note_end(
    record: RunRecord, services: QualityServices, journal: Journal, answer: RunAnswer | None
) -> None:
    """Record how a run ended, once. Never raises.

    Args:
        record: as stored at the end.
        answer: None unless the run is completed.
    """
    try:
        async with asyncio.timeout(NOTE_LIMIT_S):
            ended = await _ended(record, journal, answer)
    except Exception as failed:  # noqa: BLE001  # an answer that was sent must not fail for its record
        get_logger().warning("quality.write_failed", kind="answer", error_type=type(failed).__name__)
    else:
        await keep(ended, services.quality)


async def _ended(record: RunRecord, journal: Journal, answer: RunAnswer | None) -> AnswerRecord:
    events = journal.events
    request = await journal.files.find_request()
    lines = journal.value_lines("facts") if answer else []  # the last turn wrote the answer
    facts = await journal.value(lines[-1], WritingFacts) if lines else None
    calls = sum(isinstance(event, ToolStartedEvent) for event in events)
    # Calls repeated after a crash were made twice.
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


def _plan(events: Sequence[RunEvent]) -> dict[str, int]:
    """Return the counts of a failed run's last todo list."""
    todo = latest_todo(events)
    return {"plan_items": len(todo), "plan_items_done": sum(item.status == "done" for item in todo)}


def writing_facts(event_log: EventLog, since: datetime, figures_available: int) -> WritingFacts:
    """Return the facts of one attempt; `since` is when the user began to wait, with zone."""
    sent_at = event_log.first_token_at
    delay_ms = None if sent_at is None else max(0, round((sent_at - since) / timedelta(milliseconds=1)))
    return WritingFacts(first_token_ms=delay_ms, figures_available=figures_available)
