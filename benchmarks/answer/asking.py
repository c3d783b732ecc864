"""A client that asks the running app questions, and reads the steps of their runs from the durable
history.
"""

import http.client
import json
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from benchmarks.answer.breakdown import Span
from local.run_all.api_client import read_events
from local.run_all.stack import LocalStack

_TIMEOUT_S = 60.0
_ENDS = ("complete", "error", "ask_user")
_PREFIX = "/runtime/webhooks/durabletask/instances"


@dataclass(frozen=True)
class Asked:
    """An answered question with its client-side times, in seconds since the epoch."""

    run_id: str
    thread_id: str
    asked: float
    first_event: float
    completed: float


def ask(stack: LocalStack, token: str, question: str, thread_id: str | None) -> Asked:
    """Ask a question over a new connection, read its stream to the end, and return the question with its
    times.

    Raises:
        RuntimeError: if the question is rejected or ends without an answer.
    """
    body = {"question": question, **({"thread_id": thread_id} if thread_id else {})}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    asked_at = time.time()
    with closing(http.client.HTTPConnection("127.0.0.1", stack.ports.http, timeout=_TIMEOUT_S)) as connection:
        connection.request("POST", "/api/chat", body=json.dumps(body), headers=headers)
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"The question was rejected: {response.status} {response.read()[:300]!r}")
        events, moments = [], []
        for event in read_events(response):
            events.append(event)
            moments.append(time.time())
            if event.name in _ENDS:
                break
    if events[-1].name != "complete":
        raise RuntimeError(f"{question!r} ended with {events[-1].name}: {events[-1].data}")
    accepted = events[0].data
    return Asked(accepted["run_id"], accepted["thread_id"], asked_at, moments[0], moments[-1])


def steps_of(stack: LocalStack, run_id: str) -> list[Span]:
    """Wait until the orchestration of a run has completed, and return its steps."""
    params = {"showHistory": "true", "showInput": "true"}
    give_up = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < give_up:
        response = httpx.get(
            f"{stack.base_url}{_PREFIX}/{run_id}", params=params, headers=stack.host_headers
        ).json()
        if response["runtimeStatus"] == "Completed":
            ended = [one for one in response["historyEvents"] if one["EventType"] == "TaskCompleted"]
            return [_span(one) for one in ended]
        time.sleep(0.1)
    raise RuntimeError(f"The orchestration of {run_id} did not end.")


def _span(event: dict[str, Any]) -> Span:
    activity_input = event["Input"]
    while isinstance(activity_input, str):
        activity_input = json.loads(activity_input)
    activity_input = activity_input[0] if isinstance(activity_input, list) else activity_input
    return Span(
        activity_input["action"]["kind"], _moment(event["ScheduledTime"]), _moment(event["Timestamp"])
    )


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
