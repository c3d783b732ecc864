"""Tests for load runs: reproducible users, detected errors and correct statistics."""

import itertools
import json
from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.load.crowd import Behaviour, Turn
from benchmarks.load.visitor import Asked, Visitor

COMPLETE = {"answer": {"abstained": False, "warnings": []}}
WHOLE = (
    (1, "status", {"thread_id": "t"}),
    (2, "token", {"text": "a"}),
    (3, "token", {"text": "b"}),
    (4, "complete", COMPLETE),
)


class App:
    """An app that answers every question with these events."""

    def __init__(self, events: tuple[tuple[int, str, object], ...] = WHOLE, status: int = 200) -> None:
        self._events = events
        self._status = status
        self.calls: list[str] = []

    def client(self) -> httpx.AsyncClient:
        routes = [
            Route("/api/chat", self.stream, methods=["POST"]),
            Route("/api/runs/r/events", self.stream),
            Route("/api/runs/r/cancel", self.other, methods=["POST"]),
        ]
        transport = httpx.ASGITransport(Starlette(routes=routes))
        return httpx.AsyncClient(transport=transport, base_url="http://app")

    async def stream(self, request: Request) -> Response:
        after = int(request.headers.get("last-event-id", 0))
        self.calls.append(f"{request.method} after {after}")
        frames = [
            f": a comment\n\nid: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"
            for number, name, data in self._events
            if number > after
        ]
        return Response("".join(frames), self._status, {"X-Run-Id": "r"}, "text/event-stream")

    async def other(self, request: Request) -> Response:
        self.calls.append("cancel")
        return JSONResponse({})


def always(behaviour: Behaviour) -> Iterator[Turn]:
    return itertools.repeat(Turn("What?", True, behaviour, 2))


async def asked_of(app: App, behaviour: Behaviour = "reads") -> Asked:
    async with app.client() as client:
        visitor = Visitor(client, "token", always(behaviour), 0.0)
        await visitor.ask()
    return visitor.asked[0]


async def test_an_answer_is_timed_and_is_no_fault() -> None:
    record = await asked_of(App())
    assert (record.outcome, record.faults, record.events) == ("answered", [], 4)
    assert None not in (record.first_event, record.first_token, record.ended)


async def test_whoever_hangs_up_goes_on_behind_the_last_event_received() -> None:
    app = App()
    record = await asked_of(app, "reconnects")
    assert app.calls == ["POST after 0", "GET after 2"]
    assert (record.faults, record.reconnects, record.outcome) == ([], 1, "answered")


async def test_a_cancelled_run_is_none_of_ours_unless_we_cancelled_it() -> None:
    app = App((*WHOLE[:2], (3, "error", {"type": "RunCancelledError", "message": "."})))
    assert (await asked_of(app, "cancels")).outcome == "cancelled"
    assert "cancel" in app.calls
    assert (await asked_of(app)).faults == ["ended with RunCancelledError: ."]


@pytest.mark.parametrize(
    ("app", "fault"),
    [
        (App(status=500), "POST: 500"),
        (App((WHOLE[0], WHOLE[2], WHOLE[3])), "event 3 came where 2 was due"),
        (
            App((*WHOLE[:2], (3, "error", {"type": "TimeoutError", "message": "."}))),
            "ended with TimeoutError",
        ),
    ],
)
async def test_what_is_not_as_promised_is_a_fault(app: App, fault: str) -> None:
    record = await asked_of(app)
    assert record.faults[0].startswith(fault)
