"""Two attempts at one turn at once, as a host comes back that was thought dead: the first to store counts."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from shared.answering.subagent_models import SubagentState
from shared.platform.errors import CallTimeoutError
from shared.platform.language_models.models import CallLimits, ModelTurn, ModelUsage, Prompt
from tests.fakes.blob_store import InMemoryBlobStore
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import GOOD, READY, SEARCH, THREE, StoredChild, stored_child

if TYPE_CHECKING:
    from shared.answering.subagent_models import TurnResult


class GatedModel(CountedModel):
    """Its first call waits for `gate`, while others pass it by."""

    def __init__(self, *replies: Any) -> None:
        super().__init__(*replies)
        self.gate, self.reached = asyncio.Event(), asyncio.Event()

    async def _pass(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            await self.gate.wait()

    async def converse(self, messages: Any, tools: Any, limits: CallLimits, **more: Any) -> ModelTurn:
        await self._pass()
        return await super().converse(messages, tools, limits, **more)

    async def stream_output(
        self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
    ) -> AsyncGenerator[str | ModelUsage, None]:
        await self._pass()
        async for piece in super().stream_output(prompt, output, limits):
            yield piece


async def held_up(world: StoredChild, model: GatedModel) -> "asyncio.Task[TurnResult]":
    """An attempt at the first turn whose process stands still."""
    late = asyncio.create_task(world.take())
    await model.reached.wait()
    return late


async def test_an_attempt_that_comes_back_late_takes_nothing_of_later_turns_away() -> None:
    model = GatedModel(SEARCH, READY, THREE, READY, GOOD)
    world = await stored_child(model)
    late = await held_up(world, model)
    assert (await world.take()).status == "go_on"
    ended = await world.take(2)
    assert (ended.status, ended.findings) == ("done", 3)
    state = await world.state()
    model.gate.set()
    assert await late == ended
    assert await world.state() == state


async def test_of_two_that_report_at_once_the_first_to_store_counts_and_both_say_the_same() -> None:
    model = GatedModel(THREE, GOOD)
    world = await stored_child(model)
    late = asyncio.create_task(world.take(closing=True))
    await model.reached.wait()
    first = await world.take(closing=True)
    model.gate.set()
    assert await late == first
    assert (first.status, first.findings) == ("done", 3)
    assert len((await world.state()).findings) == 3


async def test_of_two_that_find_the_first_passages_at_once_one_alone_asks_the_model() -> None:
    model = GatedModel(READY, GOOD)
    model.gate.set()
    world = await stored_child(model)
    one, other = await asyncio.gather(world.take(), world.take())
    assert one == other
    assert one.status == "done"
    assert len(model.conversations) == 1


async def test_an_attempt_is_not_taken_for_another_when_the_answer_to_its_own_write_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Forgetful(InMemoryBlobStore):
        """Does the second write, and says nothing of it."""

        writes = 0

        async def write_version(self, container: str, name: str, content: bytes, *, etag: str | None) -> str:
            written = await super().write_version(container, name, content, etag=etag)
            self.writes += 1
            if self.writes == 2:
                raise CallTimeoutError("No answer came.")
            return written

    monkeypatch.setattr("shared.answering.report_stream._READ_EVERY_S", 0.0)
    monkeypatch.setattr("shared.answering.report_stream._KEEP_EVERY_S", 0.0)
    blobs = Forgetful()
    world = await stored_child(CountedModel(READY, THREE), blobs=blobs)
    result = await world.take()
    assert (result.status, result.findings) == ("done", 3)
    assert blobs.writes >= 3
    assert (await world.state()).turns_ended == 1


async def test_whoever_waits_for_another_attempt_waits_no_longer_than_its_time() -> None:
    class Stolen(InMemoryBlobStore):
        """Somebody else writes the state just before, and is never heard of again."""

        async def write_version(self, container: str, name: str, content: bytes, *, etag: str | None) -> str:
            if etag is None:
                await super().write_version(container, name, other(content), etag=None)
            return await super().write_version(container, name, content, etag=etag)

    def other(content: bytes) -> bytes:
        # Without a result, also where this attempt had one: on a slow machine its search fails.
        stolen = SubagentState.from_stored(content)
        return (
            stolen.model_copy(update={"attempt_id": "other", "last_result": None}).model_dump_json().encode()
        )

    world = await stored_child(CountedModel(READY, GOOD), blobs=Stolen(), seconds=1.5)
    began = asyncio.get_running_loop().time()
    result = await world.take()
    assert result.status == "partial"
    assert asyncio.get_running_loop().time() - began < 60


async def test_a_turn_whose_run_is_erased_waits_for_nobody() -> None:
    class Erased(InMemoryBlobStore):
        """All that the run has stored goes right before what the turn ends with."""

        async def write_version(self, container: str, name: str, content: bytes, *, etag: str | None) -> str:
            if etag is not None:
                await self.delete(container, name)
            return await super().write_version(container, name, content, etag=etag)

    world = await stored_child(CountedModel(READY, GOOD), blobs=Erased(), seconds=60)
    async with asyncio.timeout(10):  # far less than the turn has
        result = await world.take()
    assert result.status == "partial"
