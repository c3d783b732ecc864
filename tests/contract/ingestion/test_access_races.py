"""Who may read changes while blocks are written: no block stays more readable than the newest list says."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from shared.documents.requests import AccessChange
from shared.documents.state import Rights
from shared.ingestion.acceptance import accept
from shared.ingestion.changes import change_access, write_rights
from shared.ingestion.claims import IngestTask
from shared.ingestion.models import Accepted, IngestStep, Written
from shared.ingestion.steps import perform
from shared.platform.language_models.models import CallLimits
from shared.platform.names import DOCUMENTS
from shared.platform.search import IndexRow
from shared.wiring import Services
from tests.contract.ingestion.driving import Instances, blocks_of, documents_of, ingest, state_of
from tests.contract.ingestion.models import CountingEmbedder

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # long: see `make e2e`
_numbers = itertools.count()
SECTIONS = 6
Hook = Callable[[], Awaitable[None]]


@pytest.fixture
def name() -> str:
    return f"races/guide-{next(_numbers)}.md"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.ingestion.indexing.EMBED_BATCH", 2)


def guide(edition: int) -> bytes:
    parts = [f"# Part {part}\n\nPart {part} of edition {edition}.\n\n" for part in range(SECTIONS)]
    return "".join(parts).encode()


async def drop(services: Services, name: str, edition: int = 1) -> None:
    await services.blobs.ensure_containers([DOCUMENTS])
    metadata = {"acl": "board,sales", "owner_id": "anna"}
    await services.blobs.write(DOCUMENTS, name, guide(edition), metadata=metadata)


async def readers_of(services: Services, name: str) -> set[tuple[str, ...]]:
    return {tuple(row["access_control_list"]) for row in await blocks_of(services, name)}


class Interrupted:
    """An index or an embedder that lets something happen right before, or after, its second call."""

    def __init__(self, inner: object, happen: Hook, moment: str) -> None:
        self._inner, self._happen, self._moment, self._calls = inner, happen, moment, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def _at(self, moment: str) -> None:
        if self._calls == 2 and moment == self._moment:
            await self._happen()

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        self._calls += 1
        await self._at("before")
        await self._inner.upload(rows)  # type: ignore[attr-defined]
        await self._at("after")

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> object:
        self._calls += 1
        await self._at("before")
        return await self._inner.embed(texts, limits)  # type: ignore[attr-defined]


def interrupted(services: Services, where: str, happen: Hook) -> Services:
    part, moment = where.split()
    parts: dict[str, Any] = {part: Interrupted(getattr(services, part), happen, moment)}
    return replace(services, **parts)


async def by_api(services: Services, name: str) -> None:
    await change_access(await state_of(services, name), AccessChange(acl=("board",)), services)


async def by_sidecar(services: Services, name: str) -> None:
    content = b'{"acl": ["board"], "owner_id": "anna"}'
    await services.blobs.write(DOCUMENTS, f"{name}.acl.json", content)
    step = IngestStep(blob_name=name, instance_id="event")
    assert await perform("accept", step, services) == Accepted(outcome="noted")


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

    if where.startswith("documents"):  # written once in an ingestion
        where, target = "documents_index before", services.documents_index
        holder = Interrupted(target, happen, "before")
        holder._calls = 1
        watched = replace(services, documents_index=holder)  # type: ignore[arg-type]
    else:
        watched = interrupted(services, where, happen)
    step = IngestStep(blob_name=name, instance_id="writer", end=SECTIONS)
    for current in ("accept", "parse", "describe", "plan", "write_blocks", "finish"):
        reply = await perform(current, step, watched)
        assert reply.kind != "failed", reply
        step = step.model_copy(update={"content_hash": getattr(reply, "content_hash", step.content_hash)})
        if current in ("write_blocks", "finish") and seen:
            # Not only in the end: the step in which it changed leaves no block that more people can read.
            assert await readers_of(services, name) == {("anna", "board")}
    assert isinstance(reply, Written)
    assert seen[0] <= {("anna", "board")}, "those that were there had it at once"
    assert (await ingest(services, name, "writer")).outcome in ("ready", "current", "rights")
    assert await readers_of(services, name) == {("anna", "board")}
    assert len(await blocks_of(services, name)) == SECTIONS
    (document,) = await documents_of(services, name)
    assert document["access_control_list"] == ["anna", "board"]
    state = await state_of(services, name)
    assert (state.rights.acl, state.rights) == (("anna", "board"), state.wanted_rights)
    assert (state.holder, state.rows_outdated) == (None, False)


async def test_of_two_changes_at_once_the_newest_holds(services: Services, name: str) -> None:
    await drop(services, name)
    await ingest(services, name, "first")
    await drop(services, name, 2)
    index = services.content_index
    changes = [AccessChange(acl=("sales",)), AccessChange(acl=("board",))]

    class Slow:
        """The first change's merge arrives after all that the second one does."""

        def __getattr__(self, attribute: str) -> object:
            return getattr(index, attribute)

        async def merge(self, rows: Sequence[IndexRow]) -> None:
            if changes:
                await change_access(await state_of(services, name), changes.pop(), services)
            await index.merge(rows)

    step = IngestStep(blob_name=name, instance_id="writer", end=SECTIONS)
    await perform("accept", step, services)
    first = changes.pop(0)
    slow = replace(services, content_index=Slow())  # type: ignore[arg-type]
    assert await change_access(await state_of(services, name), first, slow) is False
    assert changes == []
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
    accepted = await accept(IngestTask(IngestStep(blob_name=name, instance_id="at-work"), services))
    assert accepted.rights_changed
    await change_access(state, AccessChange(acl=("board",)), services)
    assert await readers_of(services, name) == {("anna", "board")}


async def test_blocks_that_come_after_their_document_was_removed_do_not_stay(
    services: Services, name: str
) -> None:
    await drop(services, name)

    async def happen() -> None:
        # Whoever ends an instance ends none of its activities: this one writes on.
        await services.blobs.delete(DOCUMENTS, name)
        assert (await ingest(services, name, "remover", Instances("writer"))).outcome == "removed"

    late = interrupted(services, "content_index before", happen)
    assert (await ingest(late, name, "writer")).outcome == "superseded"
    assert await blocks_of(services, name) == []
    assert await documents_of(services, name) == []
