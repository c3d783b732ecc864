"""Expected behaviour of each route for each person: one probe per kind of route, with results from the
oracle.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from shared.platform.hashing import digest
from tests.e2e.access.corpus import AccessCorpus
from tests.e2e.access.people import (
    ABSENT,
    PAPERS,
    PEOPLE,
    QUESTION,
    Paper,
    Person,
    leaked,
    may_open,
    may_read,
)
from tests.e2e.stack_client import put_in_workspace

Probe = Callable[[AccessCorpus], None]
Oracle = Callable[[Person, Paper], bool]
Make = Callable[[AccessCorpus, str], str]
OWNERS = ("owner", "member", "public only")
"""Whose runs, threads and summaries the others reach for."""


def observable_parts(answer: httpx.Response, requested_id: str) -> tuple[int, str, str]:
    """Return the observable parts of a response, without the id in the request."""
    text = answer.text.replace(requested_id, "ID").replace(requested_id[:64], "ID")
    return answer.status_code, answer.headers.get("content-type", ""), text


def same_as_absent(answer: httpx.Response, requested_id: str, absent: httpx.Response, about: object) -> None:
    """Check that the response for another person's resource equals the response for a missing resource."""
    assert observable_parts(answer, requested_id) == observable_parts(absent, ABSENT), about
    assert answer.status_code == 404, about


