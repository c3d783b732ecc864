"""Tests for the number of rows read by lists and feeds: other documents add no reads."""

import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.documents.feed import DocumentFeed, SharedScans
from shared.documents.listing import ListCriteria, list_documents
from shared.documents.state import DocumentState, Rights
from shared.documents.state_store import DocumentStore
from shared.platform.errors import DependencyError
from shared.retrieval.models import DocumentStatus
from tests.fakes.services import fake_services
from tests.fakes.table import InMemoryTable

ANNA = UserContext(user_id="anna")
NOW = datetime.now(UTC)
OTHERS = 1000
_BOUND = re.compile(r"PartitionKey (ge|lt|eq) '([^']*)'")


class CountingTable(InMemoryTable):
    """A table that counts rows as the service reads them: all rows of the queried partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.rows_read = 0
        self.fails = False

    async def get(self, partition_key: str, row_key: str) -> Mapping[str, Any] | None:
        self.rows_read += 1
        return await super().get(partition_key, row_key)

    async def query(
        self, condition: str = "", *, page_size: int | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        within = {"ge": str.__ge__, "lt": str.__lt__, "eq": str.__eq__}
        bounds = _BOUND.findall(condition)
        keys = [partition for partition, _ in self.rows]
        self.rows_read += sum(all(within[sign](key, value) for sign, value in bounds) for key in keys)
        async for row in super().query(condition, page_size=page_size):
            yield row

    async def delete(self, partition_key: str, row_key: str, revision: str | None = None) -> None:
        if self.fails:
            raise DependencyError("The store failed.", "Try again.")
        await super().delete(partition_key, row_key, revision)


def state(number: int, status: DocumentStatus = "ready", age_s: float = 3600) -> DocumentState:
    return DocumentState(
        doc_id=f"{number:024x}",
        blob_name=f"{number}.md",
        filename=f"{number}.md",
        status=status,
        wanted_rights=Rights(acl=("anna",)),
        updated_at=NOW - timedelta(seconds=age_s),
    )


@pytest.fixture
async def table() -> CountingTable:
    """Return a table with a thousand documents that became ready an hour ago."""
    counting_table = CountingTable()
    store = DocumentStore(counting_table)
    for number in range(OTHERS):
        await store.replace(
            (await store.create(state(number, "queued"))).model_copy(update={"status": "ready"})
        )
    return counting_table


@pytest.fixture
def store(table: CountingTable) -> DocumentStore:
    """Return a new store over the table, as in another process."""
    return DocumentStore(table)


async def ids(states: AsyncIterator[DocumentState]) -> set[int]:
    return {int(one.doc_id, 16) async for one in states}


async def test_a_list_reads_the_states_of_unfinished_documents_only(
    table: CountingTable, store: DocumentStore
) -> None:
    for number in (OTHERS, OTHERS + 1):
        await store.create(state(number, "failed"))
    table.rows_read = 0
    listed = await list_documents(ANNA, fake_services(documents=store), ListCriteria({}))
    assert {view.filename for view in listed.documents} == {"1000.md", "1001.md"}
    assert table.rows_read <= 4


async def test_a_feed_reads_the_states_that_changed_only(table: CountingTable, store: DocumentStore) -> None:
    await store.create(state(OTHERS, "parsing", age_s=1))
    await store.create(state(OTHERS + 1, "ready", age_s=1))
    feed = DocumentFeed(SharedScans(store), ANNA, None)
    table.rows_read = 0
    assert [event.view.filename for event in await feed.poll() if event.view] == ["1000.md"]
    assert table.rows_read <= 2
    table.rows_read = 0
    later = DocumentFeed(SharedScans(store), ANNA, NOW)
    assert len(await later.poll()) == 2
    assert table.rows_read <= 4


async def test_a_reader_who_was_away_for_days_misses_nothing(store: DocumentStore) -> None:
    await store.create(state(OTHERS, "ready", age_s=3 * 86_400))
    assert OTHERS in await ids(store.changed_since(NOW - timedelta(days=4)))


async def test_documents_are_unfinished_until_they_are_ready_or_gone(store: DocumentStore) -> None:
    parsing = await store.create(state(OTHERS, "parsing"))
    failed = await store.create(state(OTHERS + 1, "failed"))
    assert await ids(store.unfinished()) == {OTHERS, OTHERS + 1}
    ready = await store.replace(parsing.model_copy(update={"status": "ready"}))
    await store.delete(failed)
    assert await ids(store.unfinished()) == set()
    await store.replace(ready.model_copy(update={"status": "queued"}))
    assert await ids(store.unfinished()) == {OTHERS}


async def test_a_row_that_was_left_behind_is_shown_to_nobody_and_removed_later(
    table: CountingTable, store: DocumentStore
) -> None:
    document = await store.create(state(OTHERS, "parsing"))
    table.fails = True
    await store.replace(document.model_copy(update={"status": "ready"}))
    table.fails = False
    (left,) = (row for row in table.rows.values() if row["PartitionKey"] == "~unfinished")
    assert await ids(store.unfinished()) == set()
    assert left in table.rows.values()  # its writer may be about to write the state
    left.metadata["timestamp"] = NOW - timedelta(hours=1)
    assert await ids(store.unfinished()) == set()
    assert left not in table.rows.values()


def owned(number: int, owner_id: str) -> DocumentState:
    rights = Rights(owner_id=owner_id, acl=(owner_id,))
    return state(number).model_copy(update={"rights": rights, "wanted_rights": rights})


async def test_documents_of_an_owner_are_found_without_reading_others(
    table: CountingTable, store: DocumentStore
) -> None:
    own_document = await store.create(owned(OTHERS, "ada"))
    given_away = await store.create(owned(OTHERS + 1, "ada"))
    deleted = await store.create(owned(OTHERS + 2, "ada"))
    await store.delete(deleted)
    # The pending change makes Bob the owner. Once it is applied, Ada owns the document no longer.
    pending = {"wanted_rights": Rights(owner_id="bob", acl=("bob",))}
    given_away = await store.replace(given_away.model_copy(update=pending))
    assert await ids(store.of_owner("ada")) == {OTHERS, OTHERS + 1}
    assert await ids(store.of_owner("bob")) == {OTHERS + 1}
    await store.replace(given_away.model_copy(update={"rights": pending["wanted_rights"]}))
    table.rows_read = 0
    assert await ids(store.of_owner("ada")) == {OTHERS}
    assert table.rows_read <= 4
    # A store in another process has cached no rows, so it writes the missing row again.
    other = DocumentStore(table)
    read = await other.get(own_document.doc_id)
    assert read is not None
    await other.replace(read.model_copy(update=pending))
    assert await ids(other.of_owner("bob")) == {OTHERS, OTHERS + 1}


async def test_an_owner_who_gets_a_document_back_is_found_again(
    table: CountingTable, store: DocumentStore
) -> None:
    ada, bob = (Rights(owner_id=owner, acl=(owner,)) for owner in ("ada", "bob"))
    document = await store.create(owned(OTHERS, "ada"))
    document = await store.replace(document.model_copy(update={"rights": bob, "wanted_rights": bob}))
    row = next(row for row in table.rows.values() if row["PartitionKey"].startswith("~owned-"))  # Ada's
    row.metadata["timestamp"] = NOW - timedelta(hours=1)
    assert await ids(DocumentStore(table).of_owner("ada")) == set()
    assert row not in table.rows.values()
    await store.replace(document.model_copy(update={"rights": ada, "wanted_rights": ada}))
    assert await ids(store.of_owner("ada")) == {OTHERS}


async def test_rows_of_old_changes_are_purged(table: CountingTable, store: DocumentStore) -> None:
    await store.create(state(OTHERS, age_s=0))
    assert await store.purge_changes(NOW, most=10) == 0
    assert await store.purge_changes(NOW + timedelta(days=2), most=10) == 10
    left = [row for row in table.rows.values() if row["PartitionKey"].startswith("~changed")]
    assert len(left) == OTHERS - 9
    assert OTHERS in await ids(store.changed_since(NOW))
