"""Records how a run and its sub-agents ended. All quality metrics are calculated from these records.

It contains names, numbers and times, but no user, run or text.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from shared.answering.children import Child, children_of, delegations_of
from shared.answering.views import final_status
from shared.platform.telemetry import get_logger
from shared.quality.measures import answer_record
from shared.quality.models import AnswerRecord, ChildFacts, DecisionFacts
from shared.quality.recording import NOTE_LIMIT_S, keep, key_of
from shared.quality.services import QualityServices
from shared.runs.event_log import EventLog
from shared.runs.events import DelegationStatus, RunEvent, ToolResultEvent, ToolStartedEvent, latest_todo
from shared.runs.journal import Journal
from shared.runs.models import ChildStatus, RunAnswer, RunRecord, WritingFacts


async def note_end(
    record: RunRecord, services: QualityServices, journal: Journal, answer: RunAnswer | None
) -> None:
    """Record the outcome of a run for quality metrics, once. Errors are logged, never raised.

    Args:
        record: as stored at the end.
        answer: None unless the run is completed.
    """
    try:
        async with asyncio.timeout(NOTE_LIMIT_S):
            ended = await _outcome(record, journal, answer)
    except Exception as failed:  # noqa: BLE001  # an answer that was sent must not fail for its record
        get_logger().warning("quality.write_failed", kind="answer", error_type=type(failed).__name__)
    else:
        await keep(ended, services.quality)


async def _outcome(record: RunRecord, journal: Journal, answer: RunAnswer | None) -> AnswerRecord:
    events = journal.events
    request = await journal.files.find_request()
    # the last turn's facts, because that turn wrote the answer
    lines = journal.value_lines("facts") if answer else []
    facts = await journal.value(lines[-1], WritingFacts) if lines else None
    calls = sum(isinstance(event, ToolStartedEvent) for event in events)
    # Calls repeated after a crash are counted again, so successes are capped at the number of calls.
    succeeded = sum(isinstance(event, ToolResultEvent) and event.success for event in events)
    return answer_record(record, answer, facts or WritingFacts()).model_copy(
        update={
            "key": key_of(record.run_id),
            "project_id": request.project_id if request else None,
            "tool_calls": calls,
            "tool_calls_succeeded": min(calls, succeeded),
            "decisions": decisions_of(events),
            "children": await _children(record, journal),
            **({} if record.todo else _plan(events)),
        }
    )


def decisions_of(events: Iterable[RunEvent]) -> tuple[DecisionFacts, ...]:
    """Return the delegation decisions of a run. A decision that was repeated after a crash counts once."""
    decisions = dict.fromkeys(
        (event.step, event.decision, event.selected_profile, event.reason_codes)
        for event in events
        if isinstance(event, DelegationStatus)
    )
    return tuple(
        DecisionFacts(decision=decision, profile=profile, reason_codes=reason_codes)
        for _, decision, profile, reason_codes in decisions
    )


async def _children(record: RunRecord, journal: Journal) -> tuple[ChildFacts, ...]:
    """Return the facts of all sub-agents, except those that were still working when the run was cancelled."""
    now = datetime.now(UTC)
    children = await children_of(journal, await delegations_of(journal))
    return tuple(
        child_facts(child, final_status(child, now))
        for child in children
        if record.status != "cancelled" or child.state.ended_at is not None
    )


def child_facts(child: Child, status: ChildStatus) -> ChildFacts:
    """Return the facts about a sub-agent that quality metrics use: its outcome, duration, turns, tokens and
    cost.
    """
    task, state = child.task, child.state
    latency_ms = None
    if state.started_at is not None:
        took = (state.ended_at or task.deadline) - state.started_at
        latency_ms = max(0, round(took / timedelta(milliseconds=1)))
    return ChildFacts(
        status=status,
        selected=task.profile,
        profile=state.profile,
        timed_out=status == "late" or "TIME_OUT" in state.warnings,
        latency_ms=latency_ms,
        turns=state.turns_ended,
        tokens=state.tokens,
        cost_usd=state.cost_usd,
        claims=len(state.findings),
        proved=sum(bool(finding.proofs) for finding in state.findings),
    )


def _plan(events: Sequence[RunEvent]) -> dict[str, int]:
    """Return the number of items on the last to-do list of a failed run, and how many of them are done."""
    todo = latest_todo(events)
    return {"plan_items": len(todo), "plan_items_done": sum(item.status == "done" for item in todo)}


def writing_facts(event_log: EventLog, since: datetime, figures_available: int) -> WritingFacts:
    """Return the metrics of one attempt to write an answer. `since` is the time with zone at which the user
    began to wait.
    """
    sent_at = event_log.first_token_at
    delay_ms = None if sent_at is None else max(0, round((sent_at - since) / timedelta(milliseconds=1)))
    return WritingFacts(first_token_ms=delay_ms, figures_available=figures_available)