def shows_no_foreign(person: Person, answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    assert leaked(person, answer.text) == []


def of_document(method: str, suffix: str = "", figure: bool = False, may: Oracle = may_open) -> Probe:
    """Return a probe of a route that reads a document. Only readers of the document may use it."""

    def probe(world: AccessCorpus) -> None:
        for name, person in PEOPLE.items():
            caller = world.caller(name)
            path = f"/documents/{{}}{suffix.format(figure=world.figure)}"
            absent = caller.request(method, path.format(ABSENT))
            for key, paper in PAPERS.items():
                doc_id = world.doc_id(key)
                answer = caller.request(method, path.format(doc_id))
                if may(person, paper) and (not figure or key == "group"):
                    assert answer.status_code == 200, (name, key, answer.text)
                    if not paper.in_thread:
                        shows_no_foreign(person, answer)
                else:
                    same_as_absent(answer, doc_id, absent, (name, key))

    return probe


def of_owner(method: str, suffix: str = "", body: Mapping[str, Any] | None = None) -> Probe:
    """Return a probe of a route that changes a document. It must reject readers, and respond to all others as
    if the document didn't exist.

    People who may change the document are omitted, because other tests cover them.
    """

    def probe(world: AccessCorpus) -> None:
        for name, person in PEOPLE.items():
            caller = world.caller(name)
            absent = caller.request(method, f"/documents/{ABSENT}{suffix}", json=body)
            for key, paper in PAPERS.items():
                is_changeable = paper.owner_id == person.user_id or "admin" in person.roles
                if is_changeable and not paper.in_thread:
                    continue
                doc_id = world.doc_id(key)
                answer = caller.request(method, f"/documents/{doc_id}{suffix}", json=body)
                if may_read(person, paper):
                    assert answer.status_code == 403, (name, key, answer.text)
                else:
                    same_as_absent(answer, doc_id, absent, (name, key))
        for key in PAPERS:  # the rejected requests must have no effect
            names = [name for name, person in PEOPLE.items() if may_read(person, PAPERS[key])]
            for name in names[:1]:
                assert world.caller(name).get(f"/documents/{world.doc_id(key)}").json()["edited_fields"] == []

    return probe


def of_one_person(
    make: Make,
    method: str,
    path: str,
    own_status: int | tuple[int, ...],
    body: Mapping[str, Any] | None = None,
) -> Probe:
    """Return a probe of a route for a resource that only its owner may access."""

    def probe(world: AccessCorpus) -> None:
        for owner in OWNERS:
            thing = make(world, owner)
            for name in PEOPLE.keys() - {owner}:
                caller = world.caller(name)
                absent = caller.request(method, path.format(ABSENT), json=body)
                foreign = caller.request(method, path.format(thing), json=body)
                same_as_absent(foreign, thing, absent, (owner, name))
            own = world.caller(owner).request(method, path.format(thing), json=body)
            expected = own_status if isinstance(own_status, tuple) else (own_status,)
            assert own.status_code in expected, (owner, own.text)

    return probe


def for_administrators(method: str, path: str, expected: tuple[int, ...] = (200,)) -> Probe:
    """Return a probe of a route that requires the application role `admin`. `expected` are the statuses for
    administrators.
    """

    def probe(world: AccessCorpus) -> None:
        for name, person in PEOPLE.items():
            answer = world.caller(name).request(method, path)
            may = "admin" in person.roles
            assert answer.status_code in (expected if may else (403,)), (name, answer.text)
            if answer.status_code == 403:
                assert [key for key, paper in PAPERS.items() if paper.mark in answer.text] == []

    return probe


def for_everybody(path: str) -> Probe:
    """Return a probe of a route without authentication, whose response must not reveal anything."""

    def probe(world: AccessCorpus) -> None:
        with world.client({}) as nobody:
            answer = nobody.get(path)
        assert answer.status_code == 200
        assert [key for key, paper in PAPERS.items() if paper.mark in answer.text] == []

    return probe


def of_anyone_known(path: str) -> Probe:
    """Return a probe of a route that returns the same to all users, but requires authentication."""

    def probe(world: AccessCorpus) -> None:
        with world.client({}) as nobody:
            assert nobody.get(path).status_code == 401
        for name in PEOPLE:
            answer = world.caller(name).get(path)
            assert answer.status_code == 200, name
            assert [key for key, paper in PAPERS.items() if paper.mark in answer.text] == []

    return probe


def for_channels_alone(world: AccessCorpus) -> None:
    """Check that the bot's route accepts only tokens of the Bot Service, and no user's token."""
    activity = {
        "type": "message",
        "id": "1",
        "channelId": "msteams",
        "serviceUrl": "http://127.0.0.1:9/",
        "from": {"id": "x", "aadObjectId": PEOPLE["owner"].user_id},
        "recipient": {"id": "bot"},
        "conversation": {"id": "c", "conversationType": "personal"},
        "text": QUESTION,
    }
    for name in PEOPLE:
        assert world.caller(name).post("/messages", json=activity).status_code == 401, name


def run_of(world: AccessCorpus, name: str) -> str:
    return str(world.runs[name]["run_id"])


def keeps_to_own_runs(world: AccessCorpus, name: str, run_ids: set[str]) -> None:
    """Check that each run can be read only by the person who asked its question."""
    others = [other for other in PEOPLE if other != name]
    theirs = {runs[other]["run_id"] for runs in (world.runs, world.scoped_runs) for other in others}
    assert run_ids.isdisjoint(theirs), name
    for run_id in run_ids:
        assert world.caller(name).get(f"/runs/{run_id}").status_code == 200, (name, run_id)


def thread_of(world: AccessCorpus, name: str) -> str:
    return str(world.runs[name]["thread_id"])


def summary_of(world: AccessCorpus, name: str) -> str:
    return world.summaries[name]


def new_thread(world: AccessCorpus, name: str) -> str:
    response = world.caller(name).post("/threads", json={"title": "secret"})
    assert response.status_code == 201, response.text
    return str(response.json()["thread_id"])


def file_of(world: AccessCorpus, name: str) -> str:
    file = f"{digest(name)[:8]}.md"
    put_in_workspace(world.stack, PEOPLE[name].user_id, file)
    return file


def new_summary(world: AccessCorpus, name: str) -> str:
    response = world.caller(name).post("/summaries", json={"doc_ids": [world.doc_id("public")]})
    assert response.status_code == 202, response.text
    return str(response.json()["summary_id"])


def events_of(caller: httpx.Client, path: str, after: int | None = None) -> list[dict[str, Any]]:
    """Return the data of all events of a stream."""
    answer = caller.get(path, headers={} if after is None else {"Last-Event-ID": str(after)})
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
