"""Tests for requests repeated under their idempotency key, sequentially or concurrently."""

import asyncio
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from shared.access.idempotency import LIFETIME, purge_old_requests
from shared.access.limits import release
from shared.access.owner_ids import owner_prefix
from shared.access.user_limit_store import Slot
from shared.conversations.messages import read_messages
from shared.conversations.threads import list_threads, new_thread
from shared.erasure.threads import erase_run
from shared.platform.errors import NotFoundError
from shared.platform.instances import Instances
from shared.platform.names import WORK
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.fakes.dying import Death, Died
from tests.fakes.models import ScriptedChatModel
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.services import fake_services
from tests.fakes.stores_requests import InMemoryUserLimitStore
from tests.unit.answering.summarising import by_rule
from tests.unit.functions.asking_app import WRITES, AskingClient
from tests.unit.functions.http_app import as_user, connect, make_app, problem_of, settings_of_tests
from tests.unit.functions.summarising_app import SummarisingClient
from tests.world import ANNA, add_corpus, corpus_services

QUESTION = {"question": "At what pressure does the pump run?"}

KEY = {"Idempotency-Key": "2f1c"}

LATER = {**KEY, "Prefer": "respond-async"}


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    return connect(monkeypatch, await corpus_services(settings=settings_of_tests(subagents_enabled=False)))


@pytest.fixture
def durable(services: Services) -> AskingClient:
    return AskingClient(services)


@pytest.fixture
def app(durable: AskingClient) -> ASGIApp:
    return make_app(durable)


async def test_ids_of_what_a_person_makes_begin_with_their_prefix(services: Services, app: ASGIApp) -> None:
    prefix = owner_prefix(ANNA.user_id, services.settings.identity.owner_id_key)
    async with as_user(app, "anna", groups=["engineering"]) as http:
        for headers in ({}, KEY):
            chat = (await http.post("/chat", json={**QUESTION, "stream": False}, headers=headers)).json()
            thread = (
                await http.post("/threads", json={}, headers=headers and {"Idempotency-Key": "t"})
            ).json()
            ids = (chat["run_id"], chat["thread_id"], thread["thread_id"])
            assert [one[: len(prefix)] for one in ids] == [prefix] * 3
            assert len(set(ids)) == 3


def slots_of(services: Services) -> list[str]:
    assert isinstance(services.user_limits, InMemoryUserLimitStore)
    return [slot.work_id for slot in services.user_limits.rows["anna"].slots]


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("at", range(9))
async def test_wherever_the_process_dies_a_repeat_makes_one_run(
    monkeypatch: pytest.MonkeyPatch, services: Services, at: int, *, is_behind: bool, in_thread: bool
) -> None:
    body: dict[str, Any] = dict(QUESTION)
    if in_thread:
        body["thread_id"] = (await new_thread(None, ANNA, services.threads, uuid.uuid4().hex)).thread_id
    durable, death = AskingClient(services), Death(at, is_behind=is_behind)
    durable.holds, durable.death = True, death
    anna = as_user(make_app(durable), "anna", groups=["engineering"])
    connect(monkeypatch, death.mortal(services, WRITES))
    with pytest.raises((Died, BaseExceptionGroup)):
        await anna.post("/chat", json=body, headers=LATER)
    assert len(death.calls) == at + 1

    connect(monkeypatch, services)
    durable.death = None
    again = await anna.post("/chat", json=body, headers=LATER)
    assert again.status_code == 202
    run_id = again.json()["run_id"]
    assert durable.started == [run_id]
    await durable.run(run_id)
    assert slots_of(services) == []
    (thread,) = (await list_threads(ANNA, services.threads, 10)).threads
    assert thread.turn_count == 1
    (message,) = (await read_messages(thread.thread_id, ANNA, services, 10)).messages
    assert (message.run_id, message.status) == (run_id, "completed")
    once_more = await anna.post("/chat", json={**body, "stream": True}, headers=KEY)
    assert once_more.headers["x-run-id"] == run_id
    assert once_more.text.count("event: complete") == 1
    assert once_more.text.count('"state":"accepted"') == 1


