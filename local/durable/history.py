"""History events of an orchestration, with the field names of azure-functions-durable.

Source of names and numbers: azure.durable_functions.models.history and DurableTask.Core/History.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import IntEnum

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_pascal


class EventType(IntEnum):
    EXECUTION_STARTED = 0
    EXECUTION_COMPLETED = 1
    EXECUTION_TERMINATED = 3
    TASK_SCHEDULED = 4
    TASK_COMPLETED = 5
    TASK_FAILED = 6
    SUB_ORCHESTRATION_INSTANCE_CREATED = 7
    SUB_ORCHESTRATION_INSTANCE_COMPLETED = 8
    SUB_ORCHESTRATION_INSTANCE_FAILED = 9
    TIMER_CREATED = 10
    TIMER_FIRED = 11
    ORCHESTRATOR_STARTED = 12
    ORCHESTRATOR_COMPLETED = 13
    EVENT_RAISED = 15


SCHEDULING = frozenset(
    {EventType.TASK_SCHEDULED, EventType.TIMER_CREATED, EventType.SUB_ORCHESTRATION_INSTANCE_CREATED}
)
FAILURES = frozenset({EventType.TASK_FAILED, EventType.SUB_ORCHESTRATION_INSTANCE_FAILED})
COMPLETIONS = FAILURES | {
    EventType.TASK_COMPLETED,
    EventType.SUB_ORCHESTRATION_INSTANCE_COMPLETED,
    EventType.TIMER_FIRED,
}


class HistoryEvent(BaseModel):
    """An event in the history of an instance. Fields that its type doesn't use are None and omitted in JSON.

    event_id: sequence number of the scheduled work; -1 for events that schedule none. task_scheduled_id,
    timer_id: sequence number of the work that finished. input, result: JSON text.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_pascal, populate_by_name=True, extra="forbid")

    event_type: EventType
    event_id: int = -1
    # This may stay False, because the SDK also derives it from the last OrchestratorStarted event.
    is_played: bool = False
    timestamp: str
    name: str | None = None
    version: str | None = None
    input: str | None = None
    result: str | None = None
    reason: str | None = None
    details: str | None = None
    task_scheduled_id: int | None = None
    timer_id: int | None = None
    fire_at: str | None = None
    instance_id: str | None = None
    orchestration_status: str | None = None

    @property
    def ended_id(self) -> int:
        """The sequence number of the activity, sub-orchestration or timer whose result this event reports."""
        ended = self.timer_id if self.event_type is EventType.TIMER_FIRED else self.task_scheduled_id
        if ended is None:
            raise ValueError(f"A {self.event_type.name} event does not report the result of a task.")
        return ended


_EVENTS = TypeAdapter(list[HistoryEvent])


def utc_text(moment: datetime) -> str:
    """Return a time as ISO 8601 text in UTC with microseconds. Sorting these texts sorts by time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_utc(text: str) -> datetime:
    """Parse an ISO 8601 timestamp. Without an offset, it is taken as UTC.

    Raises:
        ValueError: if the text isn't ISO 8601.
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def dump_events(events: Iterable[HistoryEvent]) -> str:
    """Return the events as a JSON array."""
    return _EVENTS.dump_json(list(events), by_alias=True, exclude_none=True).decode()


def load_events(text: str) -> list[HistoryEvent]:
    """Parse a JSON array written by `dump_events`."""
    return _EVENTS.validate_json(text)
