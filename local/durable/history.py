"""Events of an orchestration's history, with azure-functions-durable's wire names.

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
    """One event. Fields that its type doesn't have are None and not sent.

    event_id: sequence number on events that schedule work; -1 on all others.
    task_scheduled_id, timer_id: sequence number of the work that ended.
    input, result: JSON text.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_pascal, populate_by_name=True, extra="forbid")

    event_type: EventType
    event_id: int = -1
    # The SDK also derives "replayed" from the last OrchestratorStarted, so this value needn't be accurate.
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
        """The sequence number of the work that this event ends."""
        ended = self.timer_id if self.event_type is EventType.TIMER_FIRED else self.task_scheduled_id
        if ended is None:
            raise ValueError(f"{self.event_type.name} has no sequence number of its task")
        return ended


_EVENTS = TypeAdapter(list[HistoryEvent])


def utc_text(moment: datetime) -> str:
    """Format an instant for the wire: ISO 8601, microseconds, `Z`. Text order is time order."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_utc(text: str) -> datetime:
    """Parse a wire timestamp; one without an offset is in UTC.

    Raises:
        ValueError: not ISO 8601.
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def dump_events(events: Iterable[HistoryEvent]) -> str:
    """Serialise events as a JSON array."""
    return _EVENTS.dump_json(list(events), by_alias=True, exclude_none=True).decode()


def load_events(text: str) -> list[HistoryEvent]:
    """Parse the output of `dump_events`."""
    return _EVENTS.validate_json(text)
