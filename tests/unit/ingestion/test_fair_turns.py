"""Whose turn it is, and how many texts a request takes."""

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
        await asyncio.sleep(0)  # it is waiting before the next one comes
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
    first.cancel()  # it has the turn, which goes to the last one
    go_on.set()
    ended = await asyncio.gather(first, waiting, last, return_exceptions=True)
    assert ended[2] == "done"
    assert all(isinstance(end, asyncio.CancelledError) for end in ended[:2])
    async with asyncio.timeout(60), turns.turn("ben"):
        pass


async def test_a_slow_or_failing_service_gets_fewer_texts() -> None:
    now = 0.0
    pace = EmbeddingPace(smallest=4, largest=64, wanted_s=3.0, clock=lambda: now)
    async with pace.measured(64):
        now += 12.0
    assert pace.texts == 16
    for texts in (16, 64):  # the second was sent before the first failed
        with pytest.raises(DependencyError):
            async with pace.measured(texts):
                raise DependencyError("It took too long.")
        assert pace.texts == 8
    for _ in range(3):
        async with pace.measured(8):
            now += 0.1
    assert pace.texts == 64


async def test_a_service_that_takes_as_long_for_few_texts_gets_no_tiny_requests() -> None:
    now = 0.0
    pace = EmbeddingPace(smallest=4, largest=64, wanted_s=1.0, clock=lambda: now)
    for _ in range(5):
        async with pace.measured(pace.texts):
            now += 1.5
    assert pace.texts == 16


async def test_a_short_text_that_takes_long_or_fails_makes_no_request_smaller() -> None:
    now = 0.0
    pace = EmbeddingPace(smallest=4, largest=64, wanted_s=1.0, clock=lambda: now)
    async with pace.measured(1):
        now += 1.5
    assert pace.texts == 64
    with pytest.raises(DependencyError):
        async with pace.measured(1):
            raise DependencyError("It took too long.")
    assert pace.texts == 64


async def test_one_persons_steps_leave_a_share_for_others_and_for_who_comes_next() -> None:
    shares = Shares(12)
    with ExitStack() as at_work:
        for _ in range(6):
            at_work.enter_context(shares.taken("anna", "any"))
        with pytest.raises(NoPlaceFreeError):
            at_work.enter_context(shares.taken("anna", "any"))
        for _ in range(4):
            at_work.enter_context(shares.taken("ben", "any"))
        assert shares.is_full("ben")
        assert not shares.is_full("eva")
        assert shares.admit("eva", is_new=True) == 0
        assert shares.admit("anna", is_new=False) > 0
    assert not shares.is_full("anna")


async def test_files_that_were_let_in_count_before_their_first_step() -> None:
    now = 0.0
    shares = Shares(12, clock=lambda: now)
    for _ in range(6):
        assert shares.has_room("anna")
        assert shares.admit("anna", is_new=True) == 0
    assert not shares.has_room("anna")
    assert shares.has_room("ben")
    with ExitStack() as at_work:
        for _ in range(6):
            at_work.enter_context(shares.taken("anna", "any"))
        assert not shares.has_room("anna")
    assert shares.has_room("anna")
    assert shares.admit("anna", is_new=True) == 0
    now = 60.0  # that file took another way
    assert all(shares.has_room("anna") for _ in range(2))


async def test_files_that_wait_for_a_step_keep_their_places_from_new_ones() -> None:
    now = 0.0
    shares = Shares(12, clock=lambda: now)
    with ExitStack() as at_work:
        for number in range(6):
            at_work.enter_context(shares.taken("anna", f"first{number}"))
        for file in ("x", "x", "y", "z", "u", "v", "w"):  # x was refused twice
            with pytest.raises(NoPlaceFreeError):
                at_work.enter_context(shares.taken("anna", file))
    now = 120.0  # the longest pause of a file that was refused again and again
    assert shares.admit("anna", is_new=False) > 0
    assert shares.admit("ben", is_new=True) == 0
    with shares.taken("anna", "x"):
        assert not shares.has_room("anna")
    assert shares.has_room("anna")  # x has had its turn; the others are five
    now = 600.0  # the others were deleted meanwhile
    assert all(shares.admit("anna", is_new=False) == 0 for _ in range(6))


async def test_the_more_files_are_deferred_the_later_each_asks_again() -> None:
    shares = Shares(12)
    with ExitStack() as at_work:
        for _ in range(6):
            at_work.enter_context(shares.taken("anna", "any"))
        delays = [shares.admit("anna", is_new=True) for _ in range(100)]
        assert delays[0] == 1  # a queue hides messages for whole seconds
        assert delays[99] == 50  # so two look each second
        for _ in range(100):
            shares.note_return("anna")
        shares.note_return("anna")  # deferred by another process
        assert shares.admit("anna", is_new=False) == 1


async def test_a_new_file_gives_way_once_to_a_question() -> None:
    shares = Shares(12)
    with ExitStack() as at_work:
        for _ in range(2):
            at_work.enter_context(shares.taken("anna", "any"))
        at_work.enter_context(shares.answering())
        assert shares.admit("anna", is_new=True) == 1
        assert shares.admit("anna", is_new=False) == 0
        assert shares.admit("ben", is_new=True) == 0


async def test_many_files_give_way_for_a_moment_to_a_question_and_to_somebody_elses_only_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(fair_turns, "_LOOK_S", 0.0)
    shares = Shares(12, clock=lambda: now)

    async def gives_way(whose: str) -> bool:
        """Whether it waits, and then no longer than it may."""
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
            at_work.enter_context(shares.taken("anna", "any"))
        assert not await gives_way("anna")
        with shares.answering():
            assert await gives_way("anna")
            assert not await gives_way("ben")
        with shares.taken("ben", "any"):
            assert await gives_way("anna")
            assert not await gives_way("ben")
            with shares.taken("ben", "any"):
                assert not await gives_way("anna")
        with shares.answering():
            pass
        assert await gives_way("anna")  # the question's next step follows in a moment
        assert not await gives_way("anna")
