"""Tests for enforcing a user's limits: refusals, refunds, persistence, and outages of the store."""

import asyncio
import gc
import random
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import pytest

from shared.access.daily_use import SENDING, Usage
from shared.access.limits import (
    acquire_slot,
    admit,
    allowance,
    charge,
    charge_calls,
    force_slot,
    hold,
    limit_headers,
    release,
    release_slot,
    slot_of_run,
    use_of_today,
    used_today,
    with_use,
)
from shared.access.user_limit_store import OpenStreams, Slot, UserLimits
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run, close_dead_run
from shared.answering.steps import AnswerArrived
from shared.conversations.models import EraseTask
from shared.conversations.threads import delete_thread, list_threads
from shared.erasure.threads import erase
from shared.platform.errors import DailyLimitError, DependencyError, TooManyRequestsError, TooManyRunsError
from shared.platform.settings_groups.access import LimitSettings
from shared.runs.models import ChatRequest
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores_requests import InMemoryUserLimitStore
from tests.scripts import observe
from tests.unit.answering.test_clarifying import answer, asking
from tests.world import ANNA, BEN, corpus_services

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


UNLIMITED = LimitSettings(RATE_LIMIT_PER_MINUTE=0, MAX_CONCURRENT_RUNS=0)


def rules(calls: int = 60, runs: int = 2) -> LimitSettings:
    return LimitSettings(RATE_LIMIT_PER_MINUTE=calls, MAX_CONCURRENT_RUNS=runs)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def used_up(limits: LimitSettings, calls: int, at: datetime = NOW) -> UserLimits:
    state = UserLimits()
    for _ in range(calls):
        state = charge_calls(state, 1, limits, at)
    return state


def wait_s(state: UserLimits, calls: int, limits: LimitSettings, at: datetime = NOW) -> float:
    """Return the seconds until this number of calls is allowed, 0 if they are allowed now."""
    try:
        charge_calls(state, calls, limits, at)
    except TooManyRequestsError as refused:
        return refused.retry_after_s or 0.0
    return 0.0


@pytest.mark.parametrize("limit", [1, 7, 60, 999, 6000])
def test_a_minutes_calls_may_be_made_at_once_and_not_one_more(limit: int) -> None:
    state = used_up(rules(limit), limit)
    assert wait_s(state, 1, rules(limit)) == pytest.approx(60 / limit, abs=0.01)


def test_one_call_comes_back_at_a_time() -> None:
    state = used_up(rules(60), 60)
    assert wait_s(state, 1, rules(60), after(0.9)) == pytest.approx(0.1)
    again = charge_calls(state, 1, rules(60), after(1))
    assert wait_s(again, 1, rules(60), after(1)) == pytest.approx(1)
    whole = allowance(again, rules(60), after(61))
    assert whole is not None
    assert (whole.remaining, whole.reset_s) == (60, 0)


@pytest.mark.parametrize("seed", range(5))
def test_no_minute_ever_has_more_than_twice_the_limit(seed: int) -> None:
    chance, limits, state = random.Random(seed), rules(30), UserLimits()
    moments: list[float] = []
    at = 0.0
    for _ in range(2000):
        at += chance.choice([0.0, 0.01, 0.3, 5.0, 40.0]) * chance.random()
        with suppress(TooManyRequestsError):
            state = charge_calls(state, 1, limits, after(at))
            moments.append(at)
    most = max(sum(begin <= one < begin + 60 for one in moments) for begin in moments)
    assert 30 <= most <= 60


def test_whoever_waits_as_long_as_told_is_let_in() -> None:
    limits = rules(7)
    state = used_up(limits, 7)
    for _ in range(50):
        state = charge_calls(state, 1, limits, after(wait_s(state, 1, limits)))


def test_a_call_may_count_for_several_and_for_no_more_than_there_are() -> None:
    state = charge_calls(UserLimits(), 20, rules(60), NOW)
    left = allowance(state, rules(60), NOW)
    assert left is not None
    assert (left.limit, left.remaining, left.reset_s) == (60, 40, 20)
    assert wait_s(state, 41, rules(60)) == pytest.approx(1)
    assert wait_s(UserLimits(), 20, rules(5)) == 0


def test_headers_say_what_is_left() -> None:
    left = allowance(used_up(rules(60), 1), rules(60), NOW)
    assert limit_headers(left) == {
        "RateLimit-Limit": "60",
        "RateLimit-Remaining": "59",
        "RateLimit-Reset": "1",
    }
    assert limit_headers(allowance(UserLimits(), UNLIMITED, NOW)) == {}


def test_clocks_that_differ_never_give_more_than_there_is() -> None:
    state = used_up(rules(60), 1, after(30))  # written by an instance whose clock is ahead
    left = allowance(state, rules(60), NOW)
    assert left is not None
    assert 0 <= left.remaining < 60
    assert wait_s(state, 1, rules(60)) == 0


def slot(name: str, until: float = 60) -> Slot:
    return Slot(work_id=name, until=after(until))


def with_slot(state: UserLimits, name: str, limits: LimitSettings) -> UserLimits:
    return acquire_slot(state, slot(name), limits, NOW)


