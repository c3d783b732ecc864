"""Migration of an index while it is read and written. Every step can be repeated after a crash."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shared.platform.errors import ConfigurationError, ConflictError, IndexNotFoundError, InvalidQueryError
from shared.platform.search import IndexRow, SearchRequest
from shared.retrieval import index_comparison, mirrored_index
from shared.retrieval.migration import settle_seconds
from shared.wiring import Connections
from tests.contract.clients.migrating import (
    BUSY_SETTLE_S,
    KEPT_S,
    ROWS,
    World,
    before,
    made_world,
    next_definition,
    once,
    row,
)
from tests.contract.clients.test_search_index import definition

pytestmark = pytest.mark.contract

PAGES = 3  # number of pages that contain ROWS

BY_CONTENT = SearchRequest(filter="content eq 'valve'", top=1)


@pytest.fixture(autouse=True)
def keys_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make keys arrive in several pages, as with a large index."""
    monkeypatch.setattr(index_comparison, "KEYS_ROWS", 70)


@pytest.fixture
def one_page_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process pages in key order, so that a test knows the order of writes."""
    monkeypatch.setattr(index_comparison, "PAGES_AT_ONCE", 1)


@pytest.fixture
async def world(to_search: Connections) -> World:
    return await made_world(to_search)


async def test_readers_see_every_row_at_every_moment_and_then_what_only_the_new_index_can(
    world: World,
) -> None:
    app, seen = world.app(), set[int | None]()
    with pytest.raises(InvalidQueryError):
        await app.search(BY_CONTENT)

    async def read() -> None:
        while True:
            page = await app.search(SearchRequest(text="valve", top=1, count=True))
            seen.add(page.count)

    reading = asyncio.create_task(read())
    try:
        copied = await world.migration().copy()
        switched = await world.migration().switch()
        removed = await world.migration().drop()
        await asyncio.sleep(0.1)
        assert not reading.done(), reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert seen == {ROWS}
    assert (copied.source, copied.target, switched.target, removed) == (ROWS, ROWS, ROWS, world.old)
    assert len((await app.search(BY_CONTENT)).rows) == 1
    with pytest.raises(IndexNotFoundError):
        await world.rows_of(world.old)
    await app.upload([row(900)])
    assert await world.readers(world.new, 900) == ["*"]


@pytest.mark.usefixtures("one_page_at_once")
async def test_a_right_revoked_between_reading_and_writing_a_row_stays_revoked(world: World) -> None:
    app, stale = world.app(), []

    async def revoke() -> None:
        await app.merge([{"block_id": "b0007", "access_control_list": ["boss"]}])
        await app.delete(["b0008"])
        stale.append(await world.readers(world.new, 7))

    await world.migration(before_copying=once(revoke)).copy()
    # The row was not in the new index yet, so the copied page is older than the change.
    assert stale == [None]
    assert await world.readers(world.new, 7) == ["boss"]
    assert await world.readers(world.new, 8) is None


@pytest.mark.parametrize("at", [2, 3])
async def test_rights_that_change_while_late_pages_are_copied_are_the_new_ones(world: World, at: int) -> None:
    app = world.app()

    async def change() -> None:
        # A row that was copied, a row that may have been copied, and a row that was not copied.
        for number in (5, 120, 240):
            await app.merge([{"block_id": f"b{number:04}", "access_control_list": [f"r{number}"]}])

    await world.migration(before_copying=once(change, at=at)).copy()
    assert [await world.readers(world.new, number) for number in (5, 120, 240)] == [
        ["r5"],
        ["r120"],
        ["r240"],
    ]


@pytest.mark.usefixtures("one_page_at_once")
async def test_a_right_revoked_while_its_row_is_compared_stays_revoked(world: World) -> None:
    app, writes = world.app(), itertools.count(1)

    async def revoke_again() -> None:
        readers = {1: "somebody", PAGES + 1: "boss"}.get(
            next(writes)
        )  # first write of the copy, first write of the comparison
        if readers:
            await app.merge([{"block_id": "b0007", "access_control_list": [readers]}])

    await world.migration(before_copying=revoke_again).copy()
    # The comparison wrote the stale page once, and again after the newer change.
    assert next(writes) == PAGES + 3
    assert await world.readers(world.new, 7) == ["boss"]


@pytest.mark.e2e  # the migration waits for seconds, so that writes occur meanwhile
@pytest.mark.nightly
async def test_whatever_is_written_meanwhile_both_indexes_end_equal(world: World) -> None:
    app, chance = world.app(), random.Random(7)
    state: dict[str, IndexRow] = await world.rows_of(world.old)

    async def write() -> None:
        number = chance.randrange(ROWS + 50)
        key, new_row = f"b{number:04}", row(number, f"u{chance.randrange(5)}", content=f"v{chance.random()}")
        kind = chance.choice(["upload", "merge", "delete"])
        if kind == "upload":
            await app.upload([new_row])
            state[key] = new_row
        elif kind == "delete":
            await app.delete([key])
            state.pop(key, None)
        elif key in state:
            await app.merge([{"block_id": key, "access_control_list": new_row["access_control_list"]}])
            state[key] = {**state[key], "access_control_list": new_row["access_control_list"]}

    async def keep_writing() -> None:
        while True:
            await write()

    writing = asyncio.create_task(keep_writing())
    await asyncio.sleep(KEPT_S)
    try:
        await world.migration(settle_s=BUSY_SETTLE_S).copy()
        await world.migration(settle_s=BUSY_SETTLE_S).switch()
        await asyncio.sleep(0.2)
        assert not writing.done(), writing
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    # Repeat the write that the cancellation interrupted.
    await app.upload([state[key] for key in sorted(state)])
    missing_keys = [f"b{number:04}" for number in range(ROWS + 50) if f"b{number:04}" not in state]
    await app.delete(missing_keys)
    old, new = await world.rows_of(world.old), await world.rows_of(world.new)
    assert new == old
    assert {key: copied_row["access_control_list"] for key, copied_row in new.items()} == {
        key: expected_row["access_control_list"] for key, expected_row in state.items()
    }


async def test_a_crash_in_the_middle_is_gone_on_from(world: World) -> None:
    async def die() -> None:
        raise KeyError("the process is gone")

    app = world.app()
    with pytest.raises(KeyError):
        await world.migration(before_copying=once(die, at=2)).copy()
    assert len(await world.rows_of(world.new)) < ROWS
    await asyncio.sleep(KEPT_S)
    await app.merge([{"block_id": "b0001", "access_control_list": ["boss"]}])
    await app.delete(["b0002"])
    assert (await world.migration().copy()).target == ROWS - 1
    assert await world.rows_of(world.new) == await world.rows_of(world.old)
    assert await world.readers(world.new, 1) == ["boss"]


async def test_what_was_written_to_the_old_index_alone_is_found_before_the_switch(world: World) -> None:
    await world.migration().copy()
    # As left by a process that died after its write to the old index.
    await world.opens(world.old).merge([{"block_id": "b0003", "access_control_list": ["boss"]}])
    await world.opens(world.old).delete(["b0004"])
    await world.migration().switch()
    assert await world.readers(world.alias, 3) == ["boss"]
    assert await world.readers(world.alias, 4) is None


async def test_hidden_fields_are_copied_and_hidden_again(to_search: Connections) -> None:
    world = World(to_search)
    await world.admin().ensure_index(before(world.old, retrievable=False))
    await world.opens(world.old).upload([row(1)])
    await world.migration().adopt(world.old)
    hidden = world.migration(next_definition(world.alias, retrievable=False))
    await hidden.copy()
    await hidden.switch()
    await hidden.drop()
    assert "content" not in (await world.rows_of(world.alias))["b0001"]
    assert len((await world.app().search(BY_CONTENT)).rows) == 1


async def test_rows_whose_values_must_change_are_not_copied(world: World) -> None:
    other = world.migration(definition(world.alias, dimensions=5))
    plan = await other.plan()
    assert list(plan.refused) == ["content_vector: dimensions 3, not 5"]
    with pytest.raises(ConfigurationError, match="cannot be copied: content_vector"):
        await other.copy()
    with pytest.raises(IndexNotFoundError):
        await world.rows_of(world.new)


async def test_the_plan_tells_what_only_a_new_index_can_have(world: World) -> None:
    plan = await world.migration().plan()
    assert (plan.source, plan.target, plan.changes) == (
        world.old,
        world.new,
        ("content: filterable False, not True",),
    )
    assert (await world.migration(before(world.alias)).plan()).changes == ()


async def test_an_index_without_an_alias_works_as_before_and_cannot_be_moved(to_search: Connections) -> None:
    world = World(to_search)
    world.alias = world.old
    await world.admin().ensure_index(definition(world.old))
    await world.app().upload([row(1)])
    assert await world.readers(world.old, 1) == ["*"]
    with pytest.raises(ConfigurationError, match="not an alias"):
        await world.migration().copy()


async def test_a_version_that_came_before_its_index_works_but_for_what_the_index_cannot(world: World) -> None:
    more = next_definition(world.alias)
    more["fields"].append({"name": "extra", "type": "Edm.String"})
    assert await world.admin().ensure_index(more) is True
    await world.app().upload([{**row(905), "extra": "here"}])
    assert (await world.rows_of(world.alias))["b0905"]["extra"] == "here"
    with pytest.raises(InvalidQueryError):
        await world.app().search(BY_CONTENT)
    other_values = definition(world.alias, dimensions=5)
    with pytest.raises(ConfigurationError, match="content_vector: dimensions 3, not 5"):
        await world.admin().ensure_index(other_values)


async def test_while_moving_both_schemas_are_accepted_and_new_fields_reach_both(world: World) -> None:
    await world.migration().copy()
    assert await world.admin().ensure_index(next_definition(world.alias)) is False
    more = next_definition(world.alias)
    more["fields"].append({"name": "extra", "type": "Edm.String"})
    assert await world.admin().ensure_index(more) is True
    await asyncio.sleep(KEPT_S)
    await world.app().upload([{**row(903), "extra": "here"}])
    for name in (world.old, world.new):
        assert (await world.rows_of(name))["b0903"]["extra"] == "here"
    await world.migration().switch()
    # As called by a process of the previous version.
    assert await world.admin().ensure_index(before(world.alias)) is False


async def test_nothing_is_written_while_nobody_can_tell_where_to(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = world.app()

    async def fails(name: str) -> tuple[str, ...]:
        raise ConflictError("The service did not answer.")

    monkeypatch.setattr(app._targets, "of", fails)
    with pytest.raises(ConflictError):
        await app.upload([row(904)])
    assert await world.readers(world.old, 904) is None


def test_the_wait_is_longer_than_any_write_of_before() -> None:
    limit_s = 30  # for the read of the alias, the batch to the old index and the batch to the new index
    alias_holds_everywhere_s = 10
    assert settle_seconds(limit_s) > mirrored_index.KEPT_S + 3 * limit_s + alias_holds_everywhere_s


async def test_versions_side_by_side_write_what_they_know(world: World) -> None:
    await world.admin().ensure_index(
        {**before(world.alias), "fields": [*before(world.alias)["fields"], _EXTRA]}
    )  # the new version is deployed, and the previous version still writes
    app = world.app()
    await app.upload([{**row(1), "extra": "new"}, {**row(2), "extra": "new"}])
    await app.merge([{"block_id": "b0001", "access_control_list": ["boss"]}])
    await app.upload([row(2)])
    await world.admin().ensure_index(before(world.alias))
    rows = await world.rows_of(world.alias)
    assert (rows["b0001"]["extra"], rows["b0001"]["access_control_list"]) == ("new", ["boss"])
    # An upload by the previous version replaces the row, which drops the new field.
    assert rows["b0002"]["extra"] is None


_EXTRA = {"name": "extra", "type": "Edm.String"}


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
    with pytest.raises(ConflictError, match="currently points to"):
        await world.migration().drop()
    with pytest.raises(ConflictError, match="being moved to"):
        await world.migration(version=3).copy()
    await world.migration().switch()
    with pytest.raises(ConflictError, match="already"):
        await world.migration().copy()  # this would overwrite rows of the current index with older rows
    with pytest.raises(ConflictError, match="currently points to"):
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
