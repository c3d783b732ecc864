"""Orchestration that synchronises a SharePoint library by calling `advance_library` until it is complete.

The state is in the library's row, so steps can be repeated, and the next timer restarts a dead instance.
"""

from collections.abc import Generator
from datetime import timedelta
from typing import Any

import azure.durable_functions as df

from orchestrations.payloads import as_object, call_activity, close_trace, input_of, with_trace
from shared.sharepoint.models import SyncReply, SyncStep

MAX_STEPS = 50  # per execution, because each step replays the history; a new execution then continues
MAX_PAUSE_S = 3600.0


def synchronise_library(context: df.DurableOrchestrationContext) -> Generator[Any, Any, dict[str, Any]]:
    """Synchronise a library. Input: SyncStep. Output: {}."""
    step = SyncStep.from_payload(input_of(context))
    for _ in range(MAX_STEPS):
        result = yield call_activity(context, "advance_library", step.model_dump(mode="json"))
        reply = SyncReply.from_payload(as_object(result))
        if reply.following == "done":
            yield from close_trace(context, "synchronise_library", "completed")
            return {}
        if reply.following == "wait":
            pause = timedelta(seconds=min(reply.pause_s, MAX_PAUSE_S))
            yield context.create_timer(context.current_utc_datetime + pause)
    context.continue_as_new(with_trace(context, step.model_dump(mode="json")))
    return {}
