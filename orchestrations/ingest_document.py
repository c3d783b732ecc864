"""Orchestration that updates both indexes to match the current state of one blob.

Only the instance `ingest-{doc_id}` works on a document. Each execution acquires a fence, reads the document's
row and processes the blob. It starts again if the row has recorded another change meanwhile. New blocks are
written before the row, and stale blocks are deleted after it.

A failed step is retried if its reply allows that. Short pauses are durable timers. A longer pause ends the
execution and frees its place for another document; the next execution reuses the stored results. Waiting for
a turn doesn't count as a failure.
"""

from collections.abc import Generator, Sequence
from datetime import timedelta
from math import ceil
from typing import Any, TypeVar

import azure.durable_functions as df

from orchestrations.payloads import as_object, call_activity, close_trace, input_of, with_trace
from shared.ingestion.models import (
    BLOCK_COUNTS,
    Accepted,
    Closed,
    CloseRequest,
    Done,
    Fenced,
    IngestFailure,
    IngestReply,
    IngestReplyEnvelope,
    IngestRequest,
    IngestResult,
    IngestStep,
    Parsed,
    Planned,
    RestRequest,
    SmallDone,
)

MIN_RANGE = 64  # minimum number of blocks that an activity embeds and writes
MIN_FIGURES = 8  # minimum per activity; four are captioned at once, so this is two rounds of model calls
MAX_RANGES = 40  # activities per document and kind; limited because each replays the whole history
PAUSES_S = (2, 8)  # pauses before the retries of a failed step
RESTS_S = (30, 120, 300)  # pauses between executions; together, the time that a service may need to recover
MAX_HELD_S = 10  # longer pauses end the execution instead of waiting
MAX_PAUSE_S = 600
WORKER_PAUSE_S = 2  # first pause of a step that waits for a free worker; doubled after each check
MAX_CONCURRENT_STEPS = 4  # for one document; the embedding service is the bottleneck (unmeasured)

_LOOKED = {"wish", "work", "rests"}
Outcome = tuple[IngestResult, bool]
"""The result, and whether another execution must process the blob again."""

ActivityInput = IngestStep | CloseRequest | RestRequest
Replies = Generator[Any, Any, list[IngestReply]]
ReplyKind = TypeVar("ReplyKind", bound=IngestReply)


class _StoppedError(Exception):
    """Raised when a step's reply ends the ingestion, because the step failed or was overtaken. Internal to
    this module.
    """

    def __init__(self, reply: IngestReply) -> None:
        super().__init__()
        self.reply = reply


class _RestError(Exception):
    """Raised to end the execution because the next attempt is too far away to wait for. Internal to this
    module.
    """

    def __init__(self, pause_s: float, reply: IngestFailure) -> None:
        super().__init__()
        self.pause_s = pause_s
        self.reply = reply


def ingest_document(context: df.DurableOrchestrationContext) -> Generator[Any, Any, dict[str, Any]]:
    """Ingest, update or remove one document. Input: IngestRequest. Output: IngestResult."""
    request = IngestRequest.from_payload(input_of(context))
    step = IngestStep(blob_name=request.blob_name, fence=str(context.new_uuid()))
    try:
        accepted = yield from _step(context, "accept_document", step, Accepted)
        step = step.model_copy(update=accepted.model_dump(include=_LOOKED))
        result, again = yield from _bring_in_line(context, step, accepted)
    except _StoppedError as stopped:
        result, again = yield from _end_early(context, step, stopped.reply)
    except _RestError as rest:
        result, again = yield from _rest(context, step, rest)
    if again:
        context.continue_as_new(with_trace(context, request.model_dump(mode="json")))
    else:
        yield from close_trace(context, "ingest_document", result.outcome)
    return result.model_dump(mode="json")


def _bring_in_line(
    context: df.DurableOrchestrationContext, step: IngestStep, accepted: Accepted
) -> Generator[Any, Any, Outcome]:
    if accepted.outcome == "nothing":
        return IngestResult(outcome="nothing"), False
    if accepted.outcome == "gone":
        closed = yield from _step(context, "remove_document", step, Closed)
        return IngestResult(outcome="removed"), closed.again
    if accepted.done is not None:
        return accepted.done.result, accepted.done.again
    result = IngestResult(outcome="current")
    # Update permissions before content, because a long ingestion must not delay the withdrawal of access.
    if accepted.rights_changed:
        yield from _step(context, "apply_rights", step, Done)
        result = IngestResult(outcome="rights")
    if accepted.content_changed and accepted.small:
        done = yield from _step(context, "ingest_small_document", step, SmallDone)
        return (result if done.result.outcome == "current" else done.result), done.again
    if accepted.content_changed:
        result = yield from _ingest(context, step, result)
    closed = yield from _step(context, "close_document", CloseRequest(step=step, status="ready"), Closed)
    return result, closed.again


def _ingest(
    context: df.DurableOrchestrationContext, step: IngestStep, unchanged: IngestResult
) -> Generator[Any, Any, IngestResult]:
    parsed = yield from _step(context, "parse_document", step, Parsed)
    if parsed.same_bytes:
        return unchanged
    step = step.model_copy(update={"version_key": parsed.version_key})
    yield from _step(context, "describe_document", step, Done)
    planned = yield from _step(context, "plan_document", step, Planned)
    # Create captions before embedding, because they are part of the embedded text.
    if planned.new_figure_count:
        context.set_custom_status({"step": "caption_figures"})
        yield from _in_ranges(context, "caption_figures", step, planned.new_figure_count, MIN_FIGURES)
    yield from _in_ranges(context, "write_blocks", step, planned.new_count, MIN_RANGE)
    yield from _step(context, "finish_document", step, Done)
    return IngestResult(outcome="ready", **planned.model_dump(include=BLOCK_COUNTS))


