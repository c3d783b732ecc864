"""Equal requests at once under one key: the slow one leaves alone what the quick one has set to work."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from functions import chat, summaries
from shared.access.limits import release
from shared.runs.working_memory import WorkingMemory
from shared.summaries.store import SummaryStore
from shared.summaries.summaries import start_of
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_services
from tests.fakes.stores_requests import InMemoryUserLimitStore
from tests.unit.answering.world import fill, world
from tests.unit.functions.asking_app import AskingClient, Death, Died
from tests.unit.functions.http_app import as_user, connect, make_app, settings_of_tests
from tests.unit.functions.summarising_app import SummarisingClient
from tests.unit.summaries.summary_world import by_rule

QUESTION = {"question": "At what pressure does the pump run?"}
LATER = {"Idempotency-Key": "2f1c", "Prefer": "respond-async"}


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    made = await world(settings=settings_of_tests(subagents_enabled=False))
    connect(monkeypatch, made)
    return made


def slots_of(services: Services) -> list[str]:
    assert isinstance(services.user_limits, InMemoryUserLimitStore)
    return [slot.work_id for slot in services.user_limits.rows["anna"].slots]


class Gate:
    """The first to come waits behind what it has read; others pass it by."""

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
    """A process claimed the key and died; then the same question comes twice."""
    durable = AskingClient(services)
    durable.holds = True
    app = make_app([chat], durable)  # type: ignore[arg-type]
    quick, slow = as_user(app, "anna", groups=["engineering"]), as_user(app, "anna")
    connect(monkeypatch, Death(1, is_behind=False).mortal(services))
    with pytest.raises((Died, BaseExceptionGroup)):
        await quick.post("/chat", json=QUESTION, headers=LATER)
    connect(monkeypatch, services)
    gate = Gate(services.runs.get)
    monkeypatch.setattr(services.runs, "get", gate)

    async def ask(person: httpx.AsyncClient) -> str:
        return str((await person.post("/chat", json=QUESTION, headers=LATER)).json()["run_id"])

    late = asyncio.create_task(ask(slow))
    await gate.reached.wait()
    run_id = await ask(quick)
    asked = await WorkingMemory(services.blobs, run_id).request()
    if has_ended:
        await durable.run(run_id)
    gate.opened.set()
    assert await late == run_id
    assert durable.started == [run_id]
    assert await WorkingMemory(services.blobs, run_id).request() == asked
    assert slots_of(services) == ([] if has_ended else [run_id])


ORDER = {"doc_ids": ["manual"]}
UNDER_KEY = {"Idempotency-Key": "k"}


@pytest.fixture
async def summarising(monkeypatch: pytest.MonkeyPatch) -> SummarisingClient:
    services = fake_services(settings=settings_of_tests(), chat_model=ScriptedChatModel(answer=by_rule))
    await fill(services)
    connect(monkeypatch, services)
    durable = SummarisingClient(services)
    durable.holds = True
    return durable


async def never_begun(person: httpx.AsyncClient, durable: SummarisingClient) -> str:
    """A summary whose process died when it had stored it, three hours ago: its slot expired since."""
    services = durable.services
    await person.post("/summaries", json=ORDER, headers=UNDER_KEY)
    durable.states.clear()
    claim = await services.idempotency.get("anna", "k")
    assert claim is not None
    await services.idempotency.replace("anna", "k", claim.model_copy(update={"is_done": False}))
    store = SummaryStore(services.blobs, claim.resource_id)
    request = await store.request()
    times = ("created_at", "map_until", "children_until", "deadline")
    older = {name: getattr(request, name) - timedelta(hours=3) for name in times}
    await store.put_request(request.model_copy(update=older))
    await release("anna", claim.resource_id, services.settings, services.user_limits)
    return claim.resource_id


async def test_a_summary_that_waited_for_its_repeat_has_all_its_time_and_the_rights_of_now(
    summarising: SummarisingClient,
) -> None:
    app = make_app([summaries], summarising)  # type: ignore[arg-type]
    engineer, anna = as_user(app, "anna", groups=["engineering"]), as_user(app, "anna")
    summary_id = await never_begun(engineer, summarising)
    services, now = summarising.services, datetime.now(UTC)
    again = await anna.post("/summaries", json=ORDER, headers=UNDER_KEY)
    assert (again.status_code, again.json()["summary_id"]) == (202, summary_id)
    request = await SummaryStore(services.blobs, summary_id).request()
    assert request.user.groups == ()  # Anna is no engineer any more
    assert now <= request.created_at < request.map_until < request.children_until < request.deadline
    assert (
        summarising.payloads[-1].items()
        >= start_of(request, services.settings).model_dump(mode="json").items()
    )
    assert slots_of(services) == [summary_id]


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("has_ended", [False, True])
async def test_a_slow_order_leaves_the_summary_that_an_equal_one_has_set_to_work(
    monkeypatch: pytest.MonkeyPatch, summarising: SummarisingClient, *, has_ended: bool, is_stored: bool
) -> None:
    app = make_app([summaries], summarising)  # type: ignore[arg-type]
    quick, slow = as_user(app, "anna", groups=["engineering"]), as_user(app, "anna")
    summary_id = await never_begun(quick, summarising)
    services = summarising.services
    if not is_stored:
        await SummaryStore(services.blobs, summary_id).delete()
    gate = Gate(services.blobs.read)
    monkeypatch.setattr(services.blobs, "read", gate)
    late = asyncio.create_task(slow.post("/summaries", json=ORDER, headers=UNDER_KEY))
    await gate.reached.wait()
    await quick.post("/summaries", json=ORDER, headers=UNDER_KEY)
    begun = await SummaryStore(services.blobs, summary_id).request()
    if has_ended:
        await quick.post(f"/summaries/{summary_id}/cancel")
    gate.opened.set()
    assert (await late).json()["status"] == ("cancelled" if has_ended else "running")
    assert await SummaryStore(services.blobs, summary_id).request() == begun
    assert summarising.started == [summary_id] * 2
    assert slots_of(services) == ([] if has_ended else [summary_id])
