"""Formats of events and triggers in the out-of-process protocol of azure-functions-durable."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
START = datetime(2025, 1, 15, 9, 0, tzinfo=UTC)  # zero of the virtual clock, the same in every run


class EventType(IntEnum):
    """The event types of the Durable Task Framework that the harness writes."""

    EXECUTION_STARTED = 0
    TASK_SCHEDULED = 4
    TASK_COMPLETED = 5
    TASK_FAILED = 6
    CHILD_CREATED = 7
    CHILD_COMPLETED = 8
    CHILD_FAILED = 9
    TIMER_CREATED = 10
    TIMER_FIRED = 11
    ORCHESTRATOR_STARTED = 12
    ORCHESTRATOR_COMPLETED = 13
    EVENT_RAISED = 15


class ActionType(IntEnum):
    """The types of actions that an orchestrator returns."""

    ACTIVITY = 0
    ACTIVITY_WITH_RETRY = 1
    CHILD = 2
    CHILD_WITH_RETRY = 3
    CONTINUE_AS_NEW = 4
    TIMER = 5
    EXTERNAL_EVENT = 6
    WHEN_ANY = 11
    WHEN_ALL = 12


def moment(seconds: float) -> datetime:
    """Return the time at which the virtual clock shows this number of seconds."""
    return START + timedelta(seconds=seconds)


def event(kind: EventType, at_s: float, **fields: object) -> JsonObject:
    """Return a history event that occurs at a time on the virtual clock."""
    stamp = moment(at_s).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"EventType": int(kind), "EventId": -1, "IsPlayed": False, "Timestamp": stamp, **fields}


def trigger(history: Sequence[JsonObject], instance_id: str, input_json: str) -> str:
    """Return the JSON text that the host sends to an orchestrator for one episode."""
    fields: JsonObject = {
        "history": list(history),
        "input": input_json,
        "instanceId": instance_id,
        "isReplaying": False,
        "parentInstanceId": None,
        "upperSchemaVersion": 1,
        "upperSchemaVersionNew": 2,
        "longRunningTimerIntervalDuration": "3.00:00:00",
        "maximumShortTimerDuration": "6.00:00:00",
        "defaultHttpAsyncRequestSleepTimeMillseconds": 30000,
    }
    return json.dumps(fields)


def leaf_actions(state: JsonObject) -> list[JsonObject]:
    """Return all actions of a state in the order of their sequence numbers. Compound actions are replaced by
    their parts.
    """

    def leaves(action: JsonObject) -> list[JsonObject]:
        if action["actionType"] in {ActionType.WHEN_ALL, ActionType.WHEN_ANY}:
            return [leaf for part in action["compoundActions"] for leaf in leaves(part)]
        return [action]

    return [leaf for episode in state["actions"] for action in episode for leaf in leaves(action)]
