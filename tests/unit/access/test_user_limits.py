"""Limits of a person as effects use them: refused, given back, remembered, and let in when in doubt."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from shared.access.limits import UserLimits, admit, hold, release, slot_of_run
from shared.answering.inline import run_to_end
from shared.answering.loop import observe
from shared.answering.runs import begin_run, close_dead_run
from shared.answering.steps import AnswerArrived
from shared.conversations.models import EraseTask
from shared.conversations.threads import delete_thread, list_threads
from shared.erasure.threads import erase
from shared.platform.errors import DependencyError, TooManyRequestsError, TooManyRunsError
from shared.runs.models import ChatRequest
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores_requests import InMemoryUserLimitStore
from tests.unit.answering.test_clarifying import answer, asking
from tests.unit.answering.world import ANNA, BEN, world


def limited(store: Any = None, **settings: Any) -> Services:
    limits = {"rate_limit_per_minute": 4, "max_concurrent_runs": 2, **settings}
    return fake_services(settings=fake_settings(**limits), user_limits=store or InMemoryUserLimitStore())


async def begin(services: Services, name: str) -> None:
    await admit(ANNA, services.settings, services.user_limits, slot=slot_of_run(name, services.settings))


def held(services: Services) -> list[str]:
    assert isinstance(services.user_limits, InMemoryUserLimitStore)
    return [slot.work_id for slot in services.user_limits.rows[ANNA.user_id].slots]


async def test_calls_beyond_the_limit_are_refused_with_how_long_to_wait() -> None:
    services = limited()
    for left in (3, 2, 1, 0):
        allowance = await admit(ANNA, services.settings, services.user_limits)
        assert allowance is not None
        assert allowance.remaining == left
    with pytest.raises(TooManyRequestsError) as refused:
        await admit(ANNA, services.settings, services.user_limits)
    assert refused.value.code == "TooManyRequestsError"
    assert refused.value.retry_after_s == pytest.approx(15, abs=1)
    assert refused.value.headers["RateLimit-Remaining"] == "0"
    assert await admit(BEN, services.settings, services.user_limits) is not None


async def test_runs_beyond_the_limit_are_refused_and_count_as_no_call() -> None:
    services = limited()
    await begin(services, "one")
    await begin(services, "two")
    for _ in range(5):
        with pytest.raises(TooManyRunsError) as refused:
            await begin(services, "three")
    assert refused.value.headers["RateLimit-Remaining"] == "2"
    assert (
        await admit(ANNA, services.settings, services.user_limits) is not None
    )  # what begins no run goes on
    await release(ANNA.user_id, "one", services.settings, services.user_limits)
    await begin(services, "three")
    assert held(services) == ["two", "three"]


async def test_a_row_that_another_instance_changed_is_read_anew() -> None:
    store = InMemoryUserLimitStore()
    here = limited(store, rate_limit_per_minute=60)
    await begin(here, "one")
    reads = store.reads
    await begin(here, "two")
    assert store.reads == reads  # what this process wrote it knows
    await store.write(ANNA.user_id, UserLimits(revision=store.rows[ANNA.user_id].revision))
    await begin(here, "three")  # refused by what is remembered alone: that is not believed
    assert held(here) == ["three"]
    taken = slot_of_run("elsewhere", here.settings)
    await store.write(ANNA.user_id, store.rows[ANNA.user_id].model_copy(update={"slots": (taken,)}))
    await release(ANNA.user_id, "elsewhere", here.settings, here.user_limits)
    assert held(here) == []


async def test_many_at_once_of_one_process_get_what_there_is() -> None:
    services = limited(rate_limit_per_minute=100)
    begun = await asyncio.gather(*(begin(services, f"{n}") for n in range(20)), return_exceptions=True)
    assert sum(one is None for one in begun) == 2
    assert len(held(services)) == 2


class Slow(InMemoryUserLimitStore):
    """A table that takes its time."""

    writes = 0

    async def write(self, user_id: str, state: UserLimits) -> UserLimits:
        self.writes += 1
        await asyncio.sleep(0.02)
        return await super().write(user_id, state)


async def test_two_hundred_at_once_are_held_to_the_limit_with_a_few_writes() -> None:
    store = Slow()
    services = limited(store, rate_limit_per_minute=1000)
    async with asyncio.timeout(1):
        begun = await asyncio.gather(*(begin(services, f"{n}") for n in range(200)), return_exceptions=True)
    assert sum(one is None for one in begun) == 2
    assert sum(isinstance(one, TooManyRunsError) for one in begun) == 198
    assert store.writes <= 3


async def test_who_goes_away_holds_nobody_up() -> None:
    services = limited(Slow(), rate_limit_per_minute=60)
    calls = [asyncio.create_task(admit(ANNA, services.settings, services.user_limits)) for _ in range(6)]
    await asyncio.sleep(0.01)
    for call in calls[::2]:
        call.cancel()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, asyncio.CancelledError) for one in ended) == 3
    assert await admit(ANNA, services.settings, services.user_limits) is not None


class Failing(InMemoryUserLimitStore):
    """A table out of reach, or one that hangs."""

    def __init__(self, hangs_s: float = 0.0) -> None:
        super().__init__()
        self._hangs_s = hangs_s

    async def read(self, user_id: str) -> UserLimits:
        await asyncio.sleep(self._hangs_s)
        raise DependencyError("Nobody is there.")


async def test_without_its_store_everybody_is_let_in() -> None:
    services = limited(Failing())
    for _ in range(10):
        assert (
            await admit(
                ANNA, services.settings, services.user_limits, slot=slot_of_run("run", services.settings)
            )
            is None
        )
    await release(ANNA.user_id, "run", services.settings, services.user_limits)
    await hold(ANNA.user_id, slot_of_run("run", services.settings), services.settings, services.user_limits)


async def test_nobody_waits_for_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.access.limits.LIMIT_S", 0.05)
    services = limited(Failing(hangs_s=30))
    async with asyncio.timeout(2):
        assert await admit(ANNA, services.settings, services.user_limits) is None


async def test_without_limits_nothing_is_kept() -> None:
    services = limited(Failing(), rate_limit_per_minute=0, max_concurrent_runs=0)
    assert (
        await admit(ANNA, services.settings, services.user_limits, slot=slot_of_run("run", services.settings))
        is None
    )
    store = InMemoryUserLimitStore()
    services = limited(store, rate_limit_per_minute=0)
    await admit(ANNA, services.settings, services.user_limits)
    assert (store.reads, store.rows) == (0, {})


async def asked(services: Services, question: str = "At what pressure?") -> str:
    request = await begin_run(ChatRequest(question=question), ANNA, services)
    await begin(services, request.run_id)
    return request.run_id


async def test_a_run_gives_its_slot_back_however_it_ends() -> None:
    services = await world()
    completed, failed = await asked(services), await asked(services)
    assert held(services) == [completed, failed]
    await run_to_end(completed, services)
    await close_dead_run(failed, "It died.", services)
    assert held(services) == []


async def test_a_slot_is_free_by_the_time_that_the_answer_can_be_read() -> None:
    """Whoever asks again at once is let in."""
    services = await world(settings=fake_settings(max_concurrent_runs=1, subagents_enabled=False))
    for _ in range(3):
        await run_to_end(await asked(services), services)


async def test_a_run_that_waits_counts_for_nothing_and_goes_on_beyond_the_limit() -> None:
    services, run_id, state = await asking(max_concurrent_runs=1)
    await begin(services, "another")
    assert held(services) == ["another"]
    await answer(services, run_id, choice=2)
    seen: list[list[str]] = []

    class Watching(InMemoryUserLimitStore):
        async def write(self, user_id: str, state: UserLimits) -> UserLimits:
            written = await super().write(user_id, state)
            seen.append([slot.work_id for slot in written.slots])
            return written

    watching = Watching()
    watching.rows = services.user_limits.rows  # type: ignore[attr-defined]
    await run_to_end(run_id, replace(services, user_limits=watching), observe(state, AnswerArrived()))
    assert seen == [["another", run_id], ["another"]]


async def test_a_run_whose_thread_is_deleted_gives_its_slot_back() -> None:
    services = await world()
    run_id = await asked(services)
    (thread,) = (await list_threads(ANNA, services.threads, 1)).threads
    await delete_thread(thread.thread_id, ANNA, services)

    async def stop(_: str) -> None:
        return

    await erase(EraseTask(owner_id=ANNA.user_id, thread_id=thread.thread_id, through=1), services, stop)
    assert run_id not in held(services)
