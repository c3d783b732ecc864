"""Moving an index: back again, in no other order, and ended whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shared.platform.errors import ConflictError, IndexNotFoundError
from shared.wiring import Connections
from tests.contract.clients.migrating import KEPT_S, ROWS, World, made_world, row

pytestmark = pytest.mark.contract


@pytest.fixture
async def world(to_search: Connections) -> World:
    return await made_world(to_search)


async def test_one_can_go_back_with_everything_written_since(world: World) -> None:
    app = world.app()
    await world.migration().copy()
    await world.migration().switch()
    await app.upload([row(901)])
    await app.merge([{"block_id": "b0001", "access_control_list": ["boss"]}])
    await world.migration().back()
    assert await world.readers(world.alias, 901) == ["*"]
    assert await world.readers(world.alias, 1) == ["boss"]
    assert await world.migration().abandon() == world.new
    await asyncio.sleep(KEPT_S)
    await app.upload([row(902)])
    assert await world.readers(world.old, 902) == ["*"]
    with pytest.raises(IndexNotFoundError):
        await world.rows_of(world.new)


async def test_steps_out_of_order_are_refused_and_do_nothing(world: World) -> None:
    for step in (world.migration().switch, world.migration().back, world.migration().drop):
        with pytest.raises(ConflictError):
            await step()
    await world.migration().copy()
    with pytest.raises(ConflictError, match="is read from"):
        await world.migration().drop()
    with pytest.raises(ConflictError, match="being moved to"):
        await world.migration(version=3).copy()
    await world.migration().switch()
    with pytest.raises(ConflictError, match="already"):
        await world.migration().copy()  # would write what may be older to what is being read
    with pytest.raises(ConflictError, match="is read from"):
        await world.migration().abandon()
    assert len(await world.rows_of(world.alias)) == ROWS


@pytest.mark.parametrize("dies_at", range(1, 10))
async def test_an_end_that_was_interrupted_anywhere_is_ended_by_the_same_step(
    to_search: Connections, dies_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await made_world(to_search, rows=3)
    await world.migration(settle_s=0).copy()
    await world.migration(settle_s=0).switch()
    ending = world.migration(settle_s=0)
    calls, ask = [0], ending._service._ask

    async def dying(call: Callable[[Any], Awaitable[Any]]) -> Any:
        calls[0] += 1
        if calls[0] == dies_at:
            raise KeyError("the process is gone")
        return await ask(call)

    monkeypatch.setattr(ending._service, "_ask", dying)
    with pytest.raises(KeyError):
        await ending.drop()
    assert len(await world.rows_of(world.alias)) == 3
    await world.migration(settle_s=0).drop()
    aliases = await world.migration()._service.aliases()
    assert {name: index for name, index in aliases.items() if name.startswith(world.alias)} == {
        world.alias: world.new
    }
    with pytest.raises(IndexNotFoundError):
        await world.rows_of(world.old)
