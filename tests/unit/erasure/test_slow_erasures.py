"""Tests for erasures that exceed the time of one queue message and resume with the next."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from shared.erasure import passes, threads
from shared.erasure.models import RunPlace
from shared.erasure.policy import erasure_id
from shared.erasure.requests import ask_for_erasure, erasure_of, find_record, keep_record
from shared.wiring import Services
from tests.unit.erasure.erasing_fakes import Orchestrations, make_passes, one_pass, traces, two_lives
from tests.unit.erasure.test_erasing_people import COUNTS

ENOUGH_S = 300.0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the delay of 15 minutes between passes, and process one run at a time."""
    monkeypatch.setattr(passes, "LAST_PASS_AFTER_S", 0.0)
    monkeypatch.setattr(passes, "_AT_ONCE", 1)
    monkeypatch.setattr(threads, "_READERS_S", 0.0)


class _Clock:
    """A clock that expires after a number of reads instead of seconds."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def monotonic(self) -> float:
        self.looks -= 1
        return 0.0 if self.looks >= 0 else ENOUGH_S


async def handle(services: Services, at_work: Orchestrations, clock: _Clock, looks: int) -> None:
    """Handle one queue message that may read the clock `looks` times before its time is up."""
    clock.looks = looks
    await one_pass(services, at_work, until=1.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    fake_clock = _Clock(0)
    monkeypatch.setattr(passes, "time", fake_clock)
    return fake_clock


async def test_a_finish_goes_on_with_the_next_message_and_costs_no_pass(clock: _Clock) -> None:
    services, anna, _ = await two_lives()
    at_work = Orchestrations()
    await ask_for_erasure("anna-leaves", "keep", services)
    await handle(services, at_work, clock, 1000)
    at_work.forgotten.clear()
    messages = 0
    while (await erasure_of("anna-leaves", services.blobs)).status == "running":
        await handle(services, at_work, clock, 4)
        messages += 1
    ended = await erasure_of("anna-leaves", services.blobs)
    assert (ended.status, ended.passes, ended.erased) == ("completed", 2, COUNTS)
    assert messages > 2, "it ran out of time at least twice"
    assert max(Counter(at_work.forgotten).values()) == 2, "once by its turn, once by itself"
    assert traces(services, anna.marks) == []


async def test_without_threads_a_finish_ends_too(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    services, _, _ = await two_lives()
    await ask_for_erasure("nobody", "keep", services)
    record = await find_record(services.blobs, erasure_id("nobody"))
    assert record is not None
    places = tuple(RunPlace(run_id=f"run{number}", at=datetime.now(UTC)) for number in range(5))
    await keep_record(services.blobs, record.model_copy(update={"passes": 1, "counted": 1, "runs": places}))
    forgotten_keys: list[str] = []

    async def forget(at: datetime, key: str) -> int:
        forgotten_keys.append(key)
        return 0

    monkeypatch.setattr(services.quality, "forget", forget)
    for message in range(1, 5):
        await handle(services, Orchestrations(), clock, 1)
        assert len(forgotten_keys) == message, "a run for each message"
        assert (await erasure_of("nobody", services.blobs)).status == "running"
    await handle(services, Orchestrations(), clock, 1)
    assert (await erasure_of("nobody", services.blobs)).status == "completed"
    assert await make_passes(services, Orchestrations()) == 0


async def test_a_pass_stops_within_a_thread_and_among_runs_and_counts_all_the_same(clock: _Clock) -> None:
    services, anna, _ = await two_lives()
    at_work = Orchestrations()
    await ask_for_erasure("anna-leaves", "keep", services)
    await handle(services, at_work, clock, 2)
    assert len(set(at_work.stopped)) == 1, "time is looked at before every turn, not only every thread"
    messages = 1
    while not (await erasure_of("anna-leaves", services.blobs)).passes:
        await handle(services, at_work, clock, 3)
        messages += 1
    await handle(services, at_work, clock, 1000)
    ended = await erasure_of("anna-leaves", services.blobs)
    assert messages > 2
    assert (ended.status, ended.passes, ended.erased) == ("completed", 2, COUNTS)
    assert traces(services, anna.marks) == []
