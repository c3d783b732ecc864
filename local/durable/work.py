"""Work that an orchestration asks for: as its replay requests it, and as it is carried out. Values only."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from local.durable.history import EventType, HistoryEvent


class ReplayFailed(Exception):  # noqa: N818  # the outcome of an instance, not a fault of the executor
    """The instance cannot continue; the text is its failure reason."""


@dataclass(frozen=True)
class ActivityRequest:
    task_id: int
    name: str
    input: str


@dataclass(frozen=True)
class ChildRequest:
    task_id: int
    name: str
    input: str
    instance_id: str
    version: str


@dataclass(frozen=True)
class TimerRequest:
    task_id: int
    fire_at: datetime
    cancelled: bool = False


Request = ActivityRequest | ChildRequest | TimerRequest

REQUEST_OF_EVENT: dict[EventType, type[Request]] = {
    EventType.TASK_SCHEDULED: ActivityRequest,
    EventType.SUB_ORCHESTRATION_INSTANCE_CREATED: ChildRequest,
    EventType.TIMER_CREATED: TimerRequest,
}
_WORDS: dict[type[Request], str] = {
    ActivityRequest: "an activity",
    ChildRequest: "a sub-orchestration",
    TimerRequest: "a timer",
}


@dataclass(frozen=True)
class TaskKey:
    """One scheduled piece of work; an execution id that is no longer current makes its result void."""

    instance_id: str
    execution_id: str
    task_id: int


@dataclass(frozen=True)
class ActivityWork:
    key: TaskKey
    name: str
    input: str


@dataclass(frozen=True)
class TimerWork:
    key: TaskKey
    fire_at: datetime


@dataclass(frozen=True)
class ReplayScope:
    """What a replay must know of its instance: ids for generated child ids, and the functions that exist."""

    instance_id: str
    execution_id: str
    parent_instance_id: str | None
    orchestrators: Collection[str]
    activities: Collection[str]


@dataclass(frozen=True)
class ReplayOutcome:
    """What the host knows after the last event.

    requests: work not yet in the history, in the order of its sequence numbers.
    cancelled_timers: sequence numbers of all cancelled timers, old and new.
    has_open_tasks: activities, children or uncancelled timers are still out; events awaited do not count.
    all_awaited: every action was reached and has ended.
    continue_as_new: the input of the next execution, as JSON text.
    carried_events: raised after continue_as_new was reached; they belong to the next execution.
    unreached: actions that the generator asks for already while the host still awaits an earlier one.
    """

    requests: list[Request]
    cancelled_timers: frozenset[int]
    has_open_tasks: bool
    all_awaited: bool
    continue_as_new: str | None
    carried_events: list[HistoryEvent]
    unreached: int


def describe(kind: type[Request], name: str | None) -> str:
    """A request in words, for messages: `an activity named 'parse'`."""
    return f"{_WORDS[kind]} named '{name}'" if name else _WORDS[kind]
