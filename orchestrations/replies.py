"""Calling activities that answer with a reply: again after a pause when the reply says that it may help.

What failed has five more tries; what only waits for its turn loses none of them by that.

The pause is a durable timer, not a sleeping worker; no `…_with_retry` of the SDK, which has no back-off and
whose failures shift task ids. Used by orchestrators only, inside their generators.
"""

from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import as_object
from orchestrations.traces import traced
from shared.ingestion.models import CloseRequest, IngestFailure, IngestReply, IngestReplyEnvelope, IngestStep

PAUSES_S = (2, 8, 30, 120, 300)  # together as long as a service usually takes to come back
MAX_PAUSE_S = 600
TURN_PAUSE_S = 30  # before a step that waits for others looks again; longer by as much each time
MAX_TURN_PAUSE_S = 300
MAX_TURNS = 60  # some five hours; the whole history is replayed at each
AT_ONCE = 4  # activities in flight for one document; the embedding service is the bottleneck (unmeasured)
Replies = Generator[Any, Any, list[IngestReply]]


def call(
    context: df.DurableOrchestrationContext, activity: str, payload: IngestStep | CloseRequest
) -> Generator[Any, Any, IngestReply]:
    """Call one activity until it answers with something else than a failure that may pass."""
    (reply,) = yield from call_all(context, activity, [payload])
    return reply


def call_all(
    context: df.DurableOrchestrationContext, activity: str, payloads: Sequence[IngestStep | CloseRequest]
) -> Replies:
    """Call an activity for each payload, a few at once; replies in order. Failures are tried again."""
    replies = yield from _call_once(context, activity, payloads)
    tries = turns = 0
    while again := [position for position, reply in enumerate(replies) if _may_pass(reply)]:
        only_waits = turns < MAX_TURNS and all(_waits(replies[position]) for position in again)
        if not only_waits and tries == len(PAUSES_S):
            break
        pause_s = min(TURN_PAUSE_S * (turns + 1), MAX_TURN_PAUSE_S) if only_waits else PAUSES_S[tries]
        tries, turns = tries + (not only_waits), turns + only_waits
        wait_s = max(pause_s, *(_asked_wait_s(replies[position]) for position in again))
        yield context.create_timer(context.current_utc_datetime + timedelta(seconds=min(wait_s, MAX_PAUSE_S)))
        retried = [_marked(payloads[position], last=tries == len(PAUSES_S)) for position in again]
        for position, reply in zip(again, (yield from _call_once(context, activity, retried)), strict=True):
            replies[position] = reply
    return replies


def _call_once(
    context: df.DurableOrchestrationContext, activity: str, payloads: Sequence[IngestStep | CloseRequest]
) -> Replies:
    replies: list[IngestReply] = []
    for start in range(0, len(payloads), AT_ONCE):
        window = payloads[start : start + AT_ONCE]
        inputs = [traced(context, payload.model_dump(mode="json")) for payload in window]
        tasks = [context.call_activity(activity, given) for given in inputs]
        try:
            results = yield context.task_all(tasks)
        except Exception:  # noqa: BLE001 - an activity that raised: its worker timed out, or a defect
            reason = "A step of the ingestion ended without an answer."
            replies.extend(IngestFailure(reason=reason) for _ in window)
        else:
            replies.extend(IngestReplyEnvelope.from_payload(as_object(result)).reply for result in results)
    return replies


def _may_pass(reply: IngestReply) -> bool:
    return isinstance(reply, IngestFailure) and reply.retryable


def _waits(reply: IngestReply) -> bool:
    return isinstance(reply, IngestFailure) and reply.waits


def _asked_wait_s(reply: IngestReply) -> float:
    return (reply.retry_after_s or 0.0) if isinstance(reply, IngestFailure) else 0.0


def _marked(payload: IngestStep | CloseRequest, *, last: bool) -> IngestStep | CloseRequest:
    if last and isinstance(payload, IngestStep):
        return payload.model_copy(update={"last_attempt": True})
    return payload
