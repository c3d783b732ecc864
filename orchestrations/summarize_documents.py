"""Summarises documents by map-reduce: a child per document, a map over its windows, two reduces.

Steps exchange data through the summary's blobs. A child that fails or is late is left out with a warning, and
the windows it had read are used.
"""

from collections.abc import Generator
from datetime import timedelta
from math import ceil
from typing import Any

import azure.durable_functions as df

from orchestrations.fan_out import Child, ChildEnd, race
from orchestrations.payloads import as_object, call_activity, close_trace, input_of, traced_child
from shared.summaries.models import (
    DocumentEnded,
    DocumentOpened,
    DocumentStart,
    SummaryClosed,
    SummaryReply,
    SummaryReplyEnvelope,
    SummaryStart,
    SummaryStep,
    SummaryStepFailed,
    WindowsRead,
)

MAX_RANGES = 24  # activities per document's map, because every step replays the whole history
AT_ONCE = 2  # concurrent activities per document (unmeasured; the model endpoint is the bottleneck)
PAUSES_S = (5, 20)  # before failed windows are retried; a service has often recovered by then
CLOSE_PAUSES_S = (2, 8, 30, 120)  # before storing the end is retried, because nobody sees an unstored end

Reply = Generator[Any, Any, SummaryReply]


def summarize_documents(
    context: df.DurableOrchestrationContext,
) -> Generator[Any, Any, dict[str, Any]]:
    """Summarise all documents. Input: SummaryStart. Output: {"status"}, with the ends of its children."""
    start = SummaryStart.from_payload(input_of(context))
    children = [_child(context, start, index) for index in range(start.document_count)]
    ended: set[str] = set()

    def show(end: ChildEnd) -> None:
        ended.add(end.instance_id)
        context.set_custom_status({"phase": "documents", "ended": len(ended), "of": len(children)})

    ends = yield from race(context, children, start.children_until, at_once=start.at_once, on_end=show)
    context.set_custom_status({"phase": "merge", "ended": len(ended), "of": len(children)})
    reply = yield from _close(context, SummaryStep(summary_id=start.summary_id))
    status = reply.status if isinstance(reply, SummaryClosed) else "failed"
    yield from close_trace(context, "summarize_documents", status)
    return {"status": status, "children": [end.status for end in ends]}


def summarize_document(
    context: df.DurableOrchestrationContext,
) -> Generator[Any, Any, dict[str, Any]]:
    """Summarise one document (a child orchestration). Input: DocumentStart. Output: {"status"}."""
    start = DocumentStart.from_payload(input_of(context))
    step = SummaryStep(summary_id=start.summary_id, index=start.index)
    opened = yield from _call(context, "open_summary_document", step)
    if isinstance(opened, DocumentOpened):
        yield from _map(context, start, opened.window_count)
        opened = yield from _call(context, "reduce_summary_document", step)
    status = opened.status if isinstance(opened, DocumentEnded | SummaryClosed) else "failed"
    yield from close_trace(context, "summarize_document", status)
    return {"status": status}


def _map(
    context: df.DurableOrchestrationContext, start: DocumentStart, window_count: int
) -> Generator[Any, Any, None]:
    """Read every window, and retry failed ones while there is time."""
    for pause_s in (*PAUSES_S, None):
        replies = yield from _map_once(context, start, window_count)
        may_help = any(
            isinstance(reply, SummaryStepFailed) or (isinstance(reply, WindowsRead) and reply.again)
            for reply in replies
        )
        if not may_help or pause_s is None:
            return
        due = context.current_utc_datetime + timedelta(seconds=pause_s)
        if due >= start.map_until:
            return
        yield context.create_timer(due)


def _map_once(
    context: df.DurableOrchestrationContext, start: DocumentStart, window_count: int
) -> Generator[Any, Any, list[SummaryReply]]:
    size = max(1, ceil(window_count / MAX_RANGES))
    steps = [
        SummaryStep(
            summary_id=start.summary_id, index=start.index, first=first, end=min(first + size, window_count)
        )
        for first in range(0, window_count, size)
    ]
    replies: list[SummaryReply] = []
    for place in range(0, len(steps), AT_ONCE):
        tasks = [
            call_activity(context, "read_summary_windows", step.model_dump(mode="json"))
            for step in steps[place : place + AT_ONCE]
        ]
        results = yield context.task_all(tasks)
        replies += [SummaryReplyEnvelope.from_payload(as_object(result)).reply for result in results]
        if any(isinstance(reply, SummaryClosed) for reply in replies):
            return replies
    return replies


def _close(context: df.DurableOrchestrationContext, step: SummaryStep) -> Reply:
    for pause_s in (*CLOSE_PAUSES_S, None):
        reply = yield from _call(context, "reduce_summary", step)
        if isinstance(reply, SummaryClosed) or pause_s is None:
            return reply
        yield context.create_timer(context.current_utc_datetime + timedelta(seconds=pause_s))
    raise AssertionError("the last attempt returns or raises")


def _call(context: df.DurableOrchestrationContext, activity: str, step: SummaryStep) -> Reply:
    result = yield call_activity(context, activity, step.model_dump(mode="json"))
    return SummaryReplyEnvelope.from_payload(as_object(result)).reply


def _child(context: df.DurableOrchestrationContext, start: SummaryStart, index: int) -> Child:
    child_id = f"{context.instance_id}:d{index}"
    made = DocumentStart(summary_id=start.summary_id, index=index, map_until=start.map_until)
    payload = traced_child(context, made.model_dump(mode="json"), child_id)
    return Child("summarize_document", payload, child_id)
