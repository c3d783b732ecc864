"""Tests for slots with a store that is slow, fails or is written concurrently."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from shared.answering import control
from shared.answering.control import begin, grant, read_control, release, settle
from shared.answering.control_state import ControlState
from shared.answering.subagent_models import SubagentEnd
from shared.platform.errors import CallTimeoutError, ConflictError, DependencyError, GroundworkError
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores_subagents import InMemoryControlStore

NOW = datetime.now(UTC)


def tasks(*names: str) -> dict[str, datetime]:
    return dict.fromkeys(names or ("a",), datetime.now(UTC) + timedelta(seconds=15))  # NOW may be in the past


def done(name: str = "a") -> SubagentEnd:
    return SubagentEnd(child_id=name, status="done")


class ChangingStore(InMemoryControlStore):
    """A store in which another writer interferes between a read and a write, `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times
        self.writes = 0

    async def read(self) -> ControlState:
        read = await super().read()
        await asyncio.sleep(0)  # lets other tasks run, as a network call would
        return read

    async def write(self, state: ControlState) -> ControlState:
        self.writes += 1
        if self.left:
            self.left -= 1
            await super().write((await self.read()).model_copy(update={"outcomes": (True,)}))
        return await super().write(state)


class FailingStore(InMemoryControlStore):
    """A control store that is unreachable."""

    async def read(self) -> ControlState:
        raise DependencyError("No connection to the table storage.")


class SilentStore(InMemoryControlStore):
    """A control store that never responds."""

    async def read(self) -> ControlState:
        await asyncio.sleep(3600)
        raise AssertionError


async def test_a_slot_is_taken_begun_and_given_back() -> None:
    services = fake_services(settings=fake_settings(subagents_max_active=2))
    assert await grant(services.settings, services.subagent_control, tasks("a", "b"), NOW)
    assert not await grant(services.settings, services.subagent_control, tasks("c"), NOW)
    await begin(services.subagent_control, "a")
    view = await read_control(services.settings, services.subagent_control)
    assert (view.active, view.waiting, view.free) == (1, 1, 0)
    await settle(
        services.settings, services.subagent_control, [done("a"), SubagentEnd(child_id="b", status="late")]
    )
    report = await read_control(services.settings, services.subagent_control)
    assert (report.active, report.waiting, report.outcomes, report.failures) == (0, 0, 2, 1)


async def test_the_settings_are_the_limits() -> None:
    settings = fake_settings(
        circuit_breaker_failure_rate_threshold=0.5,
        circuit_breaker_window_requests=2,
        circuit_breaker_cooldown_seconds=1000,
    )
    services = fake_services(settings=settings)
    assert await grant(services.settings, services.subagent_control, tasks("a", "b"), NOW)
    await settle(
        services.settings, services.subagent_control, [done("a"), SubagentEnd(child_id="b", status="failed")]
    )
    assert not (await read_control(services.settings, services.subagent_control)).circuit_closed
    assert not await grant(services.settings, services.subagent_control, tasks("c"), NOW)
    assert await grant(
        services.settings, services.subagent_control, tasks("c"), datetime.now(UTC) + timedelta(seconds=1001)
    )


async def test_who_loses_a_race_tries_again() -> None:
    store = ChangingStore(times=3)
    services = fake_services(subagent_control=store)
    assert await grant(services.settings, services.subagent_control, tasks(), NOW)
    assert store.writes == 4
    assert [lease.child_id for lease in store.state.leases] == ["a"]


async def test_who_always_loses_gives_up_within_a_limit_of_tries() -> None:
    store = ChangingStore(times=1_000)
    services = fake_services(subagent_control=store)
    with pytest.raises(DependencyError, match="same time"):
        await grant(services.settings, services.subagent_control, tasks(), NOW)
    assert 1 < store.writes <= 20
    assert store.state.leases == ()


async def test_what_changes_nothing_is_not_written() -> None:
    store = ChangingStore(times=0)
    services = fake_services(subagent_control=store)
    await begin(services.subagent_control, "nobody")
    await settle(services.settings, services.subagent_control, [done("nobody")])
    assert store.writes == 0


@pytest.mark.parametrize("store", [FailingStore(), SilentStore()], ids=["failing", "silent"])
async def test_a_store_that_fails_is_an_error_to_who_asks_and_none_to_who_books(
    store: InMemoryControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_ANSWER_LIMIT_S", 0.05)
    monkeypatch.setattr(control, "_RECORD_LIMIT_S", 0.05)
    services = fake_services(subagent_control=store)
    began = time.monotonic()
    with pytest.raises(GroundworkError):
        await read_control(services.settings, services.subagent_control)
    with pytest.raises(GroundworkError):
        await grant(services.settings, services.subagent_control, tasks(), NOW)
    await begin(services.subagent_control, "a")
    await settle(services.settings, services.subagent_control, [done()])
    assert time.monotonic() - began < 60


async def test_one_that_hangs_does_not_hold_up_the_next_for_longer_than_its_own_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control, "_ANSWER_LIMIT_S", 0.1)
    services = fake_services(subagent_control=SilentStore())
    began = time.monotonic()
    ended = await asyncio.gather(
        *(
            grant(services.settings, services.subagent_control, tasks(f"{number}"), NOW)
            for number in range(10)
        ),
        return_exceptions=True,
    )
    assert {type(one) for one in ended} == {CallTimeoutError}
    assert time.monotonic() - began < 60


async def test_many_of_one_process_take_turns() -> None:
    store = ChangingStore(times=0)
    services = fake_services(subagent_control=store)
    assert all(
        await asyncio.gather(
            *(
                grant(services.settings, services.subagent_control, tasks(f"{number}"), NOW)
                for number in range(15)
            )
        )
    )
    assert store.writes == 15


async def test_a_race_is_no_error_of_the_caller() -> None:
    # The user would receive HTTP 409 for a conflict they didn't cause.
    services = fake_services(subagent_control=ChangingStore(times=1_000))
    with pytest.raises(GroundworkError) as lost:
        await grant(services.settings, services.subagent_control, tasks(), NOW)
    assert not isinstance(lost.value, ConflictError)


async def test_slots_of_cancelled_ones_are_given_back_and_a_store_that_fails_does_no_harm() -> None:
    services = fake_services(subagent_control=InMemoryControlStore())
    assert await grant(services.settings, services.subagent_control, tasks("a", "b"), datetime.now(UTC))
    await release(services.subagent_control, ["a"])
    assert (await read_control(services.settings, services.subagent_control)).waiting == 1
    await release(fake_services(subagent_control=FailingStore()).subagent_control, ["b"])
