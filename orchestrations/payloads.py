"""Calls of activities, and what they are given: JSON objects, with an orchestration's place in a trace.

Every activity is called by `call_activity`. A host whose worker dies ends the activities in it as failed, and
those that it starts before the next worker is ready; it delivers none again. An activity answers with an
envelope whatever its work came to, a defect too, so one that failed was lost, and is called again.

An orchestrator records nothing: it is replayed. It hands its place on to activities and children as plain
JSON, and only if its input has one. An activity records itself below the orchestration, and the orchestration
when that has ended.
"""

import json
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from typing import Any

import azure.durable_functions as df

from shared.platform import tracing
from shared.platform.loading import load_async
from shared.platform.telemetry import get_logger, log_scope
from shared.platform.tracing import TraceLink, link_below

# A worker that died is back within 2 to 8 s. Five tries span 8 s; what fails for longer leaves the instance
# Failed, to be revived.
RETRY = df.RetryOptions(first_retry_interval_in_milliseconds=2_000, max_number_of_attempts=5)

_TRACE = "trace"


class Payload(dict[str, Any]):
    """The declared type of an activity's input: the worker takes plain classes, not `dict[…]`."""


def as_object(value: Any) -> dict[str, Any]:
    """The JSON object of an input, an activity's result or an external event.

    `raise_event` encodes twice, and 1.7 and 2.x differ in what they decode; so text is decoded here.

    Raises:
        ValueError: it is no JSON object.
    """
    decoded = json.loads(value) if isinstance(value, str) else value
    if not isinstance(decoded, dict):
        raise ValueError("expected a JSON object")
    return decoded


def input_of(context: df.DurableOrchestrationContext) -> dict[str, Any]:
    """An orchestration's input without its place in a trace."""
    return split(context.get_input())[0]


def traced(context: df.DurableOrchestrationContext, payload: dict[str, Any]) -> dict[str, Any]:
    """An activity's input with the place of the orchestration that calls it."""
    link = as_object(context.get_input()).get(_TRACE)
    return payload if link is None else {**payload, _TRACE: link}


def call_activity(context: df.DurableOrchestrationContext, name: str, payload: dict[str, Any]) -> Any:
    """The task of an activity, to be yielded alone or in a `task_all`. It is called again when it was lost.

    Do not catch what it raises and continue: a sibling that is still retried would take other numbers in the
    host than in the SDK.
    """
    return context.call_activity_with_retry(name, RETRY, traced(context, payload))


def traced_child(
    context: df.DurableOrchestrationContext, payload: dict[str, Any], child_id: str
) -> dict[str, Any]:
    """A child's input with its own place below the orchestration that starts it."""
    _, link = split(context.get_input())
    below = link and link_below(link.own, child_id, context.current_utc_datetime)
    return {**payload, _TRACE: below.model_dump(mode="json")} if below else payload


def split(given: Any) -> tuple[dict[str, Any], TraceLink | None]:
    """What an input means, and its place in a trace."""
    meant = dict(as_object(given))
    link = meant.pop(_TRACE, None)
    return meant, None if link is None else TraceLink.from_payload(link)


def close_trace(context: df.DurableOrchestrationContext, name: str, status: str) -> Generator[Any, Any, None]:
    """Have the span of an orchestration recorded that is at its end; none that is in no trace."""
    if _TRACE not in as_object(context.get_input()):
        return
    payload = {"name": name, "instance_id": context.instance_id, "status": status}
    try:
        yield call_activity(context, "record_span", payload)
    except Exception:  # noqa: BLE001  # a trace is not worth an orchestration's result
        return


@asynccontextmanager
async def at_work(name: str, link: TraceLink | None, **fields: str) -> AsyncIterator[None]:
    """The span of an activity, and `fields` in all that is logged meanwhile.

    Args:
        fields: of contracts.md, section 6: ids, no text.
    """
    await (await load_async("shared.wiring", "start_telemetry"))()
    # Below its orchestration's span; without a link below what is at work here.
    parent = link.own if link else None
    with log_scope(**fields), tracing.span(name, {**fields}, parent=parent):
        yield


def report_defect(step: str, run_id: str) -> None:
    """Log what an activity raised, before it answers with an envelope that says no more than that."""
    get_logger().exception("activity.defect", step=step, run_id=run_id)
