"""Tests for comparing a changed document with its indexed blocks: new, moved, kept and deleted blocks."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from shared.documents.models import Block, Chunk, DescribedFile, Figure, Original
from shared.documents.state import Rights
from shared.ingestion import indexing
from shared.ingestion.fair_turns import FairTurns
from shared.ingestion.indexing import make_blocks, make_version, plan_changes, write_blocks
from shared.ingestion.models import IngestStep, ParsedFile
from shared.ingestion.task import IngestTask, fresh_state
from shared.platform.search import IndexRow
from shared.wiring import Services
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_services

DESCRIBED = DescribedFile(
    title="Pumps",
    author=None,
    document_type="manual",
    department=None,
    date=None,
    language="en",
    tags=(),
    summary_brief="",
    summary_standard="",
)


class BusyIndex(InMemorySearchIndex):
    """An index that blocks Anna's writes until `is_free` is set and records the owners of all rows."""

    def __init__(self) -> None:
        super().__init__("block_id")
        self.is_free = asyncio.Event()
        self.came: list[str] = []

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        self.came += rows[0]["access_control_list"]
        if "anna" in rows[0]["access_control_list"]:
            await self.is_free.wait()
        await super().upload(rows)


class CountedTurns(FairTurns):
    """A scheduler that reports who requests a turn."""

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self.asked = asyncio.Queue[str]()

    @asynccontextmanager
    async def turn(self, whose: str) -> AsyncIterator[None]:
        self.asked.put_nowait(whose)
        async with super().turn(whose):
            yield


def chunk(text: str, page: int = 1, path: str = "Safety") -> Chunk:
    return Chunk(text=text, page_number=page, heading_path=path)


def indexed(blocks: list[Block]) -> dict[str, str]:
    return {block.block_id: block.content_hash for block in blocks}


def blocks(*chunks: Chunk, model: str = "m") -> list[Block]:
    return make_blocks("d1", ParsedFile(chunks=chunks), {}, model)


def test_the_same_chunks_need_nothing() -> None:
    before = blocks(chunk("a"), chunk("b"))
    changes = plan_changes(before, indexed(before))
    assert (changes.new, changes.moved, changes.kept, changes.gone) == ((), (), (0, 1), ())


def test_one_changed_chunk_is_one_new_block_and_one_gone() -> None:
    before, after = blocks(chunk("a"), chunk("b")), blocks(chunk("a"), chunk("c"))
    changes = plan_changes(after, indexed(before))
    assert (changes.new, changes.kept, changes.gone) == ((1,), (0,), (before[1].block_id,))


def test_a_chunk_on_another_page_is_moved_and_not_embedded_again() -> None:
    before, after = blocks(chunk("a"), chunk("b")), blocks(chunk("a"), chunk("new"), chunk("b", page=2))
    changes = plan_changes(after, indexed(before))
    assert (changes.new, changes.moved, changes.kept, changes.gone) == ((1,), (2,), (0,), ())


def test_equal_texts_are_told_apart_by_their_order() -> None:
    ids = [block.block_id for block in blocks(chunk("a"), chunk("a"), chunk("a"))]
    assert len(set(ids)) == 3


def test_another_embedding_model_makes_every_block_new() -> None:
    before, after = blocks(chunk("a")), blocks(chunk("a"), model="other")
    assert plan_changes(after, indexed(before)).new == (0,)


def test_another_heading_makes_a_new_block_for_it_is_embedded_too() -> None:
    before, after = blocks(chunk("a")), blocks(chunk("a", path="Care"))
    assert plan_changes(after, indexed(before)).new == (0,)


def test_figures_have_their_place_among_the_text() -> None:
    parsed = ParsedFile(
        chunks=(Chunk(text="before", place=0), Chunk(text="after", place=2), Chunk(text="more", place=2)),
        figures=(Figure(key="f", place=1, width_px=1, height_px=1),),
    )
    file_blocks = make_blocks("d1", parsed, {}, "m")
    in_order = sorted(file_blocks, key=lambda block: block.ordinal)
    assert [block.content or "figure" for block in in_order] == ["before", "figure", "after", "more"]
    assert [block.ordinal for block in in_order] == [0, 1, 2, 3]


def test_a_block_with_another_ordinal_is_moved_and_not_embedded_again() -> None:
    before, after = blocks(chunk("a")), blocks(chunk("new"), chunk("a"))
    changes = plan_changes(after, indexed(before))
    assert (changes.new, changes.moved, changes.gone) == ((0,), (1,), ())


async def begin_writing(services: Services, owner: str, name: str, blocks: int) -> asyncio.Task[object]:
    """Write the blocks of a document whose earlier stages are complete."""
    state = fresh_state(name).model_copy(
        update={"fence": "one", "wanted_rights": Rights(acl=(owner,), owner_id=owner)}
    )
    await services.documents.create(state)
    task = IngestTask(IngestStep(blob_name=name, fence="one", version_key="h-1"), services)
    parsed = ParsedFile(chunks=tuple(chunk(f"{name} {number}") for number in range(blocks)))
    version = await make_version(task, parsed, DESCRIBED)
    return asyncio.create_task(write_blocks(task, version, range(blocks), Original()))


async def test_writes_to_the_index_are_made_in_turns_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    index, turns = BusyIndex(), CountedTurns(1)
    services = fake_services(content_index=index)
    monkeypatch.setattr(indexing, "_WRITING", (turns, turns))
    monkeypatch.setattr(indexing, "_EMBEDDING", (FairTurns(1), FairTurns(1)))
    writing = []
    for number, owner in enumerate(("anna", "anna", "anna", "ben")):
        writing.append(await begin_writing(services, owner, f"{number}.md", blocks=2))
        await turns.asked.get()  # it waits before the next task starts
    index.is_free.set()
    await asyncio.gather(*writing)
    assert index.came == ["anna", "ben", "anna", "anna"]
    assert len(index.rows) == 8


async def test_a_few_blocks_do_not_wait_for_those_of_a_long_document(monkeypatch: pytest.MonkeyPatch) -> None:
    index, long = BusyIndex(), CountedTurns(1)
    services = fake_services(content_index=index)
    monkeypatch.setattr(indexing, "_WRITING", (FairTurns(1), long))
    monkeypatch.setattr(indexing, "_EMBEDDING", (FairTurns(1), FairTurns(1)))
    first = await begin_writing(services, "anna", "long.md", blocks=9)
    await long.asked.get()
    async with asyncio.timeout(60):  # limits the test if it waits after all
        await (await begin_writing(services, "ben", "short.md", blocks=8))
    assert not first.done()
    index.is_free.set()
    await first
