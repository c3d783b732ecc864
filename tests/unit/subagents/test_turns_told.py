"""Tests for the events and state that a sub-agent stores, and for stopping once its run has ended."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from shared.platform.errors import DependencyError
from shared.platform.language_models.models import CallLimits, ModelUsage, Prompt
from shared.platform.names import WORK
from shared.runs.events import RunEvent
from tests.fakes.run_log import InMemoryRunLog, run_event
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import (
    FILTER,
    GOOD,
    PRESSURE,
    READY,
    RUN,
    SEARCH,
    SECRET,
    STEP,
    THREE,
    stored_child,
)


async def test_artifacts_are_stored_as_they_arise() -> None:
    seen: list[int] = []

    class Slow(CountedModel):
        async def stream_output(
            self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
        ) -> AsyncGenerator[str | ModelUsage, None]:
            text = THREE.model_dump_json()
            for start in range(0, len(text), 60):
                await asyncio.sleep(0.2)
                yield text[start : start + 60]
                seen.append(len((await world.state()).findings))

    world = await stored_child(Slow(READY))
    await world.take()
    assert any(0 < count < 3 for count in seen)
    assert "artifact" in world.phases()
    assert (await world.state()).tokens > 0


@pytest.mark.parametrize("ends", ["cancelled", "erased"])
async def test_a_run_that_has_ended_ends_its_sub_agent_at_its_next_turn(ends: str) -> None:
    model = CountedModel(SEARCH)
    world = await stored_child(model)
    await world.take()
    if ends == "cancelled":
        await world.services.run_log.append(RUN, [run_event("ERROR")])
    else:
        await world.services.run_log.delete(RUN)
    before = len(world.events()) if ends == "cancelled" else 0
    assert (await world.take(2)).status == "partial"
    assert len(model.conversations) == 1
    if ends == "cancelled":
        assert len(world.events()) == before


async def test_a_run_that_ends_meanwhile_ends_the_report() -> None:
    class Cancelling(CountedModel):
        async def stream_output(
            self, prompt: Prompt, output: type[BaseModel], limits: CallLimits
        ) -> AsyncGenerator[str | ModelUsage, None]:
            await world.services.run_log.append(RUN, [run_event("ERROR")])
            text = THREE.model_dump_json()
            for start in range(0, len(text), 20):
                await asyncio.sleep(0.15)
                yield text[start : start + 20]
            raise AssertionError("nobody reads so far")

    world = await stored_child(Cancelling(READY))
    assert (await world.take()).status == "partial"
    assert world.events()[-1].name == "ERROR"


async def test_a_task_that_was_erased_ends_it() -> None:
    world = await stored_child(CountedModel())
    await world.services.blobs.delete_prefix(WORK, f"runs/{RUN}/")
    await world.services.run_log.delete(RUN)
    assert (await world.take()).status == "partial"
    assert [blob async for blob in world.services.blobs.list_blobs(WORK, f"runs/{RUN}/")] == []


async def test_readers_see_counts_and_tools_and_no_text() -> None:
    world = await stored_child(CountedModel(SEARCH, READY, GOOD))
    await world.take()
    await world.take(2)
    assert world.phases() == ["started", "turn", "turn", "ended"]
    assert all((event.data["child"], event.data["step"]) == (0, STEP) for event in world.events())
    assert [event.data["tool"] for event in world.events("TOOL_STARTED")] == ["rag_semantic_search"] * 2
    assert world.events("STATUS")[-1].data | {"status": "done", "findings": 1, "proved": 1} == (
        world.events("STATUS")[-1].data
    )
    events_json = "".join(event.model_dump_json() for event in world.events())
    assert not any(text in events_json for text in (*PRESSURE.values(), FILTER, SECRET, "250 bar"))


async def test_an_event_that_cannot_be_written_costs_no_turn() -> None:
    class Flaky(InMemoryRunLog):
        """A log that refuses all tool events."""

        async def append(
            self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None
        ) -> int:
            if any(event.name.startswith("TOOL") for event in events):
                raise DependencyError("storage is down")
            return await super().append(run_id, events, at_offset=at_offset)

    world = await stored_child(CountedModel(READY, GOOD), run_log=Flaky())
    assert (await world.take()).status == "done"
    assert "TOOL_STARTED" not in {event.name for event in world.events()}


async def test_a_turn_that_cannot_begin_in_the_journal_is_taken_again() -> None:
    world = await stored_child(CountedModel(READY, GOOD))
    append = world.services.run_log.append

    async def down(*_: Any, **__: Any) -> int:
        world.services.run_log.append = append  # type: ignore[method-assign]
        raise DependencyError("storage is down")

    world.services.run_log.append = down  # type: ignore[method-assign]
    assert (await world.run()).status == "done"
