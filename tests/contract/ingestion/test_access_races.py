"""Permissions change while blocks are written, and no block stays more readable than the new list allows."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from shared.documents.requests import AccessChange
from shared.documents.state import Rights
from shared.ingestion.acceptance import accept
from shared.ingestion.changes import change_access, write_rights
from shared.ingestion.models import Done, IngestStep
from shared.ingestion.rights import note_event
from shared.ingestion.task import IngestTask
from shared.platform.names import DOCUMENTS
from shared.platform.search import IndexRow
from shared.wiring import Services
from tests.contract.ingestion import driving
from tests.contract.ingestion.driving import (
    STEPS,
    after,
    blocks_of,
    documents_of,
    ingest,
    perform,
    state_of,
)
from tests.contract.ingestion.models import CountingEmbedder
from tests.fakes.replaced import Replaced

pytestmark = [
    pytest.mark.contract,
    pytest.mark.e2e,
    pytest.mark.attack("access matrix"),
]  # runs long, so it is part of `make e2e`
SECTIONS = 6
Hook = Callable[[], Awaitable[None]]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.ingestion.indexing.EMBED_BATCH", 2)


def guide(edition: int) -> bytes:
    parts = [f"# Part {part}\n\nPart {part} of edition {edition}.\n\n" for part in range(SECTIONS)]
    return "".join(parts).encode()


async def drop(services: Services, name: str, edition: int = 1) -> None:
    await driving.drop(services, name, guide(edition), {"acl": "board,sales", "owner_id": "anna"})


async def readers_of(services: Services, name: str) -> set[tuple[str, ...]]:
    return {tuple(row["access_control_list"]) for row in await blocks_of(services, name)}


def interrupted(services: Services, where: str, happen: Hook, calls: int = 0) -> Services:
    """Return services in which `happen` runs right before or after a service's second call. `calls` counts as
    already made.
    """
    part, moment = where.split()
    inner = getattr(services, part)
    method = "embed" if part == "embedder" else "upload"
    number = itertools.count(calls + 1)

    async def call(*args: Any) -> Any:
        is_second = next(number) == 2
        if is_second and moment == "before":
            await happen()
        result = await getattr(inner, method)(*args)
        if is_second and moment == "after":
            await happen()
        return result

    parts: dict[str, Any] = {part: Replaced(inner, **{method: call})}
    return replace(services, **parts)


async def by_api(services: Services, name: str) -> None:
    await change_access(await state_of(services, name), AccessChange(acl=("board",)), services)


async def by_sidecar(services: Services, name: str) -> None:
    content = b'{"acl": ["board"], "owner_id": "anna"}'
    await services.blobs.write(DOCUMENTS, f"{name}.acl.json", content)
    assert await note_event(f"{name}.acl.json", services) == "noted"


@pytest.mark.parametrize("change", [by_api, by_sidecar])
@pytest.mark.parametrize(
    "where", ["embedder before", "content_index before", "content_index after", "documents_index before"]
)
@pytest.mark.parametrize("is_new", [True, False])
async def test_a_narrower_list_holds_on_every_block_whenever_it_comes(
    services: Services,
    name: str,
    where: str,
    change: Callable[[Services, str], Awaitable[None]],
    *,
    is_new: bool,
) -> None:
    if not is_new:
        await drop(services, name)
        await ingest(services, name, "first")
    await drop(services, name, 2)
    seen: list[set[tuple[str, ...]]] = []

    async def happen() -> None:
        await change(services, name)
        seen.append(await readers_of(services, name))

    calls = int(where.startswith("documents"))  # an ingestion writes to the table of documents only once
    watched = interrupted(services, where, happen, calls)
    step = IngestStep(blob_name=name, fence="writer", end=SECTIONS)
    for current in STEPS:
        reply = await perform(current, step, watched)
        assert reply.kind != "failed", reply
        step = after(step, reply)
        if current in STEPS[4:] and seen:
            # Already after this step, no block may be readable by more people than the list allows.
            assert await readers_of(services, name) == {("anna", "board")}
    assert isinstance(reply, Done)
    assert seen[0] <= {("anna", "board")}, "those that were there had it at once"
    assert (await ingest(services, name, "writer")).outcome in ("ready", "current", "rights")
    assert await readers_of(services, name) == {("anna", "board")}
    assert len(await blocks_of(services, name)) == SECTIONS
    (document,) = await documents_of(services, name)
    assert document["access_control_list"] == ["anna", "board"]
    state = await state_of(services, name)
    assert (state.rights.acl, state.rights) == (("anna", "board"), state.wanted_rights)
    assert (state.is_open, state.rows_outdated) == (False, False)


async def test_of_two_changes_at_once_the_newest_holds(services: Services, name: str) -> None:
    await drop(services, name)
    await ingest(services, name, "first")
    await drop(services, name, 2)
    index = services.content_index
    changes = [AccessChange(acl=("sales",)), AccessChange(acl=("board",))]

    async def merge(rows: Sequence[IndexRow]) -> None:
        """Delay the first change's merge until after all writes of the second change."""
        if changes:
            await change_access(await state_of(services, name), changes.pop(), services)
        await index.merge(rows)

    step = IngestStep(blob_name=name, fence="writer", end=SECTIONS)
    await perform(accept, step, services)
    first = changes.pop(0)
    late: Any = Replaced(index, merge=merge)
    slow = replace(services, content_index=late)
    assert await change_access(await state_of(services, name), first, slow), "the writer must look again"
    assert changes == []
    assert (await state_of(services, name)).wanted_rights.acl == ("anna", "board")
    # The row of the document has the newest list at once, and its blocks have it after the ingestion.
    assert (await ingest(services, name, "writer")).outcome in ("ready", "current", "rights")
    assert await readers_of(services, name) == {("anna", "board")}


async def test_an_embedder_is_asked_once_for_each_block_whatever_happens_to_the_rights(
    services: Services, name: str, embedder: CountingEmbedder
) -> None:
    await drop(services, name)

    async def happen() -> None:
        await by_api(services, name)

    assert (await ingest(interrupted(services, "content_index after", happen), name)).outcome == "current"
    assert len(embedder.texts) == SECTIONS
    assert await readers_of(services, name) == {("anna", "board")}


async def test_a_list_that_an_ingestion_has_only_noted_holds_when_the_change_returns(
    services: Services, name: str
) -> None:
    await drop(services, name)
    await ingest(services, name)
    state = await state_of(services, name)
    assert await readers_of(services, name) == {("anna", "board", "sales")}
    await write_rights(name, Rights(acl=("board",), owner_id="anna"), services.blobs)
    accepted = await accept(IngestTask(IngestStep(blob_name=name, fence="at-work"), services))
    assert accepted.rights_changed
    await change_access(state, AccessChange(acl=("board",)), services)
    assert await readers_of(services, name) == {("anna", "board")}


async def test_blocks_that_come_after_their_document_was_removed_do_not_stay(
    services: Services, name: str
) -> None:
    await drop(services, name)

    async def happen() -> None:
        # Terminating an instance doesn't stop its activities, so this activity continues to write.
        await services.blobs.delete(DOCUMENTS, name)
        assert (await ingest(services, name, "remover")).outcome == "removed"

    late = interrupted(services, "content_index before", happen)
    assert (await ingest(late, name, "writer")).outcome == "nothing"
    assert await blocks_of(services, name) == []
    assert await documents_of(services, name) == []
