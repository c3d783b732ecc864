"""Tests for threads and memory over HTTP: bodies, pages and refusals, with two users on every route."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from shared.answering.inline import run_to_end
from shared.answering.retention import purge_old_runs
from shared.answering.run_end import cancel_run
from shared.answering.runs import Arrival, begin_run, close_dead_run
from shared.conversations.memory import MemorySearch
from shared.conversations.thread_store import ThreadStore
from shared.runs.models import ChatRequest
from shared.runs.run_store import RunStore
from shared.wiring import Services
from tests.fakes.dying import Death, Mortal
from tests.queued_work import remember_queued
from tests.unit.conversations.asking import ask
from tests.unit.functions.http_app import (
    IngestingClient,
    as_user,
    connect,
    make_app,
    problem_of,
    settings_of_tests,
)
from tests.world import ANNA, Model, corpus_services, plan

QUESTION = "At what pressure does the pump run?"


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    return connect(monkeypatch, await corpus_services(settings=settings_of_tests()))


@pytest.fixture
def app(services: Services) -> ASGIApp:
    return make_app(IngestingClient(services))


async def test_memory_is_switched_off_and_on_again(
    anna: httpx.AsyncClient, ben: httpx.AsyncClient, services: Services
) -> None:
    await ask(services, QUESTION)
    await remember_queued(services)
    assert (await anna.put("/memory", json={"is_on": False})).json() == {"is_on": False}
    assert (await ben.get("/memory")).json()["is_on"] is True
    await ask(services, "And why?")
    await remember_queued(services)
    waits = await ask(services, "Since when?")
    listed = (await anna.get("/memory")).json()
    assert (listed["is_on"], [one["question"] for one in listed["memories"]]) == (False, [QUESTION])
    assert await MemorySearch(services, ANNA).recall(QUESTION) == []
    assert (await anna.put("/memory", json={"is_on": True})).status_code == 200
    await remember_queued(services)
    assert [one.question for one in await MemorySearch(services, ANNA).recall(QUESTION)] == [QUESTION]
    assert waits.run_id not in {one["memory_id"] for one in (await anna.get("/memory")).json()["memories"]}
    assert problem_of(await anna.put("/memory", json={"is_on": "no"}))[0] == 400


async def test_a_branch_begins_with_the_turns_of_another_thread(
    anna: httpx.AsyncClient, ben: httpx.AsyncClient, services: Services
) -> None:
    first = await ask(services, QUESTION)
    await ask(services, "And why?", first.thread_id)
    body = {"branch": {"thread_id": first.thread_id, "run_id": first.run_id}}
    for caller in (anna, anna):
        response = await caller.post("/threads", json=body, headers={"Idempotency-Key": "once"})
        assert (response.status_code, response.json()["turn_count"]) == (201, 1)
    messages = (await anna.get(f"/threads/{response.json()['thread_id']}/messages")).json()["messages"]
    assert [message["run_id"] for message in messages] == [first.run_id]
    assert (await anna.get("/threads")).json()["count"] == 2
    refused = await ben.post("/threads", json=body)
    absent = {"branch": {"thread_id": "absent", "run_id": first.run_id}}
    expected = await ben.post("/threads", json=absent)
    assert problem_of(refused) == problem_of(expected) == (404, "NotFoundError")
    assert refused.json()["detail"].replace(first.thread_id, "absent") == expected.json()["detail"]
    assert (await ben.get("/threads")).json()["count"] == 0


async def test_a_thread_is_made_renamed_and_deleted(anna: httpx.AsyncClient) -> None:
    response = await anna.post("/threads", json={"title": "  Pumps "})
    thread_id = response.json()["thread_id"]
    assert (response.status_code, response.json()["title"]) == (201, "Pumps")
    assert response.headers["location"] == f"/api/threads/{thread_id}"
    renamed = await anna.patch(f"/threads/{thread_id}", json={"title": "Valves"})
    assert renamed.json()["title"] == "Valves"
    assert (await anna.get(f"/threads/{thread_id}")).json() == renamed.json()
    listed = (await anna.get("/threads")).json()
    assert (listed["threads"], listed["count"], listed["cursor"]) == ([renamed.json()], 1, None)
    for _ in range(2):
        assert (await anna.delete(f"/threads/{thread_id}")).status_code == 204
    assert problem_of(await anna.get(f"/threads/{thread_id}")) == (404, "NotFoundError")
    assert (await anna.get("/threads")).json()["count"] == 0


async def test_messages_have_question_answer_and_citations(
    anna: httpx.AsyncClient, services: Services
) -> None:
    request = await ask(services, QUESTION)
    page = (await anna.get(f"/threads/{request.thread_id}/messages")).json()
    (message,) = page["messages"]
    assert (message["run_id"], message["question"], message["status"]) == (
        request.run_id,
        QUESTION,
        "completed",
    )
    assert message["answer"]["text"].startswith("It runs at 15 bar.")
    assert message["answer"]["citations"][0]["verified"] is True
    assert message["answer"]["figures"] == []
    assert page["cursor"] is None
    cleared = await anna.post(f"/threads/{request.thread_id}/clear")
    assert (cleared.status_code, cleared.json()["turn_count"]) == (200, 0)
    assert (await anna.get(f"/threads/{request.thread_id}/messages")).json()["messages"] == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/threads/{id}", None),
        ("PATCH", "/threads/{id}", {"title": "mine"}),
        ("DELETE", "/threads/{id}", None),
        ("POST", "/threads/{id}/clear", None),
        ("GET", "/threads/{id}/messages", None),
    ],
)
async def test_a_foreign_thread_and_one_that_never_was_are_told_apart_by_nothing(
    ben: httpx.AsyncClient, services: Services, method: str, path: str, body: Any
) -> None:
    request = await ask(services, QUESTION)
    absent = "0" * 32
    answers = []
    for thread_id in (request.thread_id, absent):
        answered = await ben.request(method, path.format(id=thread_id), json=body)
        assert problem_of(answered) == (404, "NotFoundError")
        answers.append(answered.text.replace(thread_id, "ID"))
    assert answers[0] == answers[1]
    assert (await services.threads.page(ANNA.user_id, 10)).threads[0].title == QUESTION


async def test_lists_are_ones_own(
    anna: httpx.AsyncClient, ben: httpx.AsyncClient, services: Services
) -> None:
    await ask(services, QUESTION)
    await remember_queued(services)
    assert (await ben.get("/threads")).json()["threads"] == []
    assert (await ben.get("/memory")).json()["memories"] == []
    assert (await ben.delete("/memory")).json() == {"deleted": 0}
    (memory,) = (await anna.get("/memory")).json()["memories"]
    assert memory["question"] == QUESTION
    assert (await anna.delete("/memory")).json() == {"deleted": 1}
    assert (await anna.get("/memory")).json()["memories"] == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/threads", {"title": ""}),
        ("POST", "/threads", {"title": "x" * 121}),
        ("POST", "/threads", {"owner_id": "ben"}),
        ("PATCH", "/threads/x", {}),
        ("PATCH", "/threads/x", {"title": None}),
        ("GET", "/threads?limit=0", None),
        ("GET", "/threads?limit=101", None),
        ("GET", "/threads?limit=١", None),
        ("GET", "/threads?cursor=%27%20or%20true", None),
        ("GET", "/threads/x/messages?cursor=-1", None),
        ("GET", "/threads/x/messages?limit=x", None),
        ("GET", "/memory?cursor=x", None),
        ("GET", "/memory?limit=1000", None),
    ],
)
async def test_what_is_no_good_is_refused(anna: httpx.AsyncClient, method: str, path: str, body: Any) -> None:
    assert problem_of(await anna.request(method, path, json=body)) == (400, "InvalidRequestError")


async def test_an_old_run_has_its_answer_and_no_events(anna: httpx.AsyncClient, services: Services) -> None:
    async def forget(run_id: str) -> None:
        """Do nothing, as no orchestrator has data about the run."""

    request = await ask(services, QUESTION)
    assert await purge_old_runs(datetime.now(UTC) + timedelta(days=31), services, forget) == 1
    run = (await anna.get(f"/runs/{request.run_id}")).json()
    assert run["answer"]["text"].startswith("It runs at 15 bar.")
    assert problem_of(await anna.get(f"/runs/{request.run_id}/events")) == (404, "NotFoundError")


@pytest.mark.parametrize("thread_id", ["a%2Fb", "%00", "x" * 65, "a'b"])
async def test_an_id_that_cannot_exist_is_not_found(anna: httpx.AsyncClient, thread_id: str) -> None:
    assert (await anna.get(f"/threads/{thread_id}/messages")).status_code == 404


async def test_a_thread_that_somebody_renamed_meanwhile_is_not_renamed_again(
    anna: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    path = f"/threads/{(await anna.post('/threads', json={'title': 'Pumps'})).json()['thread_id']}"
    etag = (await anna.get(path)).headers["etag"]
    assert (await anna.get(path, headers={"If-None-Match": etag})).status_code == 304
    seen = {"If-Match": etag}
    renamed = await anna.patch(path, json={"title": "Valves"}, headers=seen)
    assert renamed.headers["etag"] == (await anna.get(path)).headers["etag"] != etag
    for late in (
        await anna.patch(path, json={"title": "Motors"}, headers=seen),
        await anna.delete(path, headers=seen),
    ):
        assert problem_of(late) == (412, "PreconditionFailedError")
    assert problem_of(await ben.delete(path, headers=seen))[0] == 404
    assert (await anna.get(path)).json()["title"] == "Valves"
    assert (await anna.delete(path, headers={"If-Match": renamed.headers["etag"]})).status_code == 204


async def test_no_cache_between_keeps_an_answer_that_was_made_for_somebody(
    services: Services, app: ASGIApp
) -> None:
    """Check cache headers: a cookie identifies the user on the platform, so shared caches can't tell users
    apart.
    """
    request = await ask(services, "At what pressure does the pump run?")
    run_id, thread_id = request.run_id, request.thread_id
    anna = as_user(app, ANNA.user_id, groups=list(ANNA.groups))
    paths = (
        "/me",
        "/threads",
        f"/threads/{thread_id}",
        f"/threads/{thread_id}/messages",
        "/memory",
        f"/runs/{run_id}",
        f"/runs/{run_id}/events",
        f"/runs/{run_id}/feedback",
        "/runs/none",
    )
    answers: dict[str, httpx.Response] = {path: await anna.get(path) for path in paths}
    answers["nobody"] = await httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test/api"
    ).get("/me")
    cache_headers = {path: answer.headers.get("cache-control", "") for path, answer in answers.items()}
    assert {
        path for path, header in cache_headers.items() if "no-store" not in header and "private" not in header
    } == set()
    assert {path for path, header in cache_headers.items() if "no-store" not in header} == {
        f"/threads/{thread_id}"
    }


async def test_no_browser_takes_an_answer_for_something_else_than_it_says(
    services: Services, app: ASGIApp
) -> None:
    answer = await as_user(app, ANNA.user_id).get("/threads/none")
    assert answer.headers["x-content-type-options"] == "nosniff"


def counted(services: Services) -> tuple[Services, Death]:
    """Return the services with counted reads and writes of the thread and run tables, and the counter."""
    count = Death(at=1_000_000)
    threads: Any = Mortal(services.threads._table, (), count)
    runs: Any = Mortal(services.runs._table, (), count)
    return replace(services, threads=ThreadStore(threads), runs=RunStore(runs)), count


async def test_listing_threads_reads_nothing_per_thread(
    anna: httpx.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    counting, count = counted(services)
    connect(monkeypatch, counting)
    listed = (await anna.get("/threads")).json()["threads"]
    assert [one["active_run"]["status"] for one in listed] == ["running"] * 5
    assert [call for call in count.calls if call != "ensure"] == ["first"]  # ignores creation


async def test_thread_names_its_newest_run_while_that_is_active(
    anna: httpx.AsyncClient, services: Services
) -> None:
    async def active() -> Any:
        (listed,) = (await anna.get("/threads")).json()["threads"]
        return listed["active_run"]

    first = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    assert await active() == {"run_id": first.run_id, "status": "running"}
    thread_id = first.thread_id
    second = await begin_run(ChatRequest(question="And why?", thread_id=thread_id), ANNA, services)
    await run_to_end(first.run_id, services)
    assert await active() == {"run_id": second.run_id, "status": "running"}
    await run_to_end(second.run_id, services)
    assert await active() is None
    third = await begin_run(ChatRequest(question="Since when?", thread_id=thread_id), ANNA, services)
    await cancel_run(third.run_id, services)
    assert await active() is None
    fourth = await begin_run(ChatRequest(question="Until when?", thread_id=thread_id), ANNA, services)
    await close_dead_run(fourth.run_id, "It died.", services)
    assert await active() is None


async def test_thread_shows_that_its_run_waits(
    anna: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = Model(plan(document_references=("report",)))
    services = await corpus_services(asks, settings=settings_of_tests())
    connect(monkeypatch, services)
    run = await begin_run(ChatRequest(question="What was the revenue in the report?"), ANNA, services)
    await run_to_end(run.run_id, services)
    (listed,) = (await anna.get("/threads")).json()["threads"]
    assert listed["active_run"] == {"run_id": run.run_id, "status": "waiting"}


async def test_run_that_cannot_be_active_any_more_is_not_shown(
    anna: httpx.AsyncClient, services: Services
) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=5)
    await begin_run(ChatRequest(question=QUESTION), ANNA, services, Arrival(long_ago))
    (listed,) = (await anna.get("/threads")).json()["threads"]
    assert listed["active_run"] is None
