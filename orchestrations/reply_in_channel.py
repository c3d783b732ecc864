"""Orchestration that replies to a chat message by performing the steps of `shared.teams.steps` in sequence.

Each activity returns the next step. There is one instance per channel activity, so redeliveries are answered
once. It may wait for days while a run waits for its owner.
"""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import as_object, call_activity, close_trace, input_of
from shared.teams.models import ReplyStep

MAX_STEPS = 200  # including polls of files, parts of a long run, and retries; a typical reply takes two steps


def reply_in_channel(
    context: df.DurableOrchestrationContext,
) -> Generator[Any, Any, dict[str, Any]]:
    """Reply to a stored message. Input: {"reply_key", "folder"}. Output: {"status", "steps"}."""
    step = ReplyStep.from_payload(input_of(context))
    steps = 0
    while step.kind != "end" and steps < MAX_STEPS:
        context.set_custom_status({"step": step.kind, "run_id": step.run_id, "attempt": step.attempt})
        step = yield from _perform(context, step)
        steps += 1
    status = "completed" if step.kind == "end" and not step.error else "failed"
    yield from close_trace(context, "reply_in_channel", status)
    return {"status": status, "steps": steps}


def _perform(context: df.DurableOrchestrationContext, step: ReplyStep) -> Generator[Any, Any, ReplyStep]:
    if step.delay_s:
        yield context.create_timer(context.current_utc_datetime + timedelta(seconds=step.delay_s))
    payload = step.model_copy(update={"delay_s": 0.0}).model_dump(mode="json")
    return ReplyStep.from_payload(as_object((yield call_activity(context, "reply_step", payload))))
