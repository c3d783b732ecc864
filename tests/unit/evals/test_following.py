"""Following a run: a line that breaks is taken up again, and nobody waits for ever."""

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evals.budgets.following import Caller

Events = tuple[tuple[str, Mapping[str, object]], ...]
EVENTS: Events = (
    ("status", {"state": "accepted"}),
    ("token", {"text": "Seven"}),
    ("complete", {"answer": {"text": "Seven"}}),
)


class App(ThreadingHTTPServer):
    """Sends `at_once` events per request; `choices` are the answers that it was given."""

    daemon_threads = True

    def __init__(self, at_once: int, events: Events) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.at_once, self.events = at_once, events
        self.choices: list[object] = []
        self.asked_after: list[int] = []


class Handler(BaseHTTPRequestHandler):
    """One request: some events, then the line breaks."""

    server: App

    def do_GET(self) -> None:
        self._send(int(self.headers.get("Last-Event-ID", "0")))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/chat":
            self._send(0)
        else:
            self.server.choices.append(body)
            self.send_response(202)
            self.end_headers()

    def log_message(self, *_: object) -> None:
        return

    def _send(self, after: int) -> None:
        self.server.asked_after.append(after)
        self.send_response(200)
        self.send_header("X-Run-Id", "r1")
        self.end_headers()
        for number, (name, data) in enumerate(self.server.events, start=1):
            if after < number <= after + self.server.at_once:
                self.wfile.write(f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode())


@pytest.fixture
def serve() -> Iterator[type[App]]:
    """Makes apps that serve until the test ends."""
    made: list[App] = []

    class Serving(App):
        def __init__(self, at_once: int, events: Events = EVENTS) -> None:
            super().__init__(at_once, events)
            made.append(self)
            threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    yield Serving
    for app in made:
        app.shutdown()
        app.server_close()


def caller_of(app: App) -> Caller:
    return Caller(lambda: app.server_address[1], "token")


def test_a_whole_answer_is_read_to_its_last_event(serve: type[App]) -> None:
    app = serve(3, EVENTS)
    seen = caller_of(app).ask("How many?", 10)
    assert (seen.run_id, seen.reconnects) == ("r1", 0)
    assert seen.last is not None
    assert seen.last.name == "complete"
    assert seen.ended is not None
    assert seen.ended >= seen.began


def test_a_line_that_breaks_is_taken_up_where_it_broke(serve: type[App]) -> None:
    app = serve(1, EVENTS)
    seen = caller_of(app).ask("How many?", 10)
    assert [event.number for event in seen.events] == [1, 2, 3]
    assert app.asked_after == [0, 1, 2]
    assert seen.reconnects == 2


def test_a_run_without_an_end_is_given_up(serve: type[App]) -> None:
    seen = caller_of(serve(3, EVENTS[:2])).ask("How many?", 0.5)
    assert seen.last is None
    assert seen.ended is None


def test_a_question_back_is_answered_and_the_time_counts_from_then(serve: type[App]) -> None:
    events: Events = (EVENTS[0], ("ask_user", {"question": "Which?"}), *EVENTS[1:])
    app = serve(4, events)
    moments: list[int] = []
    seen = caller_of(app).ask("How many?", 10, lambda event: moments.append(event.number))
    assert app.choices == [{"choice": 1}]
    assert moments == [1, 2, 3, 4]
    assert seen.last is not None


def test_a_replay_is_read_whole(serve: type[App]) -> None:
    again = caller_of(serve(3, EVENTS)).replay("r1")
    assert [event.name for event in again] == ["status", "token", "complete"]
