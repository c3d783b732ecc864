"""Tests for runs whose orchestration was lost by the host: they are resumed once, or closed."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from shared.answering.children import store_child_ids
from shared.answering.revival import revive_instance, revive_run
from shared.answering.runs import begin_run
from shared.platform.instances import Instances
from shared.runs.event_log import is_closed
from shared.runs.events import ResumedStatus, events_of
from shared.runs.journal import keep_reply
from shared.runs.models import ChatRequest, Choice
from shared.runs.revivals import MAX_REVIVALS
from shared.runs.run_store import REVIVALS_KEY
from shared.wiring import Services
from tests.world import ANNA, corpus_services

RUN_ID = "run1"


class Host:
    """A durable client with fixed instance states that records its calls."""

    def __init__(self, state: str | None = "Failed") -> None:
        self.state = state
        self.children: dict[str, str] = {}
        self.asked: list[tuple[str, ...]] = []

    async def get_status(self, instance_id: str) -> Any:
        state = self.children.get(instance_id, self.state)
        return SimpleNamespace(runtime_status=SimpleNamespace(value=state) if state else None)

    async def terminate(self, instance_id: str, reason: str) -> None:
        self.asked.append(("terminate", instance_id))

    async def restart(self, instance_id: str, restart_with_new_instance_id: bool) -> None:
        assert not restart_with_new_instance_id
        self.asked.append(("restart", instance_id))

    async def raise_event(self, instance_id: str, name: str, content: object) -> None:
        self.asked.append(("raise", instance_id, name))


@pytest.fixture
async def services() -> Services:
    corpus = await corpus_services()
    await begin_run(ChatRequest(question="What is it?"), ANNA, corpus, run_id=RUN_ID)
    return corpus


async def let_time_pass(services: Services) -> None:
    """Backdate the revival, so that the next check isn't mistaken for a concurrent one."""
    store: Any = services.runs
    counted = store.revivals[RUN_ID]
    earlier = counted.model_copy(update={"revived_at": counted.revived_at - timedelta(minutes=1)})
    store.table.rows[RUN_ID, REVIVALS_KEY]["revivals"] = earlier.model_dump_json()


async def revive(host: Host, services: Services) -> str:
    return await revive_run(RUN_ID, Instances(host), services)


async def log_of(services: Services) -> Any:
    return await services.run_log.read(RUN_ID)


async def test_a_failed_run_begins_again_and_its_readers_are_told(services: Services) -> None:
    host = Host()
    assert await revive(host, services) == "goes_on"
    assert host.asked == [("restart", RUN_ID)]
    resumed = [event for event in events_of(await log_of(services)) if isinstance(event, ResumedStatus)]
    assert len(resumed) == 1


async def test_sub_agents_at_work_are_ended_before_it_begins_them_again(services: Services) -> None:
    host = Host()
    host.children = {f"{RUN_ID}:a": "Running", f"{RUN_ID}:b": "Failed"}
    await store_child_ids(services.blobs, RUN_ID, tuple(host.children))
    assert await revive(host, services) == "goes_on"
    assert host.asked == [("terminate", f"{RUN_ID}:a"), ("restart", RUN_ID)]


async def test_of_many_who_look_at_once_one_begins_it_again(services: Services) -> None:
    host = Host()
    fates = await asyncio.gather(*(revive(host, services) for _ in range(5)))
    assert set(fates) == {"goes_on"}
    assert host.asked == [("restart", RUN_ID)]


async def test_a_run_that_fails_again_and_again_is_closed(services: Services) -> None:
    host = Host()
    for _ in range(MAX_REVIVALS):
        assert await revive(host, services) == "goes_on"
        await let_time_pass(services)
    assert await revive(host, services) == "closed"
    assert host.asked == [("restart", RUN_ID)] * MAX_REVIVALS
    assert is_closed(await log_of(services))
    record = await services.runs.get(RUN_ID)
    assert record is not None
    assert (record.status, record.error_type) == ("failed", "InternalError")
    assert await revive(host, services) == "goes_on"  # the run has already ended


@pytest.mark.parametrize("state", [None, "Completed", "Terminated"])
async def test_a_run_that_ended_otherwise_without_a_word_is_closed(
    services: Services, state: str | None
) -> None:
    host = Host(state)
    assert await revive(host, services) == "closed"
    assert host.asked == []
    assert is_closed(await log_of(services))


async def test_a_run_at_work_is_left_alone(services: Services) -> None:
    host = Host("Running")
    assert await revive(host, services) == "goes_on"
    assert host.asked == []


async def test_an_answer_that_came_before_is_told_again(services: Services) -> None:
    record = await services.runs.get(RUN_ID)
    assert record is not None
    long_ago = record.created_at - timedelta(days=2)
    updates = {"ask_step": 3, "created_at": long_ago}
    await services.runs.replace(record.model_copy(update=updates))
    choice = Choice(said="the second", numbers=(2,))
    await keep_reply(services.run_log, RUN_ID, 3, choice, datetime.now(UTC))
    host = Host()
    assert await revive(host, services) == "goes_on"
    assert host.asked == [("restart", RUN_ID), ("raise", RUN_ID, "answered-3")]


async def test_any_other_orchestration_begins_again_and_is_given_up_in_the_end(services: Services) -> None:
    host = Host()
    assert await revive_instance(RUN_ID, Instances(host), services.runs) == "goes_on"
    assert host.asked == [("restart", RUN_ID)]
    host.state = "Terminated"
    assert await revive_instance(RUN_ID, Instances(host), services.runs) == "closed"
