"""Tests for following a run: an interrupted stream is resumed, and every wait has a time limit."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from evals.budgets.following import Caller
from tests.http_server import Answer, HttpServer, Request

Events = tuple[tuple[str, Mapping[str, object]], ...]
EVENTS: Events = (
    ("status", {"state": "accepted"}),
    ("token", {"text": "Seven"}),
    ("complete", {"answer": {"text": "Seven"}}),
)


class App(HttpServer):
    """An app that sends `at_once` events per request and then ends the response.

    Attributes:
        choices: the answers that it received.
        asked_after: number of the last event that each request knows.
    """

    def __init__(self, at_once: int, events: Events = EVENTS) -> None:
        super().__init__(self._respond)
        self._at_once, self._events = at_once, events
        self.choices: list[object] = []
        self.asked_after: list[int] = []

    def _respond(self, request: Request) -> Answer:
        if request.method == "POST" and request.target != "/api/chat":
            self.choices.append(json.loads(request.body))
            return 202, {}, b""
        after = int(request.headers.get("Last-Event-ID", "0"))
        self.asked_after.append(after)
        frames = [
            f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"
            for number, (name, data) in enumerate(self._events, start=1)
        ]
        return 200, {"X-Run-Id": "r1"}, "".join(frames[after : after + self._at_once]).encode()


@pytest.fixture
def serve() -> Iterator[Callable[..., App]]:
    """Return a function that starts apps, which are stopped after the test."""
    with ExitStack() as running:
        yield lambda *parts: running.enter_context(App(*parts))


def caller_of(app: App) -> Caller:
    return Caller(lambda: int(app.url.rpartition(":")[2]), "token")


def test_a_whole_answer_is_read_to_its_last_event(serve: Callable[..., App]) -> None:
    app = serve(3, EVENTS)
    seen = caller_of(app).ask("How many?", 10)
    assert (seen.run_id, seen.reconnects) == ("r1", 0)
    assert seen.last is not None
    assert seen.last.name == "complete"
    assert seen.ended is not None
    assert seen.ended >= seen.began


def test_a_line_that_breaks_is_taken_up_where_it_broke(serve: Callable[..., App]) -> None:
    app = serve(1, EVENTS)
    seen = caller_of(app).ask("How many?", 10)
    assert [event.number for event in seen.events] == [1, 2, 3]
    assert app.asked_after == [0, 1, 2]
    assert seen.reconnects == 2


def test_a_run_without_an_end_is_given_up(serve: Callable[..., App]) -> None:
    seen = caller_of(serve(3, EVENTS[:2])).ask("How many?", 0.5)
    assert seen.last is None
    assert seen.ended is None


def test_a_question_back_is_answered_and_the_time_counts_from_then(serve: Callable[..., App]) -> None:
    events: Events = (EVENTS[0], ("ask_user", {"question": "Which?"}), *EVENTS[1:])
    app = serve(4, events)
    moments: list[int] = []
    seen = caller_of(app).ask("How many?", 10, lambda event: moments.append(event.number))
    assert app.choices == [{"choice": 1}]
    assert moments == [1, 2, 3, 4]
    assert seen.last is not None


def test_a_replay_is_read_whole(serve: Callable[..., App]) -> None:
    again = caller_of(serve(3, EVENTS)).replay("r1")
    assert [event.name for event in again] == ["status", "token", "complete"]