async def test_a_request_writes_as_often_as_it_is_killed_above(
    monkeypatch: pytest.MonkeyPatch, services: Services, durable: AskingClient, anna: httpx.AsyncClient
) -> None:
    death = Death(99, is_behind=False)
    durable.holds, durable.death = True, death
    connect(monkeypatch, death.mortal(services, WRITES))
    await anna.post("/chat", json=QUESTION, headers=LATER)
    assert len(death.calls) == 9, death.calls
    assert (death.calls[0], death.calls[-1]) == ("write", "write")


def _events(stream: httpx.Response) -> list[str]:
    """Return the events of a stream without comments, which long silences add."""
    return [part for part in stream.text.split("\n\n") if not part.startswith(":")]


async def test_a_repeat_follows_the_same_run_from_its_first_event_or_after_one(
    anna: httpx.AsyncClient, durable: AskingClient
) -> None:
    first = await anna.post("/chat", json=QUESTION, headers=KEY)
    again = await anna.post("/chat", json=QUESTION, headers=KEY)
    rest = await anna.post("/chat", json=QUESTION, headers={**KEY, "Last-Event-ID": "2"})
    assert len(durable.started) == 1
    assert _events(first) == _events(again)
    assert _events(first)[2:] == _events(rest)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == rest.headers["idempotency-replayed"] == "true"
    assert again.headers["x-run-id"] == first.headers["x-run-id"]


async def test_in_json_a_repeat_gets_the_same_answer(anna: httpx.AsyncClient) -> None:
    body = {**QUESTION, "stream": False}
    first, again = [await anna.post("/chat", json=body, headers=KEY) for _ in range(2)]
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert first.json()["answer"]["text"].startswith("It runs at 15 bar.")


async def test_without_a_key_each_request_asks(anna: httpx.AsyncClient, durable: AskingClient) -> None:
    for _ in range(2):
        await anna.post("/chat", json=QUESTION)
    assert len(set(durable.started)) == 2


async def test_a_key_is_its_persons_own(
    anna: httpx.AsyncClient, ben: httpx.AsyncClient, durable: AskingClient
) -> None:
    for person in (anna, ben):
        assert (await person.post("/chat", json=QUESTION, headers=KEY)).status_code == 200
    assert len(set(durable.started)) == 2


async def test_a_key_is_for_one_request(anna: httpx.AsyncClient) -> None:
    await anna.post("/chat", json=QUESTION, headers=KEY)
    for path, body in (
        ("/chat", {"question": "How much was earned?"}),
        ("/chat", {**QUESTION, "deep": True}),
        ("/threads", {}),
    ):
        refused = await anna.post(path, json=body, headers=KEY)
        assert problem_of(refused) == (422, "IdempotencyKeyReusedError")
        assert "pump" not in refused.text
    same = {**QUESTION, "deep": False, "doc_ids": []}  # omitted fields have their defaults
    assert (await anna.post("/chat", json=same, headers=KEY)).status_code == 200


@pytest.mark.parametrize("key", ["", "a b", "ü", "x" * 201])
async def test_what_is_no_key_is_refused(anna: httpx.AsyncClient, key: str) -> None:
    refused = await anna.post("/chat", json=QUESTION, headers={b"Idempotency-Key": key.encode()})
    assert problem_of(refused) == (400, "InvalidRequestError")


