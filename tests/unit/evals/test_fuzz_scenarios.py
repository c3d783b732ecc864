"""Scenarios follow the description's links, and find an app that shows or keeps what it should not."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evals.fuzz import scenarios
from evals.fuzz.report import is_clean, report
from evals.fuzz.scenarios import Player, Told
from evals.fuzz.things import Things
from functions.http.openapi.description import describe_operations
from shared.conversations.models import ThreadView
from tests.api_routes import api_operations

CALLS = ("create_thread", "get_thread", "delete_thread")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOKENS = {"anna": "of-anna", "ben": "of-ben"}


class _Threads(BaseHTTPRequestHandler):
    """Threads, of which the server's `faults` say what is wrong with it."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        thread_id = f"t{len(self.owners)}"
        self.owners[thread_id] = self.headers["Authorization"]
        self._reply(201, _view(thread_id))

    def do_GET(self) -> None:
        thread_id = self.path.rpartition("/")[2]
        owner = self.owners.get(thread_id)
        is_there = owner is not None and (owner == self.headers["Authorization"] or "shows" in self.faults)
        self._reply(200, _view(thread_id)) if is_there else self._missing()

    def do_DELETE(self) -> None:
        thread_id = self.path.rpartition("/")[2]
        if self.owners.get(thread_id) != self.headers["Authorization"]:
            self._missing()
            return
        if "keeps" not in self.faults:
            del self.owners[thread_id]
        self._reply(204, "")

    def _missing(self) -> None:
        problem = {"type": "about:blank", "title": "Not Found", "status": 404, "code": "NotFoundError"}
        self._reply(404, json.dumps(problem), "application/problem+json")

    def _reply(self, status: int, body: str, media_type: str = "application/json") -> None:
        self.send_response(status)
        if body:
            self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    @property
    def owners(self) -> dict[str, str]:
        found: dict[str, str] = self.server.owners  # type: ignore[attr-defined]
        return found

    @property
    def faults(self) -> str:
        found: str = self.server.faults  # type: ignore[attr-defined]
        return found

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the base class's name
        """Nothing: tests read no log of it."""


def _view(thread_id: str) -> str:
    view = ThreadView(thread_id=thread_id, title="valves", created_at=NOW, updated_at=NOW, turn_count=0)
    return view.model_dump_json()


@pytest.fixture
def app(request: pytest.FixtureRequest) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Threads)
    server.owners, server.faults = {}, request.param  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api"
    server.shutdown()
    server.server_close()
    thread.join()


def played(url: str, seed: int = 1, count: int = 12) -> Told:
    document = describe_operations([one for one in api_operations() if one.name in CALLS])
    return Player(document, url, Things(), seed).play(TOKENS, count)


def complaints(told: Told) -> list[str]:
    return [
        text for one in told.seen for text in one.complaints if "another user" in text or "deletion" in text
    ]


@pytest.mark.parametrize("app", ["nothing"], indirect=True)
def test_what_is_made_is_followed_tried_by_another_and_looked_for_when_it_is_gone(app: str) -> None:
    told = played(app)
    assert told.scenarios == 12
    assert told.links.keys() == {"get_thread", "delete_thread"}
    assert told.foreign > 0
    assert told.gone > 0
    assert complaints(told) == []
    assert told.body["calls"] == len(told.seen)
    again = played(app)
    assert [one.name for one in again.seen] == [one.name for one in told.seen]


@pytest.mark.parametrize(
    ("app", "complaint"),
    [("shows", "answered with 200 to another user"), ("keeps", "answered with 200 after its deletion")],
    indirect=["app"],
)
def test_what_another_user_gets_or_is_still_there_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, app: str, complaint: str
) -> None:
    monkeypatch.setattr(scenarios, "_MOMENTS_S", 0.0)
    told = played(app)
    assert set(complaints(told)) == {complaint}
    assert not is_clean(report(told.seen[:1], [], told))
