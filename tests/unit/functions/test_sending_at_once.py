"""Equal requests at once under one key: the slow one leaves alone what the quick one has set to work."""

import asyncio
from typing import Any

import httpx
import pytest

from functions import chat
from shared.agents.working_memory import WorkingMemory
from shared.services import Services
from tests.fakes.stores_requests import InMemoryUserLimitStore
from tests.unit.agents.world import world
from tests.unit.functions.asking_app import AskingClient, Death, Died
from tests.unit.functions.http_app import as_user, connect, make_app, settings_of_tests

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
        found = await self._read(*arguments)
        if not self.reached.is_set():
            self.reached.set()
            await self.opened.wait()
        return found


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
