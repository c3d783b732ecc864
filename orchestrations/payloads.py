"""Calls activities and child orchestrations with JSON payloads that include the caller's trace context.

Every activity is called by `call_activity`. If a host's worker dies, the host fails the activities that were
running in it or that start before the next worker is ready, and does not redeliver them. An activity returns
an envelope even after a defect, so a failed activity was lost and is retried.

An orchestrator records no spans, because it is replayed. It passes its trace context to activities and
children as plain JSON, if its input contains one. Activities record spans below the orchestration's, and
the orchestration's own span once it has ended.
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

# Workers restart within 2 to 8 s. Five attempts take 8 s. If a failure lasts longer, the instance ends as
# Failed and is revived later.
RETRY = df.RetryOptions(first_retry_interval_in_milliseconds=2_000, max_number_of_attempts=5)

_TRACE = "trace"


class Payload(dict[str, Any]):
    """Input type of activities. The worker accepts a plain class as the annotation, but not `dict[…]`."""


def as_object(value: Any) -> dict[str, Any]:
    """Return an orchestration input, an activity result or an external event as a JSON object.

    `raise_event` encodes twice, and versions 1.7 and 2.x decode differently, so text is decoded here.

    Raises:
        ValueError: not a JSON object.
    """
    decoded = json.loads(value) if isinstance(value, str) else value
    if not isinstance(decoded, dict):
        raise ValueError("The payload is not a JSON object.")
    return decoded


def input_of(context: df.DurableOrchestrationContext) -> dict[str, Any]:
    """Return the input of an orchestration without its trace context."""
    return split(context.get_input())[0]


def with_trace(context: df.DurableOrchestrationContext, payload: dict[str, Any]) -> dict[str, Any]:
    """Return a payload with the trace context of the calling orchestration added, if it has one."""
    link = as_object(context.get_input()).get(_TRACE)
    return payload if link is None else {**payload, _TRACE: link}


def call_activity(context: df.DurableOrchestrationContext, name: str, payload: dict[str, Any]) -> Any:
    """Return a task that calls an activity, and calls it again if its worker dies. Yield the task alone or in
    a `task_all`.

    Do not catch its errors and continue: the host and the SDK would then number the tasks of a sibling that
    is still being retried differently.
    """
    return context.call_activity_with_retry(name, RETRY, with_trace(context, payload))


def child_input(
    context: df.DurableOrchestrationContext, payload: dict[str, Any], child_id: str
) -> dict[str, Any]:
    """Return the input of a child orchestration. Its trace context names this orchestration as the parent."""
    _, link = split(context.get_input())
    below = link and link_below(link.own, child_id, context.current_utc_datetime)
    return {**payload, _TRACE: below.model_dump(mode="json")} if below else payload


def split(payload: Any) -> tuple[dict[str, Any], TraceLink | None]:
    """Split a payload into its fields and its trace context, which is None if the payload has none."""
    fields = dict(as_object(payload))
    link = fields.pop(_TRACE, None)
    return fields, None if link is None else TraceLink.from_payload(link)


def close_trace(context: df.DurableOrchestrationContext, name: str, status: str) -> Generator[Any, Any, None]:
    """Record the span of an orchestration that is about to end. Do nothing if its input has no trace
    context.
    """
    if _TRACE not in as_object(context.get_input()):
        return
    payload = {"name": name, "instance_id": context.instance_id, "status": status}
    try:
        yield call_activity(context, "record_span", payload)
    except Exception:  # noqa: BLE001  # a lost span must not fail the orchestration
        return


@asynccontextmanager
async def activity_scope(name: str, link: TraceLink | None, **fields: str) -> AsyncIterator[None]:
    """Record a span while the body of an activity runs, and add `fields` to its log lines.

    Args:
        fields: ids, no text; see docs/logs-and-traces.md.
    """
    await (await load_async("shared.wiring", "start_telemetry"))()
    # Continue the orchestration's trace if the payload contains one.
    parent = link.own if link else None
    with log_scope(**fields), tracing.span(name, {**fields}, parent=parent):
        yield


def report_defect(step: str, run_id: str) -> None:
    """Log the current exception with its traceback, because the result that the activity returns has no
    details.
    """
    get_logger().exception("activity.defect", step=step, run_id=run_id)
