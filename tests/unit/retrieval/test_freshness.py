"""What a reader finds of documents that are incomplete, deleted or replaced."""

from shared.access.models import UserContext
from shared.platform.search import IndexRow, SearchRequest
from shared.retrieval.blocks import originals_first
from shared.retrieval.freshness import KEPT_S, CompleteBlocks, CompleteDocuments
from shared.retrieval.secured_index import SecuredIndex
from tests.fakes.search_index import InMemorySearchIndex

ANNA = UserContext(user_id="anna")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class World:
    """Two processes that share the indexes; each has its own memory of what is complete."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.block_rows = InMemorySearchIndex("block_id")
        self.document_rows = InMemorySearchIndex("doc_id")
        self.here, self.elsewhere = (CompleteDocuments(self.document_rows, self.clock) for _ in range(2))

    async def write(self, doc_id: str, version: int = 1) -> None:
        await self.here.upload([self.document(doc_id, version)])

    def document(self, doc_id: str, version: int = 1) -> IndexRow:
        readers = {"access_control_list": ["anna"]}
        return {"doc_id": doc_id, "status": "ready", "version": version, **readers}

    def block(self, block_id: str, doc_id: str, version: int = 1) -> IndexRow:
        row = {"block_id": block_id, "doc_id": doc_id, "version": version, "content": "pump"}
        return {**row, "access_control_list": ["anna"]}

    async def found(self, *, elsewhere: bool = False, select: tuple[str, ...] = ()) -> list[str]:
        documents = self.elsewhere if elsewhere else self.here
        index = SecuredIndex(CompleteBlocks(self.block_rows, documents), ANNA)
        page = await index.search(SearchRequest(text="pump", select=select))
        return sorted(str(row["block_id"]) for row in page.rows)

    async def listed(self, *, elsewhere: bool = False) -> list[str]:
        index = SecuredIndex(self.elsewhere if elsewhere else self.here, ANNA)
        return [str(row["doc_id"]) for row in (await index.search(SearchRequest())).rows]


async def test_blocks_are_found_once_their_document_is_complete() -> None:
    world = World()
    await world.block_rows.upload([world.block("b1", "guide")])
    assert await world.found() == []
    await world.write("guide")
    assert await world.found() == ["b1"]
    assert await world.found(select=("block_id",)) == ["b1"]


async def test_blocks_of_an_older_version_are_dropped_and_those_of_the_next_one_are_not() -> None:
    world = World()
    old, kept, new = (world.block(f"v{version}", "guide", version) for version in (1, 2, 3))
    await world.block_rows.upload([old, kept, new])
    await world.write("guide", version=2)
    assert await world.found() == ["v2", "v3"]


async def test_a_deleted_document_is_gone_here_at_once_and_elsewhere_when_what_is_known_is_old() -> None:
    world = World()
    await world.block_rows.upload([world.block("b1", "guide")])
    await world.write("guide")
    assert await world.found() == await world.found(elsewhere=True) == ["b1"]
    await world.here.delete(["guide"])
    assert await world.found() == []
    world.clock.now += KEPT_S
    assert await world.found(elsewhere=True) == []


async def test_a_row_that_the_service_still_shows_is_gone_for_readers_here() -> None:
    world = World()
    await world.block_rows.upload([world.block("b1", "guide")])
    await world.here.delete(["guide"])
    await world.document_rows.upload([world.document("guide")])  # as if its deletion did not show yet
    assert (await world.listed(), await world.listed(elsewhere=True)) == ([], ["guide"])
    assert await world.found() == []
    assert len((await world.here.search(SearchRequest())).rows) == 1  # the one that removes it must see it


async def test_a_document_that_was_sent_again_is_found_at_once() -> None:
    world = World()
    await world.block_rows.upload([world.block("b1", "guide")])
    await world.here.delete(["guide"])
    assert await world.found() == []
    await world.write("guide")
    assert (await world.found(), await world.listed()) == (["b1"], ["guide"])


async def test_one_query_asks_for_all_documents_that_are_not_known() -> None:
    world = World()
    await world.block_rows.upload([world.block(f"b{number}", f"doc-{number % 7}") for number in range(30)])
    await world.found()
    await world.found()
    assert len(world.document_rows.requests) == 1
    world.clock.now += KEPT_S
    await world.found()
    assert len(world.document_rows.requests) == 2


async def test_a_copy_stands_behind_the_document_that_was_there_before_it() -> None:
    world = World()
    documents = (
        ("copy", "2026-03-02", "same"),
        ("guide", "2026-03-01", "same"),
        ("other", "2020-01-01", "x"),
    )
    for doc_id, day, content_hash in documents:
        row = {**world.document(doc_id), "content_hash": content_hash, "upload_date": f"{day}T00:00:00Z"}
        await world.here.upload([row])
        await world.block_rows.upload([world.block(f"{doc_id}-words-0", doc_id)])
    index = SecuredIndex(CompleteBlocks(world.block_rows, world.here), ANNA)
    found = await index.search(SearchRequest(text="pump"))
    rows = {str(row["block_id"]): row for row in found.rows}
    ranked = ["copy-words-0", "other-words-0", "guide-words-0"]
    assert originals_first(ranked, rows) == ["guide-words-0", "other-words-0", "copy-words-0"]
