"""Tests for spans of requests and events: their name, parent and duration."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import APIRouter
from opentelemetry.trace import SpanKind, StatusCode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from functions.http.api_route import ApiRoute
from functions.http.application import build_app
from functions.http.contracts import contract
from functions.http.trigger_scope import trigger_scope
from shared.platform import tracing
from shared.platform.errors import DependencyError, NotFoundError
from shared.platform.telemetry import LOGGER_NAME, get_logger, note_fields, pseudonym
from tests.tracing_fixture import Recorded, recorded, start_recording
from tests.unit.functions.http_app import make_app

__all__ = ["recorded", "start_recording"]

TRACE = "0af7651916cd43dd8448eb211c80319c"

HEADERS = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "X-Request-Id": "request-1"}


async def get_run(req: Request) -> Response:
    note_fields(user_id="anna@example.org")
    match req.path_params["run_id"]:
        case "missing":
            raise NotFoundError("There is no SECRET run.")
        case "down":
            raise DependencyError("No connection to SECRET.")
        case "broken":
            raise ZeroDivisionError("SECRET")
    get_logger().info("run.read")
    return JSONResponse({})


async def follow(req: Request) -> Response:
    async def frames() -> AsyncIterator[bytes]:
        for number in range(3):
            with tracing.span("poll"):
                await asyncio.sleep(0.02)
            get_logger().info("frame.sent", number=number)
            yield b"data\n"

    return StreamingResponse(frames())


ROUTER = APIRouter(route_class=ApiRoute)
ROUTER.get("/api/runs/{run_id}", **contract(""))(get_run)
ROUTER.get("/api/runs/{run_id}/events", **contract(""))(follow)


async def get(path: str, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(build_app([ROUTER]))
    async with httpx.AsyncClient(transport=transport, base_url="http://app/api") as client:
        return await client.get(path, headers={**HEADERS, **headers})


async def test_a_request_goes_on_with_the_trace_of_its_caller(recorded: Recorded) -> None:
    answered = await get("/runs/abc")
    span = recorded.one("GET /api/runs/{run_id}")
    assert span.kind is SpanKind.SERVER
    assert span.context is not None
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    attributes = recorded.attributes(span.name)
    assert attributes["http.route"] == "/api/runs/{run_id}"
    assert attributes["http.response.status_code"] == 200
    assert (attributes["request_id"], attributes["run_id"]) == ("request-1", "abc")
    assert attributes["user_id"] == pseudonym("anna@example.org")
    assert answered.headers["x-request-id"] == "request-1"


@pytest.mark.parametrize(
    ("run_id", "status", "error_type", "failed"),
    [
        ("missing", 404, "NotFoundError", False),
        ("down", 503, DependencyError.code, True),
        ("broken", 500, "InternalError", True),
    ],
)
async def test_an_error_is_told_by_its_type(
    recorded: Recorded, run_id: str, status: int, error_type: str, *, failed: bool
) -> None:
    answered = await get(f"/runs/{run_id}")
    assert answered.status_code == status
    assert answered.headers["x-request-id"] == "request-1"
    span = recorded.one("GET /api/runs/{run_id}")
    assert (span.status.status_code is StatusCode.ERROR) == failed
    attributes = recorded.attributes(span.name)
    assert (attributes["http.response.status_code"], attributes["error.type"]) == (status, error_type)
    assert "SECRET" not in f"{dict(attributes)} {span.events} {span.status.description}"


async def test_the_span_of_a_stream_is_as_long_as_the_stream(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    answered = await get("/runs/abc/events")
    assert answered.text == "data\n" * 3
    assert recorded.names == ["GET /api/runs/{run_id}/events"]  # polling for events creates no spans
    span = recorded.one("GET /api/runs/{run_id}/events")
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time >= 0.06e9
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [(line["run_id"], line["request_id"]) for line in lines] == [("abc", "request-1")] * 3


@pytest.mark.parametrize("doc_id", ["7", "pages", "documents", "api"])
async def test_a_span_has_the_route_of_its_request_whatever_the_parameters_are(
    recorded: Recorded, doc_id: str
) -> None:
    app = make_app(client=None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app/api") as client:
        await client.get(f"/documents/{doc_id}/pages/7")
    assert recorded.names == ["GET /api/documents/{doc_id}/pages/{page}"]


async def test_without_a_receiver_there_is_still_an_id_in_the_answer_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    answered = await get("/runs/abc", **{"X-Request-Id": "not an id of ours"})
    request_id = answered.headers["x-request-id"]
    assert len(request_id) == 32
    line = json.loads(caplog.records[-1].getMessage())
    assert (line["request_id"], line["run_id"]) == (request_id, "abc")
    assert line["user_id"] == pseudonym("anna@example.org")
    assert "trace_id" not in line


@pytest.mark.parametrize("traceparent", ["", "rubbish", f"00-{'0' * 32}-b7ad6b7169203331-01"])
async def test_a_trace_context_that_is_none_begins_a_trace(recorded: Recorded, traceparent: str) -> None:
    await get("/runs/abc", traceparent=traceparent)
    span = recorded.one("GET /api/runs/{run_id}")
    assert span.parent is None
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" != TRACE


async def test_an_event_begins_a_trace_and_its_fields_are_in_the_log(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    async with trigger_scope("remember_turn", run_id="r1", thread_id="t1"):
        get_logger().info("turn.remembered")
    span = recorded.one("remember_turn")
    assert (span.kind, span.parent) == (SpanKind.CONSUMER, None)
    line = json.loads(caplog.records[-1].getMessage())
    assert (line["run_id"], line["thread_id"]) == ("r1", "t1")
    assert span.context is not None
    assert line["trace_id"] == f"{span.context.trace_id:032x}"


async def test_two_events_are_two_traces(recorded: Recorded) -> None:
    for _ in range(2):
        async with trigger_scope("blob_created"):
            pass
    assert len({span.context.trace_id for span in recorded.all if span.context}) == 2


async def test_one_inside_a_request_is_part_of_its_trace(recorded: Recorded) -> None:
    with tracing.root("request", "server"):
        async with trigger_scope("reconcile_documents"):
            pass
    assert recorded.parent_of("reconcile_documents") == "request"


async def test_one_that_fails_says_so_and_raises(recorded: Recorded) -> None:
    with pytest.raises(ZeroDivisionError):
        async with trigger_scope("erase_turns", thread_id="t1"):
            raise ZeroDivisionError("SECRET")
    assert recorded.attributes("erase_turns")["error.type"] == "ZeroDivisionError"
    assert "SECRET" not in str(recorded.one("erase_turns").status.description)
