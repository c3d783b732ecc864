"""Tests for administration: users, their limits, and erasure over HTTP and by the queue."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import azure.functions as func
import httpx
import pytest
from starlette.types import ASGIApp

from functions import background
from shared.documents.ids import document_id
from shared.erasure import passes
from shared.erasure import threads as erased_threads
from shared.platform.names import DOCUMENTS, ERASURES_QUEUE
from shared.wiring import Services
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.stores import InMemoryTaskQueues
from tests.unit.conversations.asking import ask
from tests.unit.functions.http_app import (
    IngestingClient,
    as_user,
    connect,
    make_app,
    problem_of,
    settings_of_tests,
)
from tests.world import TEXTS, corpus_services


class Client(IngestingClient):
    """A durable client that also reports orchestrations in progress."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.terminated: list[str] = []
        self.purged: list[str] = []

    async def get_status(self, instance: str) -> Any:
        status = await super().get_status(instance)
        if status.runtime_status is not None:
            return status
        return SimpleNamespace(runtime_status=SimpleNamespace(value="Running"))

    async def terminate(self, instance: str, reason: str) -> None:
        self.terminated.append(instance)

    async def purge_instance_history(self, instance: str) -> None:
        self.purged.append(instance)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "LAST_PASS_AFTER_S", 0.0)
    monkeypatch.setattr(erased_threads, "_READERS_S", 0.0)


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    return connect(monkeypatch, await corpus_services(settings=settings_of_tests()))


@pytest.fixture
def client(services: Services) -> Client:
    return Client(services)


@pytest.fixture
def app(services: Services, client: Client) -> ASGIApp:
    return make_app(client)


@pytest.fixture
def olga(app: ASGIApp) -> httpx.AsyncClient:
    return as_user(app, "olga", roles=["admin"])


async def handle_queue(services: Services, client: Client) -> int:
    """Deliver all queued erasure messages to the function and return their number."""
    assert isinstance(services.queues, InMemoryTaskQueues)
    messages = services.queues.take(ERASURES_QUEUE)
    for message in messages:
        await background.erase_turns(func.QueueMessage(body=message.encode()), client)
    return len(messages)


async def test_only_administrators_have_people_erased(app: ASGIApp, services: Services) -> None:
    for client in (as_user(app, "anna"), as_user(app, "anna", groups=["admin"])):
        for user_id in ("anna", "ben", "nobody"):
            assert problem_of(await client.delete(f"/users/{user_id}"))[0] == 403
            assert problem_of(await client.get(f"/users/{user_id}/erasure"))[0] == 403
    assert isinstance(services.queues, InMemoryTaskQueues)
    assert services.queues.messages == {}


async def test_a_person_is_erased_and_the_report_says_how_much(
    olga: httpx.AsyncClient, app: ASGIApp, services: Services, client: Client
) -> None:
    request = await ask(services, "At what pressure does the pump run?")
    response = await olga.delete("/users/anna")
    assert (response.status_code, response.headers["location"]) == (202, "/api/users/anna/erasure")
    assert (response.json()["status"], response.json()["documents"]) == ("running", "keep")
    await handle_queue(services, client)
    assert client.terminated.count(request.run_id) >= 1
    anna = as_user(app, "anna", groups=["engineering"])
    assert (await anna.get("/threads")).json()["threads"] == []
    report = (await olga.get("/users/anna/erasure")).json()
    assert (report["status"], report["passes"], report["erased"]["runs"]) == ("running", 1, 1)
    await handle_queue(services, client)
    report = (await olga.get("/users/anna/erasure")).json()
    assert (report["status"], report["next_pass_at"]) == ("completed", None)
    assert {one["what"] for one in report["kept"]} >= {"documents that only they may read", "this report"}
    assert request.run_id in client.purged
    assert await handle_queue(services, client) == 0


async def test_a_message_of_a_newer_version_is_read_without_what_that_one_added(
    olga: httpx.AsyncClient, services: Services, client: Client
) -> None:
    request = await ask(services, "At what pressure does the pump run?")
    await olga.delete("/users/anna")
    assert isinstance(services.queues, InMemoryTaskQueues)
    (of_person,) = services.queues.take(ERASURES_QUEUE)
    of_thread = f'{{"owner_id": "anna", "thread_id": "{request.thread_id}", "through": 1}}'
    for message in (of_person, of_thread):
        await services.queues.send(ERASURES_QUEUE, message.replace("{", '{"added_later": 1, '))
    assert await handle_queue(services, client) == 2
    assert (await olga.get("/users/anna/erasure")).json()["passes"] == 1