def _in_ranges(
    context: df.DurableOrchestrationContext, activity: str, step: IngestStep, count: int, smallest: int
) -> Generator[Any, Any, None]:
    size = max(smallest, ceil(count / MAX_RANGES))
    steps = [
        step.model_copy(update={"first": first, "end": min(first + size, count)})
        for first in range(0, count, size)
    ]
    for reply in (yield from _call_all(context, activity, steps)):
        _expect(reply, Done)


def _end_early(
    context: df.DurableOrchestrationContext, step: IngestStep, reply: IngestReply
) -> Generator[Any, Any, Outcome]:
    if not isinstance(reply, IngestFailure):
        return IngestResult(outcome="overtaken"), isinstance(reply, Fenced)
    request = CloseRequest(
        step=_with_state(step, reply),
        status="failed",
        reason=reply.reason,
        hint=reply.hint or None,
        failure=reply.failure,
        may_pass=reply.retryable,
    )
    (closed,) = yield from _call_all(context, "close_document", [request])
    # Don't restart if `closed` is Fenced: a newer ingestion has taken over and is already starting, and a
    # restart could fail forever.
    again = isinstance(closed, Closed) and closed.again
    return IngestResult(outcome="failed", reason=reply.reason), again


def _rest(
    context: df.DurableOrchestrationContext, step: IngestStep, rest: _RestError
) -> Generator[Any, Any, Outcome]:
    request = RestRequest(
        step=_with_state(step, rest.reply), pause_s=rest.pause_s, has_failed=not rest.reply.waits
    )
    (reply,) = yield from _call_once(context, "rest_document", [request])
    # If this step fails as well, the document keeps its slot until the periodic ingestion check restarts it.
    again = isinstance(reply, Fenced) or (isinstance(reply, Closed) and reply.again)
    return IngestResult(outcome="rests"), again


def _with_state(step: IngestStep, reply: IngestFailure) -> IngestStep:
    return step if step.wish else step.model_copy(update=reply.model_dump(include=_LOOKED))


def _step(
    context: df.DurableOrchestrationContext,
    activity: str,
    payload: ActivityInput,
    kind: type[ReplyKind],
) -> Generator[Any, Any, ReplyKind]:
    context.set_custom_status({"step": activity})
    (reply,) = yield from _call_all(context, activity, [payload])
    return _expect(reply, kind)


def _expect(reply: IngestReply, kind: type[ReplyKind]) -> ReplyKind:
    if not isinstance(reply, kind):
        raise _StoppedError(reply)
    return reply


def _call_all(
    context: df.DurableOrchestrationContext, activity: str, payloads: Sequence[ActivityInput]
) -> Replies:
    """Call an activity for each payload, with limited concurrency and retries, and return the replies in the
    order of the payloads.
    """
    replies = yield from _call_once(context, activity, payloads)
    tries = [0] * len(payloads)
    waits = 0
    while retryable := {
        position: reply
        for position, reply in enumerate(replies)
        if isinstance(reply, IngestFailure) and reply.retryable
    }:
        failed = [position for position, reply in retryable.items() if not reply.waits]
        most = max((tries[position] for position in failed), default=0)
        rests = max(_rests(payloads[position], reply) for position, reply in retryable.items())
        if failed and most == len(PAUSES_S) and rests == len(RESTS_S):
            break
        pause_s = (*PAUSES_S, *RESTS_S[rests:])[most] if failed else WORKER_PAUSE_S * 2**waits
        waits += not failed
        for position in failed:
            tries[position] += 1
        asked_s = max(reply.retry_after_s or 0.0 for reply in retryable.values())
        is_last = rests == len(RESTS_S)
        pause_s = min(max(pause_s, asked_s), MAX_HELD_S if failed and is_last else MAX_PAUSE_S)
        if pause_s > MAX_HELD_S:
            raise _RestError(pause_s, retryable[failed[0]] if failed else next(iter(retryable.values())))
        yield context.create_timer(context.current_utc_datetime + timedelta(seconds=pause_s))
        retried = [
            _attempt(payloads[position], is_last=is_last and tries[position] == len(PAUSES_S))
            for position in retryable
        ]
        answers = yield from _call_once(context, activity, retried)
        for position, answer in zip(retryable, answers, strict=True):
            replies[position] = answer
    return replies


def _attempt(payload: ActivityInput, *, is_last: bool) -> ActivityInput:
    if is_last and isinstance(payload, IngestStep):
        return payload.model_copy(update={"last_attempt": True})
    return payload


def _rests(payload: ActivityInput, reply: IngestFailure) -> int:
    # The first step learns the number of rests only from the document's row. Steps that close an ingestion
    # never rest.
    return max(payload.rests, reply.rests) if isinstance(payload, IngestStep) else len(RESTS_S)


def _call_once(
    context: df.DurableOrchestrationContext, activity: str, payloads: Sequence[ActivityInput]
) -> Replies:
    replies: list[IngestReply] = []
    for start in range(0, len(payloads), MAX_CONCURRENT_STEPS):
        window = payloads[start : start + MAX_CONCURRENT_STEPS]
        tasks = [call_activity(context, activity, payload.model_dump(mode="json")) for payload in window]
        results = yield context.task_all(tasks)
        replies.extend(IngestReplyEnvelope.from_payload(as_object(result)).reply for result in results)
    return replies