async def test_after_a_day_a_key_may_be_used_again(
    anna: httpx.AsyncClient, services: Services, durable: AskingClient
) -> None:
    first = await anna.post("/chat", json=QUESTION, headers=KEY)
    store = services.idempotency
    claim = await store.get("anna", KEY["Idempotency-Key"])
    assert claim is not None
    old = {"created_at": claim.created_at - LIFETIME}
    await store.write("anna", KEY["Idempotency-Key"], claim.model_copy(update=old))
    other = await anna.post("/chat", json={"question": "How much was earned?"}, headers=KEY)
    assert other.status_code == 200
    assert other.headers["x-run-id"] != first.headers["x-run-id"]
    claim = await store.get("anna", KEY["Idempotency-Key"])
    assert claim is not None
    assert (claim.resource_id, claim.is_done) == (other.headers["x-run-id"], True)
    assert (
        await purge_old_requests(
            claim.created_at + LIFETIME + timedelta(days=1), services.idempotency, services.user_limits
        )
        == 2
    )
    assert await store.get("anna", KEY["Idempotency-Key"]) is None


async def test_a_run_that_could_not_be_started_frees_its_key(
    anna: httpx.AsyncClient, durable: AskingClient, services: Services
) -> None:
    durable.refuses = True
    assert problem_of(await anna.post("/chat", json=QUESTION, headers=KEY)) == (500, "InternalError")
    assert slots_of(services) == []
    durable.refuses = False
    again = await anna.post("/chat", json=QUESTION, headers=KEY)
    assert "event: complete" in again.text
    assert "idempotency-replayed" not in again.headers


async def test_a_refused_question_leaves_its_key_to_itself_and_no_slot(
    anna: httpx.AsyncClient, services: Services, durable: AskingClient
) -> None:
    body = {**QUESTION, "thread_id": "nowhere"}
    for _ in range(2):
        assert problem_of(await anna.post("/chat", json=body, headers=KEY)) == (404, "NotFoundError")
    assert slots_of(services) == []
    assert durable.started == []


async def test_a_run_that_was_deleted_is_not_asked_again(
    anna: httpx.AsyncClient, services: Services, durable: AskingClient
) -> None:
    first = await anna.post("/chat", json=QUESTION, headers=KEY)
    await services.runs.delete(first.headers["x-run-id"])  # simulates the erasure of its thread
    assert problem_of(await anna.post("/chat", json=QUESTION, headers=KEY)) == (404, "NotFoundError")
    assert len(durable.started) == 1


