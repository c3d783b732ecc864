"""Tests for two concurrent attempts at a turn, as after a presumed crash: the later attempt wins."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from shared.platform.errors import CallTimeoutError, ConflictError
from shared.platform.language_models.models import CallLimits, ModelTurn, ModelUsage, Prompt
from shared.runs.event_log import open_event_log
from shared.runs.events import AttemptLine, DoneLine, RunEvent, StepStatus
from tests.fakes.run_log import InMemoryRunLog
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import (
    GOOD,
    READY,
    RUN,
    SEARCH,
    STEP,
    THREE,
    StoredChild,
    second_child,
    stored_child,
)

if TYPE_CHECKING:
    from shared.answering.subagent_models import TurnResult


class GatedModel(CountedModel):
    """A model whose first call waits for `gate` while later calls proceed."""

    def __init__(self, *replies: Any) -> None:
        super().__init__(*replies)
        self.gate, self.reached = asyncio.Event(), asyncio.Event()

    async def _pass(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            await self.gate.wait()

    async def subagent_turn(self, messages: Any, tools: Any, limits: CallLimits, **more: Any) -> ModelTurn:
        await self._pass()
        return await super().subagent_turn(messages, tools, limits, **more)

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        await self._pass()
        async for piece in super().stream_output(prompt, output, limits):
            yield piece


async def held_up(world: StoredChild, model: GatedModel) -> "asyncio.Task[TurnResult]":
    """Return an attempt at the first turn that is paused at its model call."""
    late = asyncio.create_task(world.take())
    await model.reached.wait()
    return late


def lines(world: StoredChild) -> list[RunEvent]:
    log = world.services.run_log
    assert isinstance(log, InMemoryRunLog)
    return log.lines(RUN)


async def test_an_attempt_that_comes_back_late_takes_nothing_of_later_turns_away() -> None:
    model = GatedModel(SEARCH, READY, THREE, READY, GOOD)
    world = await stored_child(model)
    late = await held_up(world, model)
    first = await world.take()
    assert first.status == "go_on"
    ended = await world.take(2)
    assert (ended.status, ended.findings) == ("done", 3)
    before = lines(world)
    model.gate.set()
    assert await late == first
    assert lines(world) == before


async def test_of_two_that_report_at_once_the_later_one_counts_and_both_return_its_result() -> None:
    model = GatedModel(THREE, GOOD)
    world = await stored_child(model)
    late = asyncio.create_task(world.take(closing=True))
    await model.reached.wait()
    first = await world.take(closing=True)
    model.gate.set()
    assert await late == first
    assert (first.status, first.findings) == ("done", 3)
    assert len((await world.state()).findings) == 3
    assert sum(isinstance(line, DoneLine) for line in lines(world)) == 1


async def test_of_two_that_begin_at_once_one_alone_asks_the_model() -> None:
    model = GatedModel(READY, GOOD)
    model.gate.set()
    world = await stored_child(model)
    one, other = await asyncio.gather(world.take(), world.take())
    assert one == other
    assert one.status == "done"
    assert len(model.conversations) == 1


class Forgetful(InMemoryRunLog):
    """A log that appends a child's lines and then reports a conflict, as if the write had been repeated."""

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        end = await super().append(run_id, events, at_offset=at_offset)
        if any(event.child is not None for event in events) and at_offset is not None:
            raise ConflictError("The log of this run grew meanwhile.")
        return end


async def test_an_attempt_is_not_taken_for_another_when_the_replies_to_its_appends_are_lost() -> None:
    world = await stored_child(CountedModel(SEARCH, READY, THREE), run_log=Forgetful())
    ended = await world.run()
    assert (ended.status, ended.turns) == ("done", 2)
    assert sum(isinstance(line, DoneLine) for line in lines(world)) == 2
    assert (await world.state()).turns_ended == 2


async def test_an_attempt_goes_on_after_an_append_of_unknown_outcome() -> None:
    class Late(InMemoryRunLog):
        """A log that writes the first tool event but fails to confirm it."""

        is_lost = False

        async def append(
            self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None
        ) -> int:
            end = await super().append(run_id, events, at_offset=at_offset)
            if not self.is_lost and any(event.name == "TOOL_STARTED" for event in events):
                self.is_lost = True
                raise CallTimeoutError("No answer came.")
            return end

    world = await stored_child(CountedModel(READY, THREE), run_log=Late())
    result = await world.take()
    assert (result.status, result.findings) == ("done", 3)


async def test_whoever_waits_for_another_attempt_waits_no_longer_than_its_time() -> None:
    class Overtaken(CountedModel):
        """A model during whose call another attempt begins and then stops responding."""

        async def stream_output(
            self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
        ) -> AsyncGenerator[str | ModelUsage, None]:
            mark = AttemptLine(attempt="other", step=STEP, child=0)
            await world.services.run_log.append(RUN, [mark])
            async for piece in super().stream_output(prompt, output, limits):
                yield piece

    world = await stored_child(Overtaken(GOOD), seconds=3.0)
    began = asyncio.get_running_loop().time()
    assert (await world.take(closing=True)).status == "partial"
    assert asyncio.get_running_loop().time() - began < 60
    assert not any(isinstance(line, DoneLine) for line in lines(world))


async def test_a_turn_whose_run_is_erased_waits_for_nobody() -> None:
    class Erased(CountedModel):
        """A model during whose call all lines of the run are deleted."""

        async def subagent_turn(
            self, messages: Any, tools: Any, limits: CallLimits, **more: Any
        ) -> ModelTurn:
            await world.services.run_log.delete(RUN)
            return await super().subagent_turn(messages, tools, limits, **more)

    world = await stored_child(Erased(READY, GOOD), seconds=60)
    async with asyncio.timeout(10):  # far less than the time of the turn
        assert (await world.take()).status == "partial"


async def test_the_mark_of_the_next_step_closes_a_sub_agent() -> None:
    model = GatedModel(SEARCH)
    world = await stored_child(model)
    late = await held_up(world, model)
    await open_event_log(world.services.run_log, RUN, STEP + 2)
    model.gate.set()
    assert (await late).status == "partial"
    assert isinstance(lines(world)[-1], StepStatus)
    assert (await world.take()).status == "partial"
    assert isinstance(lines(world)[-1], StepStatus)


async def test_a_completed_turn_is_returned_also_after_the_run_has_continued() -> None:
    world = await stored_child(CountedModel(READY, GOOD))
    ended = await world.take()
    await open_event_log(world.services.run_log, RUN, STEP + 2)
    assert await world.take() == ended


async def test_children_that_append_at_once_lose_no_line() -> None:
    """Append lines of two children of one step to the journal of their run concurrently."""
    world = await stored_child(CountedModel(SEARCH, READY, THREE))
    other = await second_child(world, CountedModel(SEARCH, READY, GOOD))
    ends = await asyncio.gather(world.run(), other.run())
    assert [end.status for end in ends] == ["done", "done"]
    for index, findings in ((0, 3), (1, 1)):
        own = [line for line in lines(world) if line.child == index]
        assert [line.turn for line in own if isinstance(line, DoneLine)] == [1, 2]
        assert isinstance(own[0], AttemptLine)
        state = await (world, other)[index].state()
        assert (len(state.findings), state.turns_ended) == (findings, 2)
