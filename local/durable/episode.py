"""One episode: the changes of an instance caused by new events and the resulting actions. Pure.

The result is written in one transaction, so a crash leaves an episode either done or not begun.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from local.durable.actions import OrchestratorState
from local.durable.history import EventType, HistoryEvent, utc_text
from local.durable.instances import Instance, RuntimeStatus
from local.durable.work import (
    ActivityRequest,
    ChildRequest,
    ReplayFailed,
    ReplayOutcome,
    Request,
    TimerRequest,
)


@dataclass(frozen=True)
class Completion:
    """The end of an execution. `output` is JSON text if Completed, otherwise a plain reason."""

    status: RuntimeStatus
    output: str
    details: str = ""


@dataclass(frozen=True)
class NextExecution:
    """The next execution after continue_as_new: `input` is the trigger's input; pending events move along."""

    input: str
    carried_events: list[HistoryEvent]


@dataclass(frozen=True)
class Episode:
    """The changes to write: events to append, work to schedule, and the instance's new state."""

    events: list[HistoryEvent]
    custom_status: str | None
    requests: list[Request] = field(default_factory=list)
    cancelled_timers: frozenset[int] = frozenset()
    ending: Completion | NextExecution | None = None


def conclude(
    instance: Instance, state: OrchestratorState, outcome: ReplayOutcome
) -> Completion | NextExecution | None:
    """Return how the execution ends with this episode; None if it continues.

    Open-task rule: nothing completes, fails or continues as new while an activity, a child or an uncancelled
    timer is open. Source: TaskOrchestrationExecutor.cs, "HasOpenTasks".
    """
    if outcome.has_open_tasks or not outcome.all_awaited:
        return None
    if state.error:
        reason = f"Orchestrator function '{instance.name}' failed: {state.error}"
        return Completion(RuntimeStatus.FAILED, reason, f"Message: {state.error}")
    if not state.is_done:
        return None
    if outcome.continue_as_new is not None:
        return NextExecution(outcome.continue_as_new, outcome.carried_events)
    return Completion(RuntimeStatus.COMPLETED, json.dumps(state.output))


def failed(error: ReplayFailed) -> Completion:
    return Completion(RuntimeStatus.FAILED, str(error), str(error))


def scheduling_event(request: Request, timestamp: str) -> HistoryEvent:
    """Return the event that records a request in the requester's history."""
    match request:
        case ActivityRequest():
            return HistoryEvent(
                event_type=EventType.TASK_SCHEDULED,
                event_id=request.task_id,
                timestamp=timestamp,
                name=request.name,
                version="",
                input=request.input,
            )
        case ChildRequest():
            return HistoryEvent(
                event_type=EventType.SUB_ORCHESTRATION_INSTANCE_CREATED,
                event_id=request.task_id,
                timestamp=timestamp,
                name=request.name,
                version=request.version,
                input=request.input,
                instance_id=request.instance_id,
            )
        case TimerRequest():
            return HistoryEvent(
                event_type=EventType.TIMER_CREATED,
                event_id=request.task_id,
                timestamp=timestamp,
                fire_at=utc_text(request.fire_at),
            )


def framed(
    events: Sequence[HistoryEvent], requests: Sequence[Request], ending: Completion | None, timestamp: str
) -> list[HistoryEvent]:
    """Return an episode's events for the history, between OrchestratorStarted and -Completed."""
    scheduled = [scheduling_event(request, timestamp) for request in requests]
    ended = []
    if ending is not None:
        ended.append(
            HistoryEvent(
                event_type=EventType.EXECUTION_COMPLETED,
                timestamp=timestamp,
                orchestration_status=ending.status,
                result=ending.output,
            )
        )
    return [
        HistoryEvent(event_type=EventType.ORCHESTRATOR_STARTED, timestamp=timestamp),
        *events,
        *scheduled,
        *ended,
        HistoryEvent(event_type=EventType.ORCHESTRATOR_COMPLETED, timestamp=timestamp),
    ]