async def test_a_thread_is_begun_once(anna: httpx.AsyncClient) -> None:
    first, again = [await anna.post("/threads", json={"title": "Pumps"}, headers=KEY) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert (await anna.get("/threads")).json()["count"] == 1
    await anna.delete(f"/threads/{first.json()['thread_id']}")
    response = await anna.post("/threads", json={"title": "Pumps"}, headers=KEY)
    assert problem_of(response) == (404, "NotFoundError")


async def test_a_thread_whose_making_died_is_made_by_the_repeat(
    monkeypatch: pytest.MonkeyPatch, anna: httpx.AsyncClient, services: Services
) -> None:
    for at in range(4):
        key = {"Idempotency-Key": f"key {at}".replace(" ", "-")}
        connect(monkeypatch, Death(at, is_behind=at % 2 == 1).mortal(services, WRITES))
        with pytest.raises((Died, BaseExceptionGroup)):
            await anna.post("/threads", json={}, headers=key)
        connect(monkeypatch, services)
        assert (await anna.post("/threads", json={}, headers=key)).status_code == 201
        assert (await anna.get("/threads")).json()["count"] == at + 1


async def test_a_question_that_is_refused_after_all_leaves_nothing_behind(
    anna: httpx.AsyncClient, services: Services, durable: AskingClient
) -> None:
    assert (await anna.post("/chat", json=QUESTION)).status_code == 200  # the row is cached from now on
    store = services.user_limits
    assert isinstance(store, InMemoryUserLimitStore)
    full = tuple(Slot(work_id=f"{n}", until=datetime.now(UTC) + timedelta(hours=1)) for n in range(5))
    await store.write("anna", store.rows["anna"].model_copy(update={"slots": full}))  # by other instances
    before = await stored_of(services)
    for _ in range(2):
        refused = await anna.post("/chat", json=QUESTION)
        assert problem_of(refused) == (429, "TooManyRunsError")
    assert await stored_of(services) == before
    assert len(slots_of(services)) == 5
    assert len(durable.started) == 1


async def stored_of(services: Services) -> tuple[list[str], list[str], int]:
    """Return all stored logs, work files and threads."""
    assert isinstance(services.run_log, InMemoryRunLog)
    files = [blob.name async for blob in services.blobs.list_blobs(WORK, "")]
    threads = (await list_threads(ANNA, services.threads, 10)).threads
    return sorted(services.run_log.logs), files, len(threads)


async def test_a_question_that_is_too_long_takes_no_slot(anna: httpx.AsyncClient, services: Services) -> None:
    for _ in range(2):
        assert (await anna.post("/chat", json=QUESTION)).status_code == 200
        long = await anna.post("/chat", json={"question": "x" * 8001})
        assert problem_of(long) == (413, "PayloadTooLargeError")
    assert slots_of(services) == []


async def aged(services: Services, run_id: str, by: timedelta) -> None:
    """Backdate the stored request of a run by `by`, and add the group "engineering" to its user."""
    files = RunFiles(services.blobs, run_id)
    request = await files.request()
    older = {
        "created_at": request.created_at - by,
        "user": ANNA.model_copy(update={"groups": ("engineering",)}),
    }
    await files.put_request(request.model_copy(update=older))


@pytest.mark.parametrize("at", range(3, 8))  # from the eighth write on the run is in progress
async def test_a_run_that_waited_for_its_repeat_has_all_its_time_and_the_rights_of_now(
    monkeypatch: pytest.MonkeyPatch, services: Services, at: int
) -> None:
    durable, death = AskingClient(services), Death(at, is_behind=False)
    durable.holds, durable.death = True, death
    engineer = as_user(make_app(durable), "anna", groups=["engineering"])
    connect(monkeypatch, death.mortal(services, WRITES))
    with pytest.raises((Died, BaseExceptionGroup)):
        await engineer.post("/chat", json=QUESTION, headers=LATER)
    connect(monkeypatch, services)
    durable.death = None
    claim = await services.idempotency.get("anna", KEY["Idempotency-Key"])
    assert claim is not None
    with suppress(NotFoundError):  # the process died before it stored the request
        await aged(services, claim.resource_id, timedelta(hours=3))
    again = as_user(make_app(durable), "anna")
    run_id = (await again.post("/chat", json=QUESTION, headers=LATER)).json()["run_id"]
    await durable.run(run_id)
    answer = (await again.get(f"/runs/{run_id}")).json()["answer"]
    assert (answer["warnings"], answer["citations"]) == ([], [])  # Anna no longer belongs to "engineering"


UNWAITED = {"Idempotency-Key": "2f1c", "Prefer": "respond-async"}


class Gate:
    """A gate that holds the first caller after its read and lets others pass."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def __call__(self, *arguments: Any) -> Any:
        try:
            return await self._read(*arguments)
        finally:
            if not self.reached.is_set():
                self.reached.set()
                await self.opened.wait()


@pytest.mark.parametrize("has_ended", [False, True])
async def test_a_slow_request_leaves_the_run_that_an_equal_one_has_set_to_work(
    monkeypatch: pytest.MonkeyPatch, services: Services, *, has_ended: bool
) -> None:
    """Send a question twice after a process has claimed its key and died."""
    durable = AskingClient(services)
    durable.holds = True
    app = make_app(durable)
    quick, slow = as_user(app, "anna", groups=["engineering"]), as_user(app, "anna")
    connect(monkeypatch, Death(1, is_behind=False).mortal(services, WRITES))
    with pytest.raises((Died, BaseExceptionGroup)):
        await quick.post("/chat", json=QUESTION, headers=UNWAITED)
    connect(monkeypatch, services)
    gate = Gate(services.runs.get)
    monkeypatch.setattr(services.runs, "get", gate)

    async def ask(person: httpx.AsyncClient) -> str:
        return str((await person.post("/chat", json=QUESTION, headers=UNWAITED)).json()["run_id"])

    late = asyncio.create_task(ask(slow))
    await gate.reached.wait()
    run_id = await ask(quick)
    stored_request = await RunFiles(services.blobs, run_id).request()
    if has_ended:
        await durable.run(run_id)
    gate.opened.set()
    assert await late == run_id
    assert durable.started == [run_id]
    assert await RunFiles(services.blobs, run_id).request() == stored_request
    assert slots_of(services) == ([] if has_ended else [run_id])


ORDER = {"doc_ids": ["manual"]}

UNDER_KEY = {"Idempotency-Key": "k"}


@pytest.fixture
async def summarising(monkeypatch: pytest.MonkeyPatch) -> SummarisingClient:
    services = fake_services(settings=settings_of_tests(), chat_model=ScriptedChatModel(answer=by_rule))
    await add_corpus(services)
    connect(monkeypatch, services)
    durable = SummarisingClient(services)
    durable.holds = True
    return durable


async def never_begun(person: httpx.AsyncClient, durable: SummarisingClient) -> str:
    """Return a summary whose process died three hours ago after storing it. Its slot has expired."""
    services = durable.services
    await person.post("/summaries", json=ORDER, headers=UNDER_KEY)
    durable.states.clear()
    claim = await services.idempotency.get("anna", "k")
    assert claim is not None
    await services.idempotency.write("anna", "k", claim.model_copy(update={"is_done": False}))
    files = RunFiles(services.blobs, claim.resource_id)
    request = await files.request()
    older = request.created_at - timedelta(hours=3)
    await files.put_request(request.model_copy(update={"created_at": older}))
    await release("anna", claim.resource_id, services.settings, services.user_limits)
    return claim.resource_id


async def test_a_summary_that_waited_for_its_repeat_has_all_its_time_and_the_rights_of_now(
    summarising: SummarisingClient,
) -> None:
    app = make_app(summarising)
    engineer, anna = as_user(app, "anna", groups=["engineering"]), as_user(app, "anna")
    summary_id = await never_begun(engineer, summarising)
    services, now = summarising.services, datetime.now(UTC)
    again = await anna.post("/summaries", json=ORDER, headers=UNDER_KEY)
    assert (again.status_code, again.json()["summary_id"]) == (202, summary_id)
    request = await RunFiles(services.blobs, summary_id).request()
    assert request.user.groups == ()  # Anna no longer belongs to "engineering"
    assert now <= request.created_at
    assert summarising.payloads[-1]["run_id"] == summary_id
    assert slots_of(services) == [summary_id]


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("has_ended", [False, True])
async def test_a_slow_order_leaves_the_summary_that_an_equal_one_has_set_to_work(
    monkeypatch: pytest.MonkeyPatch, summarising: SummarisingClient, *, has_ended: bool, is_stored: bool
) -> None:
    app = make_app(summarising)
    quick, slow = as_user(app, "anna", groups=["engineering"]), as_user(app, "anna")
    summary_id = await never_begun(quick, summarising)
    services = summarising.services
    if not is_stored:
        await erase_run(summary_id, services, Instances(summarising).stop, is_last=True)
    gate = Gate(services.runs.get)
    monkeypatch.setattr(services.runs, "get", gate)
    late = asyncio.create_task(slow.post("/summaries", json=ORDER, headers=UNDER_KEY))
    await gate.reached.wait()
    await quick.post("/summaries", json=ORDER, headers=UNDER_KEY)
    stored_request = await RunFiles(services.blobs, summary_id).request()
    if has_ended:
        await quick.post(f"/summaries/{summary_id}/cancel")
    gate.opened.set()
    assert (await late).json()["status"] == ("cancelled" if has_ended else "running")
    assert await RunFiles(services.blobs, summary_id).request() == stored_request
    assert summarising.started == [summary_id] * 2
    assert slots_of(services) == ([] if has_ended else [summary_id])
