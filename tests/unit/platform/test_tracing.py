"""Tests for spans: their parents, their attributes, and data that they must never contain."""

import asyncio
import json
import logging
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry.trace import StatusCode

from shared.platform import tracing
from shared.platform.errors import DependencyError, NotFoundError
from shared.platform.telemetry import LOGGER_NAME, get_logger, log_scope
from shared.platform.tracing import context_of, link_below
from tests.tracing_fixture import Recorded, StartRecording, recorded, start_recording

__all__ = ["recorded", "start_recording"]

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "flags"),
    [(PARENT, 1), (f"00-{TRACE}-{SPAN}-00", 0), (f"00-{TRACE}-{SPAN}-03", 3), (f" {PARENT} ", 1),
     (f"cc-{TRACE}-{SPAN}-01-what-comes-later", 1), (f"01-{TRACE}-{SPAN}-01", 1)],
)  # fmt: skip
def test_a_trace_context_is_read(header: str, flags: int) -> None:
    span = context_of(header)
    assert (span.trace_id, span.span_id, span.trace_flags) == (int(TRACE, 16), int(SPAN, 16), flags)


@pytest.mark.parametrize(
    "header",
    ["", "00", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
     f"00-{TRACE.upper()}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01-more", f"00-{TRACE}-{SPAN}",
     f"00-{TRACE[1:]}-{SPAN}-01",     f"{PARENT}, {PARENT}", "<script>"],
)  # fmt: skip
def test_what_is_none_is_as_if_it_were_not_there(header: str) -> None:
    assert not context_of(header).is_valid
    assert link_below(header, "instance", NOW) is None


def test_only_sampled_is_passed_on_of_the_flags() -> None:
    for flags, own in (("03", "-01"), ("02", "-00")):
        link = link_below(f"00-{TRACE}-{SPAN}-{flags}", "run-1", NOW)
        assert link is not None
        assert link.own.endswith(own)


def test_an_orchestration_has_the_same_id_in_each_replay_and_another_than_its_siblings() -> None:
    link = link_below(PARENT, "run-1", NOW)
    assert link is not None
    assert link == link_below(PARENT, "run-1", NOW)
    assert link.own.split("-")[1] == TRACE
    sibling = link_below(PARENT, "run-2", NOW)
    elsewhere = link_below(f"00-{TRACE}-{'1' * 16}-01", "run-1", NOW)
    assert sibling is not None
    assert elsewhere is not None
    assert len({SPAN, *(one.own.split("-")[2] for one in (link, sibling, elsewhere))}) == 4


def test_what_nobody_records_is_recorded_nowhere_below() -> None:
    link = link_below(f"00-{TRACE}-{SPAN}-00", "run-1", NOW)
    assert link is not None
    assert link.own.endswith("-00")


