"""The work that an orchestration requests (activities, sub-orchestrations, timers), as value types."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from local.durable.history import EventType, HistoryEvent


class ReplayFailed(Exception):  # noqa: N818  # the outcome of an instance, not an error of the executor
    """Error raised if an instance can't continue. The message becomes its failure reason."""


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
    """The identity of an activity or timer. Results with an outdated execution id are ignored."""

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
    """The context of a replay: the ids from which the ids of children are generated, and the names of all
    functions.
    """

    instance_id: str
    execution_id: str
    parent_instance_id: str | None
    orchestrators: Collection[str]
    activities: Collection[str]


@dataclass(frozen=True)
class ReplayOutcome:
    """The state of an orchestration after a replay of its whole history.

    requests: work not yet in the history, by sequence number. cancelled_timers: sequence numbers of all
    cancelled timers, old and new. has_open_tasks: whether activities, sub-orchestrations or uncancelled
    timers are open; awaited events don't count. all_awaited: whether every action has started and finished.
    continue_as_new: input of the next execution, as JSON text. carried_events: events raised after
    continue_as_new, which belong to the next execution. unreached: number of actions that the generator
    requested while the host still awaits an earlier one.
    """

    requests: list[Request]
    cancelled_timers: frozenset[int]
    has_open_tasks: bool
    all_awaited: bool
    continue_as_new: str | None
    carried_events: list[HistoryEvent]
    unreached: int


def describe(kind: type[Request], name: str | None) -> str:
    """Return a description of a request for use in messages, such as `an activity named 'parse'`."""
    return f"{_WORDS[kind]} named '{name}'" if name else _WORDS[kind]
