"""Events and messages: each begins a trace, or goes on with the one that it is part of."""

import json
import logging

import pytest
from opentelemetry.trace import SpanKind

from functions.http.request_scope import consumed
from shared.platform import tracing
from shared.platform.telemetry import LOGGER_NAME, get_logger
from tests.tracing_fixture import Recorded, recorded, start_recording

__all__ = ["recorded", "start_recording"]


async def test_an_event_begins_a_trace_and_its_fields_are_in_the_log(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    async with consumed("remember_turn", run_id="r1", thread_id="t1"):
        get_logger().info("turn.remembered")
    span = recorded.one("remember_turn")
    assert (span.kind, span.parent) == (SpanKind.CONSUMER, None)
    line = json.loads(caplog.records[-1].getMessage())
    assert (line["run_id"], line["thread_id"]) == ("r1", "t1")
    assert span.context is not None
    assert line["trace_id"] == f"{span.context.trace_id:032x}"


async def test_two_events_are_two_traces(recorded: Recorded) -> None:
    for _ in range(2):
        async with consumed("blob_created"):
            pass
    assert len({span.context.trace_id for span in recorded.all if span.context}) == 2


async def test_one_inside_a_request_is_part_of_its_trace(recorded: Recorded) -> None:
    with tracing.root("request", "server"):
        async with consumed("reconcile_documents"):
            pass
    assert recorded.parent_of("reconcile_documents") == "request"


async def test_one_that_fails_says_so_and_raises(recorded: Recorded) -> None:
    with pytest.raises(ZeroDivisionError):
        async with consumed("erase_turns", thread_id="t1"):
            raise ZeroDivisionError("SECRET")
    assert recorded.attributes("erase_turns")["error.type"] == "ZeroDivisionError"
    assert "SECRET" not in str(recorded.one("erase_turns").status.description)