def freed(state: UserLimits, name: str) -> UserLimits:
    return release_slot(state, name)


def test_as_many_run_as_there_are_slots() -> None:
    state = with_slot(with_slot(UserLimits(), "a", rules()), "b", rules())
    with pytest.raises(TooManyRunsError):
        acquire_slot(state, slot("c"), rules(), NOW)
    assert acquire_slot(state, slot("a"), rules(), NOW) == state  # it already has a slot
    assert [one.work_id for one in with_slot(freed(state, "a"), "c", rules()).slots] == ["b", "c"]
    assert freed(state, "unknown") == state


def test_a_slot_that_nobody_gave_back_frees_itself() -> None:
    state = with_slot(with_slot(UserLimits(), "a", rules()), "b", rules())
    later = acquire_slot(state, slot("c", until=200), rules(), after(61))
    assert [one.work_id for one in later.slots] == ["c"]


def test_work_that_goes_on_has_a_slot_whatever_the_limit() -> None:
    state = with_slot(with_slot(UserLimits(), "a", rules()), "b", rules())
    more = force_slot(state, slot("c"), NOW)
    assert len(more.slots) == 3
    assert len(force_slot(more, slot("c", until=90), NOW).slots) == 3
    with pytest.raises(TooManyRunsError):
        acquire_slot(freed(more, "a"), slot("d"), rules(), NOW)


def test_without_limits_nothing_is_refused() -> None:
    state = UserLimits()
    for number in range(200):
        assert charge_calls(state, 1, UNLIMITED, NOW) == state
        state = with_slot(state, f"{number}", UNLIMITED)
    assert wait_s(state, 1, UNLIMITED) == 0


def limited(store: Any = None, **settings: Any) -> Services:
    limits = {"rate_limit_per_minute": 4, "max_concurrent_runs": 2, **settings}
    return fake_services(settings=fake_settings(**limits), user_limits=store or InMemoryUserLimitStore())


async def begin(services: Services, name: str) -> None:
    await admit(ANNA, services.settings, services.user_limits, slot=slot_of_run(name, services.settings))


def slot_holders(services: Services) -> list[str]:
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
    )  # requests that start no run are still admitted
    await release(ANNA.user_id, "one", services.settings, services.user_limits)
    await begin(services, "three")
    assert slot_holders(services) == ["two", "three"]


async def test_a_row_that_another_instance_changed_is_read_anew() -> None:
    store = InMemoryUserLimitStore()
    here = limited(store, rate_limit_per_minute=60)
    await begin(here, "one")
    reads = store.reads
    await begin(here, "two")
    assert store.reads == reads  # the process caches its own writes
    await store.write(ANNA.user_id, UserLimits(revision=store.rows[ANNA.user_id].revision))
    await begin(here, "three")  # The cached state alone would refuse this run, so the store is read again.
    assert slot_holders(here) == ["three"]
    other_slot = slot_of_run("elsewhere", here.settings)
    await store.write(ANNA.user_id, store.rows[ANNA.user_id].model_copy(update={"slots": (other_slot,)}))
    await release(ANNA.user_id, "elsewhere", here.settings, here.user_limits)
    assert slot_holders(here) == []


async def test_many_at_once_of_one_process_get_what_there_is() -> None:
    services = limited(rate_limit_per_minute=100)
    outcomes = await asyncio.gather(*(begin(services, f"{n}") for n in range(20)), return_exceptions=True)
    assert sum(one is None for one in outcomes) == 2
    assert len(slot_holders(services)) == 2


class Slow(InMemoryUserLimitStore):
    """A slow limit store."""

    writes = 0

    async def write(self, user_id: str, state: UserLimits) -> UserLimits:
        self.writes += 1
        await asyncio.sleep(0.02)
        return await super().write(user_id, state)


async def test_two_hundred_at_once_are_held_to_the_limit_with_a_few_writes() -> None:
    store = Slow()
    services = limited(store, rate_limit_per_minute=1000)
    async with asyncio.timeout(60):
        outcomes = await asyncio.gather(
            *(begin(services, f"{n}") for n in range(200)), return_exceptions=True
        )
    assert sum(one is None for one in outcomes) == 2
    assert sum(isinstance(one, TooManyRunsError) for one in outcomes) == 198
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
    """A limit store that is unreachable, optionally after hanging for `hangs_s` seconds."""

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
    monkeypatch.setattr("shared.access.user_limit_store.LIMIT_S", 0.05)
    services = limited(Failing(hangs_s=30))
    async with asyncio.timeout(25):  # shorter than the 30 s for which the store hangs
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


async def start_run(services: Services, question: str = "At what pressure?") -> str:
    request = await begin_run(ChatRequest(question=question), ANNA, services)
    await begin(services, request.run_id)
    return request.run_id


async def test_a_run_gives_its_slot_back_however_it_ends() -> None:
    services = await corpus_services()
    completed, failed = await start_run(services), await start_run(services)
    assert slot_holders(services) == [completed, failed]
    await run_to_end(completed, services)
    await close_dead_run(failed, "It died.", services)
    assert slot_holders(services) == []


