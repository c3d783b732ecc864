"""Tests for the order in which documents are processed, and for the number of texts per request."""

import asyncio
from contextlib import ExitStack

import pytest

from shared.ingestion import fair_turns
from shared.ingestion.fair_turns import EmbeddingPace, FairTurns, NoPlaceFreeError, Shares
from shared.platform.errors import DependencyError


async def test_somebody_elses_first_turn_comes_before_a_second_one() -> None:
    turns, order, go_on = FairTurns(1), list[str](), asyncio.Event()

    async def work(whose: str) -> None:
        async with turns.turn(whose):
            order.append(whose)
            await go_on.wait()

    async def queued(whose: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work(whose))
        await asyncio.sleep(0)  # it waits before the next task starts
        return task

    tasks = [await queued(whose) for whose in ("anna", "anna", "anna", "ben", "eva")]
    go_on.set()
    await asyncio.gather(*tasks)
    assert order == ["anna", "ben", "eva", "anna", "anna"]


async def test_a_cancelled_waiter_leaves_the_turn_to_others() -> None:
    turns, go_on = FairTurns(1), asyncio.Event()

    async def work() -> str:
        async with turns.turn("anna"):
            await go_on.wait()
        return "done"

    first, waiting, last = [asyncio.create_task(work()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting.cancel()
    first.cancel()  # it holds the turn, which passes to the last task
    go_on.set()
    ended = await asyncio.gather(first, waiting, last, return_exceptions=True)
    assert ended[2] == "done"
    assert all(isinstance(end, asyncio.CancelledError) for end in ended[:2])
    async with asyncio.timeout(60), turns.turn("ben"):
        pass


async def test_a_slow_or_failing_service_gets_fewer_texts() -> None:
    now = 0.0
    pace = EmbeddingPace(smallest=4, largest=64, wanted_s=3.0, clock=lambda: now)
    async with pace.measure(64):
        now += 12.0
    assert pace.texts == 16
    for texts in (16, 64):  # the second request was sent before the first failed
        with pytest.raises(DependencyError):
            async with pace.measure(texts):
                raise DependencyError("It took too long.")
        assert pace.texts == 8
    for _ in range(3):
        async with pace.measure(8):
            now += 0.1
    assert pace.texts == 64


async def test_a_service_that_takes_as_long_for_few_texts_gets_no_tiny_requests() -> None:
    now = 0.0
    pace = EmbeddingPace(smallest=4, largest=64, wanted_s=1.0, clock=lambda: now)
    for _ in range(5):
        async with pace.measure(pace.texts):
            now += 1.5
    assert pace.texts == 16


async def test_a_short_text_that_takes_long_or_fails_makes_no_request_smaller() -> None:
    now = 0.0
    pace = EmbeddingPace(smallest=4, largest=64, wanted_s=1.0, clock=lambda: now)
    async with pace.measure(1):
        now += 1.5
    assert pace.texts == 64
    with pytest.raises(DependencyError):
        async with pace.measure(1):
            raise DependencyError("It took too long.")
    assert pace.texts == 64


async def test_one_persons_steps_leave_a_share_for_others_and_for_who_comes_next() -> None:
    shares = Shares(12)
    with ExitStack() as at_work:
        for _ in range(6):
            at_work.enter_context(shares.hold("anna"))
        with pytest.raises(NoPlaceFreeError):
            at_work.enter_context(shares.hold("anna"))
        for _ in range(4):
            at_work.enter_context(shares.hold("ben"))
        assert shares.is_full("ben")
        assert not shares.is_full("eva")
    assert not shares.is_full("anna")


async def test_many_files_give_way_for_a_moment_to_a_question_and_to_somebody_elses_only_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(fair_turns, "_LOOK_S", 0.0)
    shares = Shares(12, clock=lambda: now)

    async def gives_way(whose: str) -> bool:
        """Return whether the caller has to wait, and check that it waits no longer than the limit."""
        nonlocal now
        waiting = asyncio.create_task(shares.give_way(whose))
        for _ in range(3):
            await asyncio.sleep(0)
        has_waited = not waiting.done()
        now += 60
        await waiting
        return has_waited

    with ExitStack() as at_work:
        for _ in range(2):
            at_work.enter_context(shares.hold("anna"))
        assert not await gives_way("anna")
        with shares.answering():
            assert await gives_way("anna")
            assert not await gives_way("ben")
        with shares.hold("ben"):
            assert await gives_way("anna")
            assert not await gives_way("ben")
            with shares.hold("ben"):
                assert not await gives_way("anna")
        with shares.answering():
            pass
        assert await gives_way("anna")  # the next step of the question starts shortly
        assert not await gives_way("anna")
