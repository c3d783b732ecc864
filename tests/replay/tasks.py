"""Tasks that an orchestrator has started: the function called, the completion, and retries."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tests.replay.history import START, ActionType, EventType, JsonObject, event

FAR_S = 3650 * 86400.0
CHILDREN = frozenset({ActionType.CHILD, ActionType.CHILD_WITH_RETRY})
RETRIED = frozenset({ActionType.ACTIVITY_WITH_RETRY, ActionType.CHILD_WITH_RETRY})


@dataclass(frozen=True)
class OpenTask:
    """A numbered task. `waits_to_retry` marks the timer between two attempts, or after the last one."""

    kind: ActionType
    action: JsonObject
    attempts: int = 1
    waits_to_retry: bool = False

    @property
    def name(self) -> str:
        return "timer" if self.is_timer else str(self.action["functionName"])

    @property
    def instance_id(self) -> str | None:
        return self.action.get("instanceId")

    @property
    def is_timer(self) -> bool:
        return self.kind is ActionType.TIMER or self.waits_to_retry

    @property
    def is_cancelled(self) -> bool:
        return bool(self.action.get("isCanceled"))

    @property
    def is_child(self) -> bool:
        return self.kind in CHILDREN and not self.waits_to_retry

    @property
    def input_json(self) -> str:
        return str(self.action.get("input") or "null")

    @property
    def payload(self) -> Any:
        """The task's input, decoded as its function would receive it."""
        return json.loads(self.input_json)

    @property
    def scheduled_event(self) -> EventType:
        if self.is_timer:
            return EventType.TIMER_CREATED
        return EventType.CHILD_CREATED if self.is_child else EventType.TASK_SCHEDULED

    def fires_at_s(self, now_s: float) -> float:
        """Return the time at which a timer fires, in seconds on the virtual clock."""
        if not self.waits_to_retry:
            fire_at = datetime.fromisoformat(str(self.action["fireAt"]))
            return (fire_at - START).total_seconds()
        options = self.action["retryOptions"]
        # The timer after the last attempt fires immediately.
        is_last = self.attempts >= options["maxNumberOfAttempts"]
        return now_s if is_last else now_s + options["firstRetryIntervalInMilliseconds"] / 1000

    def following(self, *, failed: bool) -> "OpenTask | None":
        """Return the task that continues this task under the next sequence number, or None if the task is
        complete.

        Source: RetryAbleTask of azure-functions-durable: failure -> timer -> attempt …, and one more timer at
        the end.
        """
        if self.waits_to_retry:
            if self.attempts >= self.action["retryOptions"]["maxNumberOfAttempts"]:
                return None
            return replace(self, attempts=self.attempts + 1, waits_to_retry=False)
        if failed and self.kind in RETRIED:
            return replace(self, waits_to_retry=True)
        return None

    def ended(self, number: int, at_s: float, result_json: str, failure: str | None) -> JsonObject:
        """Return the history event that completes an activity or a child."""
        completed, failed = (
            (EventType.CHILD_COMPLETED, EventType.CHILD_FAILED)
            if self.is_child
            else (EventType.TASK_COMPLETED, EventType.TASK_FAILED)
        )
        if failure is None:
            return event(completed, at_s, TaskScheduledId=number, Result=result_json)
        return event(failed, at_s, TaskScheduledId=number, Reason=failure, Details=failure)


def open_task(action: JsonObject) -> OpenTask | None:
    """Return the task that an action starts, or None for actions without a sequence number.

    Raises:
        ValueError: The harness doesn't support this action.
    """
    kind = ActionType(action["actionType"])
    if kind in {ActionType.EXTERNAL_EVENT, ActionType.CONTINUE_AS_NEW}:
        return None
    return OpenTask(kind, action)