async def test_a_slot_is_free_by_the_time_that_the_answer_can_be_read() -> None:
    """Check that a user can ask again as soon as the previous answer is readable."""
    services = await corpus_services(settings=fake_settings(max_concurrent_runs=1, subagents_enabled=False))
    for _ in range(3):
        await run_to_end(await start_run(services), services)


async def test_a_run_that_waits_counts_for_nothing_and_goes_on_beyond_the_limit_without_an_answer() -> None:
    services, run_id, state = await asking(max_concurrent_runs=1)
    await begin(services, "another")
    assert slot_holders(services) == ["another"]
    seen: list[list[str]] = []

    class Watching(InMemoryUserLimitStore):
        async def write(self, user_id: str, state: UserLimits) -> UserLimits:
            stored = await super().write(user_id, state)
            seen.append([slot.work_id for slot in stored.slots])
            return stored

    watching = Watching(services.user_limits.table)  # type: ignore[attr-defined]
    await run_to_end(run_id, replace(services, user_limits=watching), observe(state, AnswerArrived()))
    assert [slots for slots, _ in groupby(seen)] == [["another", run_id], ["another"]]


async def test_a_run_whose_thread_is_deleted_gives_its_slot_back() -> None:
    services = await corpus_services()
    run_id = await start_run(services)
    (thread,) = (await list_threads(ANNA, services.threads, 1)).threads
    await delete_thread(thread.thread_id, ANNA, services)

    async def stop(_: str) -> None:
        return

    await erase(EraseTask(owner_id=ANNA.user_id, thread_id=thread.thread_id, through=1), services, stop)
    assert run_id not in slot_holders(services)


async def test_what_is_used_up_today_is_refused_and_nothing_else() -> None:
    services = limited(max_daily_documents=2, max_daily_chat_tokens=100)
    store, one = services.user_limits, Usage(documents=1)
    for _ in range(2):
        await admit(ANNA, services.settings, store, needs=SENDING, used=one)
    with pytest.raises(DailyLimitError) as refused:
        await admit(ANNA, services.settings, store, needs=SENDING, used=one)
    assert refused.value.retry_after_s is not None
    assert 0 < refused.value.retry_after_s <= 24 * 3600
    await admit(BEN, services.settings, store, needs=SENDING, used=one)
    await begin(services, "question")
    await charge(ANNA.user_id, Usage(chat_tokens=150), store)
    await charge(ANNA.user_id, Usage(chat_tokens=-20), store)
    await release(ANNA.user_id, "question", services.settings, store)
    with pytest.raises(DailyLimitError):
        await begin(services, "another")
    usage = {view.resource: view.used for view in await use_of_today(ANNA.user_id, services.settings, store)}
    assert (usage["documents"], usage["chat_tokens"], usage["page_images"]) == (2, 130, 0)


async def test_refund_of_what_was_charged_yesterday_takes_nothing_below_zero() -> None:
    services = limited(max_daily_chat_tokens=100)
    await charge(ANNA.user_id, Usage(chat_tokens=-500), services.user_limits)
    await charge(ANNA.user_id, Usage(chat_tokens=30), services.user_limits)
    usage_views = await use_of_today(ANNA.user_id, services.settings, services.user_limits)
    assert {view.resource: view.used for view in usage_views}["chat_tokens"] == 30


def test_a_day_begins_with_nothing_used() -> None:
    state = with_use(with_use(UserLimits(), Usage(blocks=5), NOW), Usage(blocks=2), after(60))
    assert used_today(state, NOW).blocks == 7
    tomorrow = NOW + timedelta(days=1)
    assert used_today(state, tomorrow) == Usage()
    assert used_today(with_use(state, Usage(captions=1), tomorrow), tomorrow) == Usage(captions=1)


async def test_use_that_cannot_be_stored_stops_nothing() -> None:
    class Broken(InMemoryUserLimitStore):
        async def read(self, user_id: str) -> UserLimits:
            raise DependencyError("The table is out of reach.")

    services = limited(Broken())
    await charge("anna", Usage(blocks=5), services.user_limits)
    assert await use_of_today(ANNA.user_id, services.settings, services.user_limits) == ()


def test_as_many_streams_as_allowed_are_open_and_closed_ones_do_not_count() -> None:
    streams, limits = OpenStreams(), LimitSettings(MAX_OPEN_STREAMS=2)
    first, second = [streams.open("anna", limits) for _ in range(2)]
    with pytest.raises(TooManyRequestsError):
        streams.open("anna", limits)
    streams.open("ben", limits)
    first.close()
    first = streams.open("anna", limits)
    del second
    gc.collect()
    third = streams.open("anna", limits)
    with pytest.raises(TooManyRequestsError):
        streams.open("anna", limits)
    third.close()
    first.close()


async def test_a_run_that_is_answered_needs_a_free_slot() -> None:
    services, run_id, _ = await asking(max_concurrent_runs=1)
    await begin(services, "other")
    with pytest.raises(TooManyRunsError):
        await answer(services, run_id, choice=1)
    await release(ANNA.user_id, "other", services.settings, services.user_limits)
    assert await answer(services, run_id, choice=1)
    assert slot_holders(services) == [run_id]
