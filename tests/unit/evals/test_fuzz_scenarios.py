"""Tests for fuzz scenarios, which follow the links of the API and detect leaked or retained data."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from evals.fuzz import scenarios
from evals.fuzz.report import is_clean, report
from evals.fuzz.scenarios import Player, Told
from evals.fuzz.things import Things
from functions.http.openapi.description import describe_operations
from shared.conversations.models import ThreadView
from tests.api_routes import api_operations
from tests.http_server import Answer, HttpServer, Request, json_answer

CALLS = ("create_thread", "get_thread", "delete_thread")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOKENS = {"anna": "of-anna", "ben": "of-ben"}


@pytest.fixture
def app(request: pytest.FixtureRequest) -> Iterator[str]:
    """Serve an app with threads that has the defect named by the fixture parameter."""
    owners: dict[str, str] = {}

    def respond(http_request: Request) -> Answer:
        user, thread_id = http_request.headers["Authorization"], http_request.target.rpartition("/")[2]
        owner = owners.get(thread_id)
        if http_request.method == "POST":
            owners[new_id := f"t{len(owners)}"] = user
            return json_answer(view_of(new_id), 201)
        if owner is None or (
            owner != user and not (http_request.method == "GET" and request.param == "shows")
        ):
            problem = {"type": "about:blank", "title": "Not Found", "status": 404, "code": "NotFoundError"}
            return json_answer(problem, 404, "application/problem+json")
        if http_request.method == "GET":
            return json_answer(view_of(thread_id))
        if request.param != "keeps":
            del owners[thread_id]
        return 204, {}, b""

    with HttpServer(respond) as server:
        yield f"{server.url}/api"


def view_of(thread_id: str) -> dict[str, Any]:
    view = ThreadView(thread_id=thread_id, title="valves", created_at=NOW, updated_at=NOW, turn_count=0)
    return view.model_dump(mode="json")


def played(url: str, seed: int = 1, count: int = 12) -> Told:
    document = describe_operations([one for one in api_operations() if one.name in CALLS])
    return Player(document, url, Things(), seed).play(TOKENS, count)


def complaints(outcome: Told) -> list[str]:
    return [
        text
        for one in outcome.seen
        for text in one.complaints
        if "another user" in text or "deletion" in text
    ]


@pytest.mark.parametrize("app", ["nothing"], indirect=True)
def test_what_is_made_is_followed_tried_by_another_and_looked_for_when_it_is_gone(app: str) -> None:
    outcome = played(app)
    assert outcome.scenarios == 12
    assert outcome.links.keys() == {"get_thread", "delete_thread"}
    assert outcome.foreign > 0
    assert outcome.gone > 0
    assert complaints(outcome) == []
    assert outcome.body["calls"] == len(outcome.seen)
    again = played(app)
    assert [one.name for one in again.seen] == [one.name for one in outcome.seen]


@pytest.mark.parametrize(
    ("app", "complaint"),
    [("shows", "answered with 200 to another user"), ("keeps", "answered with 200 after its deletion")],
    indirect=["app"],
)
def test_what_another_user_gets_or_is_still_there_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, app: str, complaint: str
) -> None:
    monkeypatch.setattr(scenarios, "_MOMENTS_S", 0.0)
    outcome = played(app)
    assert set(complaints(outcome)) == {complaint}
    assert not is_clean(report(outcome.seen[:1], [], outcome))
