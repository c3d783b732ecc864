"""Client that reads the child orchestrations of a run from the Durable Functions API."""

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from local.run_all.stack import LocalStack

# Time in seconds that a child may run beyond its deadline.
GRACE_S = 1.0
_POLL_S = 0.1
_PREFIX = "/runtime/webhooks/durabletask/instances"
_OPEN = frozenset({"Running", "Pending", "Suspended", "ContinuedAsNew"})


@dataclass(frozen=True)
class Child:
    """The deadline and end of a child orchestration.

    Attributes:
        ended_after_s: seconds after its deadline; None if it was still running when last seen.
        grace_s: allowed overrun of its deadline.
    """

    child_id: str
    deadline: float
    status: str
    ended_after_s: float | None
    grace_s: float = GRACE_S

    @property
    def outlived(self) -> bool:
        """Whether the child was still running `grace_s` seconds after its deadline."""
        return self.ended_after_s is None or self.ended_after_s > self.grace_s


class Instances:
    """Client for the orchestrations of one host. `grace_s` can be increased for a slow machine."""

    def __init__(self, stack: LocalStack, grace_s: float = GRACE_S) -> None:
        self._stack = stack
        self._grace_s = grace_s
        self._http = httpx.Client(timeout=60.0, headers=stack.host_headers)

    def close(self) -> None:
        self._http.close()

    def wait_until_settled(self, run_id: str) -> list[Child]:
        """Wait until every child of the run has ended or its deadline and grace period have passed, and
        return all children.
        """
        while True:
            children = [self._child(instance) for instance in self._below(run_id)]
            now = time.time()
            late = now - self._grace_s
            if all(child.ended_after_s is not None or late > child.deadline for child in children):
                return children
            time.sleep(_POLL_S)

    def is_open(self, run_id: str) -> bool:
        """Return whether the orchestration of the run is still active."""
        answered = self._http.get(f"{self._stack.base_url}{_PREFIX}/{run_id}")
        return answered.status_code in (200, 202) and answered.json()["runtimeStatus"] in _OPEN

    def _below(self, run_id: str) -> list[dict[str, Any]]:
        params = {"instanceIdPrefix": f"{run_id}:", "showInput": "true", "top": "100"}
        instances = (
            self._http.get(f"{self._stack.base_url}{_PREFIX}", params=params).raise_for_status().json()
        )
        return [one for one in instances if one["name"] == "run_sub_agent"]

    def _child(self, instance: dict[str, Any]) -> Child:
        deadline = _deadline(instance)
        ended = None
        if instance["runtimeStatus"] not in _OPEN:
            ended = self._ended_at(instance) - deadline
        return Child(instance["instanceId"], deadline, instance["runtimeStatus"], ended, self._grace_s)

    def _ended_at(self, instance: dict[str, Any]) -> float:
        """Return the time at which a child ended. It is read from the history, because the status has a
        resolution of only one second.
        """
        address = f"{self._stack.base_url}{_PREFIX}/{instance['instanceId']}"
        history = self._http.get(address, params={"showHistory": "true"}).json().get("historyEvents") or []
        moments = [_moment(event["Timestamp"]) for event in history if "Timestamp" in event]
        return max(moments, default=_moment(instance["lastUpdatedTime"]))


def _deadline(instance: dict[str, Any]) -> float:
    """Return the deadline of a child from its custom status. If the child ended before it set one, return its
    start time.
    """
    status = _plain(instance.get("customStatus") or {})
    return _moment(status.get("deadline") or instance["createdTime"])


def _plain(value: Any) -> dict[str, Any]:
    """Decode an object that an SDK has encoded as nested JSON text or as a list with one item."""
    while isinstance(value, str):
        value = json.loads(value)
    result: dict[str, Any] = value[0] if isinstance(value, list) else value
    return result


def _moment(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
