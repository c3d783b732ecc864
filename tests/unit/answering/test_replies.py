"""Tests for replies to a clarification that race with each other, with the timeout or with a restart."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from shared.answering.inline import run_to_end, waits
from shared.answering.script import Reply, next_command
from shared.answering.steps import AnswerArrived, AnswerTimedOut, StepInput, TakeAnswer
from shared.platform.errors import ConflictError
from shared.runs.events import ReplyLine, RunEvent
from shared.wiring import Services
from tests.fakes.run_log import InMemoryRunLog
from tests.scripts import next_action, observe, perform
from tests.unit.answering.test_clarifying import answer, asking, last_prompt, view_of
from tests.world import events_of


class RivalLog(InMemoryRunLog):
    """A log in which a rival replies right before the first reply is appended."""

    def __init__(self, log: object) -> None:
        super().__init__()
        assert isinstance(log, InMemoryRunLog)
        self.logs, self.starts = log.logs, log.starts
        self.rival: Callable[[], Awaitable[object]] | None = None

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        if self.rival is not None and any(isinstance(event, ReplyLine) for event in events):
            rival, self.rival = self.rival, None
            await rival()
        return await super().append(run_id, events, at_offset=at_offset)


def raced(services: Services, rival: Callable[[], Awaitable[object]]) -> Services:
    """Return the services with a journal into which `rival` replies first."""
    log = RivalLog(services.run_log)
    log.rival = rival
    return services.using(run_log=log)


def replies(services: Services, run_id: str) -> list[ReplyLine]:
    assert isinstance(services.run_log, InMemoryRunLog)
    return [line for line in services.run_log.lines(run_id) if isinstance(line, ReplyLine)]


async def test_of_two_answers_at_once_the_one_that_is_appended_first_counts() -> None:
    services, run_id, state = await asking()
    with pytest.raises(ConflictError, match="already answered"):
        await answer(raced(services, lambda: answer(services, run_id, choice=2)), run_id, choice=1)
    assert [reply.choice.numbers for reply in replies(services, run_id)] == [(2,)]
    await run_to_end(run_id, services, observe(state, AnswerArrived()))
    assert "report-2023.pdf" not in last_prompt(services)


async def test_an_answer_that_is_sent_twice_at_once_is_stored_once_and_accepted_twice() -> None:
    services, run_id, _ = await asking()
    assert await asyncio.gather(*(answer(services, run_id, choice=2) for _ in range(4))) == [True] * 4
    assert len(replies(services, run_id)) == 1


async def test_an_answer_that_the_timeout_overtakes_is_refused() -> None:
    services, run_id, state = await asking()
    action = next_action(observe(state, AnswerTimedOut()))
    assert isinstance(action, TakeAnswer)
    step = StepInput(run_id=run_id, action=action)
    with pytest.raises(ConflictError, match="expired"):
        await answer(raced(services, lambda: perform(step, services)), run_id, choice=1)
    await run_to_end(run_id, services, observe(state, AnswerTimedOut()))
    assert any(
        "No answer came in time" in str(event.data.get("text")) for event in events_of(services, run_id)
    )


async def test_a_timeout_that_an_answer_overtakes_goes_on_with_the_answer() -> None:
    services, run_id, state = await asking()
    late = raced(services, lambda: answer(services, run_id, choice=2))
    await run_to_end(run_id, late, observe(state, AnswerTimedOut()))
    assert [reply.choice.numbers for reply in replies(services, run_id)] == [(2,)]
    assert "report-2023.pdf" not in last_prompt(services)
    assert (await view_of(services, run_id)).status == "completed"


async def test_a_run_that_begins_again_asks_nothing_again_and_expires_at_the_same_time() -> None:
    services, run_id, state = await asking()
    seen = events_of(services, run_id)
    again = await run_to_end(run_id, services)  # an empty history: the orchestration was lost
    assert waits(again)
    assert events_of(services, run_id) == seen
    first, second = next_command(state), next_command(again)
    assert isinstance(first, Reply)
    assert first == second


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_run_that_begins_again_knows_the_answer(when: str) -> None:
    services, run_id, _ = await asking()
    if when == "before":
        assert await answer(services, run_id, choice=2)
    again = await run_to_end(run_id, services)
    if when == "after":
        assert await answer(services, run_id, choice=2)
    assert await answer(services, run_id, choice=2)
    with pytest.raises(ConflictError):
        await answer(services, run_id, choice=1)
    await run_to_end(run_id, services, observe(again, AnswerArrived()))
    assert "report-2023.pdf" not in last_prompt(services)
    assert (await view_of(services, run_id)).status == "completed"
    assert not await answer(services, run_id, choice=2)
    with pytest.raises(ConflictError):
        await answer(services, run_id, choice=1)


async def test_a_run_that_begins_again_after_its_answer_does_nothing_twice() -> None:
    services, run_id, state = await asking()
    await answer(services, run_id, choice=2)
    await run_to_end(run_id, services, observe(state, AnswerArrived()))
    seen = events_of(services, run_id)
    await run_to_end(run_id, services, observe(await run_to_end(run_id, services), AnswerTimedOut()))
    assert events_of(services, run_id) == seen
    assert len(replies(services, run_id)) == 1