def test_nothing_is_recorded_and_no_sdk_imported_until_it_is_asked_for() -> None:
    code = (
        "import sys; from shared.platform import tracing as spans; from datetime import datetime, UTC\n"
        f"with spans.root('a', 'server', '{PARENT}'), spans.span('b') as b, spans.span('c'):\n"
        "    spans.set_attributes(b, {'x': 1})\n"
        "    assert spans.outgoing() == {}\n"
        "assert not spans.is_on() and spans.link_to('i') == {} and spans.outgoing() == {}\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_span_is_below_the_one_at_work(recorded: Recorded) -> None:
    with tracing.root("request", "server", PARENT):
        with tracing.span("outer"), tracing.span("inner", kind="client"):
            pass
        with tracing.span("second"):
            pass
    assert [recorded.parent_of(name) for name in ("inner", "outer", "second")] == [
        "outer",
        "request",
        "request",
    ]
    assert {f"{span.context.trace_id:032x}" for span in recorded.all if span.context} == {TRACE}


def test_where_no_trace_begins_there_is_no_span(recorded: Recorded) -> None:
    with tracing.span("alone") as alone, tracing.span("activity"):
        tracing.set_attributes(alone, {"a": 1})
    assert recorded.names == []


async def test_tasks_that_are_begun_inside_are_below(recorded: Recorded) -> None:
    async def work() -> None:
        with tracing.span("task"):
            await asyncio.sleep(0)

    with tracing.root("request", "server"):
        await asyncio.gather(asyncio.create_task(work()))
    assert recorded.parent_of("task") == "request"


def test_what_is_asked_again_and_again_leaves_no_spans(recorded: Recorded) -> None:
    with tracing.root("request", "server"), tracing.without_spans(), tracing.span("poll"):
        pass
    assert recorded.names == ["request"]


def test_an_orchestration_is_recorded_under_the_id_that_its_parts_know(recorded: Recorded) -> None:
    with tracing.root("request", "server"):
        parent = tracing.traceparent()
    link = link_below(parent, "run-1", NOW)
    assert link is not None
    with tracing.span("activity", parent=link.own):
        pass
    tracing.record("orchestration", link, {"run_id": "run-1"}, ended_at=NOW + timedelta(seconds=2))
    assert recorded.parent_of("activity") == "orchestration"
    assert recorded.parent_of("orchestration") == "request"
    span = recorded.one("orchestration")
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time == 2_000_000_000
    with tracing.root("next", "server"):
        pass
    assert recorded.one("next").context != span.context  # the fixed span id is used only once


def test_what_the_caller_does_not_record_is_not_recorded(recorded: Recorded) -> None:
    with (
        tracing.root("request", "server", f"00-{TRACE}-b7ad6b7169203331-00"),
        tracing.span("inner"),
    ):
        assert tracing.outgoing()["traceparent"].endswith("-00")
        (link,) = tracing.link_to("run-1").values()
    assert isinstance(link, dict)
    assert link["own"].endswith("-00")
    assert recorded.names == []


def test_a_share_of_the_traces_that_begin_here_can_be_recorded(start_recording: StartRecording) -> None:
    recorded = start_recording(ratio=0.0)
    with tracing.root("ours", "server"):
        pass
    with tracing.root("theirs", "server", PARENT):
        pass
    assert recorded.names == ["theirs"]


def test_a_failure_is_told_by_its_type_and_nothing_else(recorded: Recorded) -> None:
    with pytest.raises(DependencyError), tracing.root("broken", "server"):
        raise DependencyError("SECRET text of a document")
    with pytest.raises(ZeroDivisionError), tracing.root("defect", "server"):
        raise ZeroDivisionError("SECRET")
    for name, error_type in (("broken", DependencyError.code), ("defect", "ZeroDivisionError")):
        span = recorded.one(name)
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
        assert dict(span.attributes or {}) == {"error.type": error_type}
        assert span.events == ()


def test_that_something_is_not_there_is_no_failure(recorded: Recorded) -> None:
    with pytest.raises(NotFoundError), tracing.root("looked", "server"):
        raise NotFoundError("no such blob")
    assert recorded.one("looked").status.status_code is StatusCode.UNSET
    assert recorded.attributes("looked") == {"error.type": NotFoundError.code}


def test_attributes_are_short_and_hold_no_secrets(recorded: Recorded) -> None:
    raw_attributes = {
        "long": "x" * 5000,
        "secret": "https://a/b?sig=abcdef",
        "many": ["Bearer 0123456789ab"],
        "none": None,
    }
    with tracing.root("request", "server", attributes=raw_attributes):
        pass
    attributes = recorded.attributes("request")
    assert len(attributes["long"]) == tracing.MAX_VALUE_CHARS
    assert "abcdef" not in attributes["secret"]
    assert "0123456789ab" not in attributes["many"][0]
    assert "none" not in attributes


@pytest.mark.parametrize("with_content", [False, True])
def test_content_is_recorded_only_where_it_is_asked_for(
    start_recording: StartRecording, *, with_content: bool
) -> None:
    recorded = start_recording(with_content=with_content)
    with tracing.root("call", "client") as call:
        tracing.add_content(
            call, {"gen_ai.input.messages": "What is it? api-key: 0123456789abcdef", "empty": ""}
        )
    events = recorded.one("call").events
    assert len(events) == with_content
    for event in events:
        assert list(event.attributes or {}) == ["gen_ai.input.messages"]
        assert "0123456789abcdef" not in str(event.attributes)


def test_lines_of_the_log_name_the_trace(recorded: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    with tracing.root("request", "server", PARENT), log_scope(request_id="r1"):
        get_logger().info("search.answered", result_count=1)
        span_id = tracing.traceparent().split("-")[2]
    get_logger().info("outside.any")
    inside, outside = (json.loads(record.getMessage()) for record in caplog.records)
    assert (inside["trace_id"], inside["span_id"], inside["request_id"]) == (
        TRACE,
        span_id,
        "r1",
    )
    assert {"trace_id", "span_id", "request_id"}.isdisjoint(outside)
    assert recorded.names == ["request"]