async def test_asking_again_changes_nothing_while_it_is_at_work(
    olga: httpx.AsyncClient, services: Services, client: Client
) -> None:
    first = (await olga.delete("/users/anna")).json()
    again = await olga.delete("/users/anna")
    assert (again.status_code, again.json()) == (202, first)
    assert problem_of(await olga.delete("/users/anna?documents=delete"))[0] == 409
    while await handle_queue(services, client):
        pass
    assert (await olga.get("/users/anna/erasure")).json()["status"] == "completed"
    again = (await olga.delete("/users/anna?documents=delete")).json()
    assert again["asked_at"] > first["asked_at"]


async def test_a_document_of_theirs_alone_goes_when_that_is_asked_for(
    olga: httpx.AsyncClient, app: ASGIApp, services: Services, client: Client
) -> None:
    anna = as_user(app, "anna")
    for name, acl in (("diary.md", ""), ("shared.md", "engineering")):
        response = await anna.post(
            "/documents", data={"acl": acl} if acl else {}, files={"file": (name, f"# Of {name}".encode())}
        )
        assert response.status_code == 202, response.text
    del client.started[1:]  # the second orchestration is irrelevant for this test
    await olga.delete("/users/anna?documents=delete")
    outcomes = []
    while await handle_queue(services, client):
        outcomes += await client.run()
    assert outcomes == ["removed"]
    report = (await olga.get("/users/anna/erasure")).json()
    assert (report["status"], report["erased"]["documents"]) == ("completed", 1)
    left = [one.name async for one in services.blobs.list_blobs(DOCUMENTS)]
    assert [name.rpartition("/")[2] for name in left] == ["shared.md", "shared.md.acl.json"]
    states = [one.doc_id async for one in services.documents.all()]
    assert set(states) - TEXTS.keys() == {document_id(left[0])}


@pytest.mark.parametrize("user_id", ["%20", "a" * 257, "a%00b", "a%0Ab"])
async def test_what_can_be_no_id_is_refused(olga: httpx.AsyncClient, user_id: str) -> None:
    assert problem_of(await olga.delete(f"/users/{user_id}"))[0] == 400
    assert problem_of(await olga.get(f"/users/{user_id}/erasure"))[0] == 400


async def test_a_choice_that_there_is_not_is_refused(olga: httpx.AsyncClient) -> None:
    assert problem_of(await olga.delete("/users/anna?documents=some"))[0] == 400


async def test_an_erasure_that_nobody_asked_for_is_not_there(olga: httpx.AsyncClient) -> None:
    assert problem_of(await olga.get("/users/anna/erasure"))[0] == 404


async def test_odd_ids_lead_back_to_their_report(olga: httpx.AsyncClient) -> None:
    response = await olga.delete("/users/conversation:0f%20%C3%BC")
    assert response.json()["user_id"] == "conversation:0f ü"
    path = response.headers["location"].removeprefix("/api")
    report = (await olga.get(path)).json()
    assert report["user_id"] == "conversation:0f ü"
    assert datetime.fromisoformat(report["asked_at"]) <= datetime.now(UTC)


async def test_people_are_listed_with_what_they_used_up_today(olga: httpx.AsyncClient, app: ASGIApp) -> None:
    anna = as_user(app, "anna")
    assert (await anna.post("/search", json={"query": "pump"})).status_code == 200
    assert (await anna.post("/documents", files={"file": ("a.md", b"# A")})).status_code == 202
    (person,) = [one for one in (await olga.get("/users")).json()["people"] if one["user_id"] == "anna"]
    used = {one["resource"]: (one["used"], one["limit"]) for one in person["today"]}
    assert used["documents"][0] == 1
    assert used["documents"][1] > 0
    assert (await anna.get("/users")).status_code == 403


async def test_people_are_found_by_name(olga: httpx.AsyncClient, services: Services) -> None:
    assert isinstance(services.directory, InMemoryDirectory)
    services.directory.groups = {"mara": frozenset()}  # a user, not a group
    services.directory.names = {"mara": frozenset(), "marketing": frozenset({"g1"})}
    people = (await olga.get("/users?q=mar")).json()["people"]
    assert [(one["user_id"], one["name"]) for one in people] == [("mara", "mara")]
    assert len(people[0]["today"]) == 7
