"""An instance as the client API shows it.

Source: HttpApiHandler.cs (ConvertFrom) and DurableClient.cs (GetDurableOrchestrationStatusAsync).
"""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from local.durable.history import COMPLETIONS, SCHEDULING, EventType, HistoryEvent
from local.durable.instances import Instance

StatusDocument = dict[str, JsonValue]

_EVENT_NAMES = {kind: kind.name.title().replace("_", "") for kind in EventType}
_WITH_OUTPUT = frozenset(
    {
        EventType.TASK_COMPLETED,
        EventType.SUB_ORCHESTRATION_INSTANCE_COMPLETED,
        EventType.EXECUTION_COMPLETED,
    }
)
_FRAME = frozenset({EventType.ORCHESTRATOR_STARTED, EventType.ORCHESTRATOR_COMPLETED})
_HIDDEN = {"event_type", "event_id", "is_played", "version", "task_scheduled_id", "timer_id", "name"}


def status_document(
    instance: Instance, *, show_input: bool, history: list[JsonValue] | None = None
) -> StatusDocument:
    """Times have whole seconds, as the host writes them. An input from the SDK shows as a string of JSON."""
    return {
        "name": instance.name,
        "instanceId": instance.instance_id,
        "runtimeStatus": instance.runtime_status.value,
        "input": _parsed(instance.input) if show_input else None,
        "customStatus": _parsed(instance.custom_status),
        "output": _parsed(instance.output),
        "createdTime": _whole_seconds(instance.created_at),
        "lastUpdatedTime": _whole_seconds(instance.updated_at),
        "historyEvents": history,
    }


def history_document(
    events: Sequence[HistoryEvent], *, show_input: bool, show_output: bool
) -> list[JsonValue]:
    """Events for reading: what scheduled a piece of work is folded into what ended it."""
    scheduled = {event.event_id: event for event in events if event.event_type in SCHEDULING}
    ended = {event.ended_id for event in events if event.event_type in COMPLETIONS}
    shown: list[JsonValue] = []
    for event in events:
        folded = event.event_type in SCHEDULING and event.event_type is not EventType.TIMER_CREATED
        if event.event_type in _FRAME or (folded and event.event_id in ended):
            continue
        before = scheduled.get(event.ended_id) if event.event_type in COMPLETIONS else None
        shown.append(_event(event, before, show_input=show_input, show_output=show_output))
    return shown


def _event(
    event: HistoryEvent, scheduled: HistoryEvent | None, *, show_input: bool, show_output: bool
) -> StatusDocument:
    document: StatusDocument = {"EventType": _EVENT_NAMES[event.event_type]}
    document |= event.model_dump(by_alias=True, exclude_none=True, exclude=_HIDDEN)
    if event.name is not None:
        document["FunctionName" if event.event_type is EventType.EXECUTION_STARTED else "Name"] = event.name
    if scheduled is not None and event.event_type is not EventType.TIMER_FIRED:
        document |= {"ScheduledTime": scheduled.timestamp, "FunctionName": scheduled.name}
        document["Input"] = scheduled.input
    if not show_input:
        document.pop("Input", None)
    if event.event_type in _WITH_OUTPUT:
        document.pop("Result", None)
        if show_output:
            document["Result"] = _parsed(event.result)
    return document


def _parsed(text: str | None) -> JsonValue:
    """JSON if it is JSON; a plain reason otherwise, which is common after a failure or a termination."""
    if text is None:
        return None
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def _whole_seconds(timestamp: str) -> str:
    return f"{timestamp[:19]}Z"
