"""Tests for running sub-agents concurrently in one process, without waiting past the deadline."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.answering.inline import run_children
from shared.platform.language_models.models import ModelTurn
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import GOOD, READ, READY, stored_child


async def test_their_ends_come_in_their_order() -> None:
    world = await stored_child(CountedModel(READY, GOOD))
    stranger = world.start.model_copy(update={"path": "s004c1"})
    ends = await run_children((stranger, world.start), world.task.deadline, world.services)
    assert [end.child_id for end in ends] == [stranger.child_id, world.start.child_id]
    assert ends[1].status == "done"
    assert await run_children((), world.task.deadline, world.services) == ()


async def test_who_is_late_is_left_behind() -> None:
    class Hanging(CountedModel):
        async def subagent_turn(self, *_: Any, **__: Any) -> ModelTurn:
            await asyncio.sleep(3600)
            raise AssertionError

    world = await stored_child(Hanging(), seconds=60)
    began = time.perf_counter()
    (end,) = await run_children((world.start,), datetime.now(UTC) + timedelta(seconds=3), world.services)
    assert time.perf_counter() - began < 50
    assert end.status == "late"
    assert (await world.state()).hits  # stored results are kept


async def test_a_defect_ends_a_turn_and_not_the_question() -> None:
    class Broken(CountedModel):
        async def subagent_turn(self, *_: Any, **__: Any) -> ModelTurn:
            raise RuntimeError("a bug")

    world = await stored_child(Broken(READ))
    (end,) = await run_children((world.start,), world.task.deadline, world.services)
    assert end.status == "done"  # the report of the smaller profile
    assert "CRASHED" in (await world.state()).warnings
