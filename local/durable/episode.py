"""Computes one episode: how an instance changes when it processes its pending events. Pure.

An episode is written in one transaction, so a crash leaves it either complete or not started.
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
    """The end of an orchestration's execution. `output` is JSON if it completed, otherwise the reason as
    plain text.
    """

    status: RuntimeStatus
    output: str
    details: str = ""


@dataclass(frozen=True)
class NextExecution:
    """The execution that continue_as_new starts. It inherits `carried_events`, which are still pending."""

    input: str
    carried_events: list[HistoryEvent]


@dataclass(frozen=True)
class Episode:
    """The changes that an episode writes: history events, requested work and the new state of the
    instance.
    """

    events: list[HistoryEvent]
    custom_status: str | None
    requests: list[Request] = field(default_factory=list)
    cancelled_timers: frozenset[int] = frozenset()
    ending: Completion | NextExecution | None = None


def conclude(
    instance: Instance, state: OrchestratorState, outcome: ReplayOutcome
) -> Completion | NextExecution | None:
    """Return how the episode ends the execution, or None if the execution continues.

    An execution cannot complete, fail or continue as new while an activity, a sub-orchestration or an
    uncancelled timer is open. Source: TaskOrchestrationExecutor.cs, "HasOpenTasks".
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


def completion_of_failure(error: ReplayFailed) -> Completion:
    return Completion(RuntimeStatus.FAILED, str(error), str(error))


def scheduling_event(request: Request, timestamp: str) -> HistoryEvent:
    """Return the history event that records a requested activity, sub-orchestration or timer."""
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


def frame_events(
    events: Sequence[HistoryEvent], requests: Sequence[Request], ending: Completion | None, timestamp: str
) -> list[HistoryEvent]:
    """Return the history events of an episode in order: OrchestratorStarted, `events`, one scheduling event
    per request, the end of the execution if `ending` is given, and OrchestratorCompleted.
    """
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
