"""Rows of the state table that work like an index: they list unfinished documents, recent changes and the
documents of each owner, so that queries need not read all states.

A query for states by anything but their key would scan the states of all users. The index rows contain only
document ids; what counts is the state itself. An index row is written before its state, so a crash may leave
a superfluous row but never a missing one. Partitions start with `~`, which sorts after all document ids.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from shared.documents.state import DocumentState
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.hashing import digest
from shared.platform.tables import Table, revision_of

FIRST_PARTITION = "~"
_UNFINISHED = "~unfinished"
_OWNED = "~owned-"
_CHANGED = "~changed-"
# Exclusive upper bound of the `_CHANGED` partition names, because "." is the character after "-".
_AFTER_CHANGED = "~changed."
# Keep superfluous rows younger than this, because their writer may not have written the state yet.
_SETTLED = timedelta(minutes=10)
# Rows of changes are kept for a day. To find earlier changes, readers have to scan all states.
CHANGES_KEPT = timedelta(days=1)
# Number of documents whose index rows are cached. A cache miss costs one unnecessary write.
_MOST_KNOWN = 10_000


class _IndexedAs(NamedTuple):
    """Index rows that are known to exist for a document.

    Attributes:
        changed: newest partition of `_CHANGED` with a row.
    """

    is_unfinished: bool = False
    changed: str = ""
    owners: frozenset[str] = frozenset()


class StateIndex:
    """Reader and writer of the index rows for the document states in one table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: OrderedDict[str, _IndexedAs] = OrderedDict()

    def note_read(self, state: DocumentState) -> None:
        """Remember that the index rows of a stored state exist, so that they aren't written again."""
        indexed = self._known.get(state.doc_id, _IndexedAs())
        self._remember(state.doc_id, _IndexedAs(_is_unfinished(state), indexed.changed, state.owners))

    async def before_write(self, state: DocumentState) -> None:
        """Write the index rows that a state needs, before the state itself is written.

        Raises:
            GroundworkError: the store failed.
        """
        indexed, owners = self._known.get(state.doc_id, _IndexedAs()), state.owners
        partition = _partition_of(state.updated_at)
        is_new = partition != indexed.changed
        needed = [partition] if is_new else []
        if _is_unfinished(state) and (is_new or not indexed.is_unfinished):
            needed.append(_UNFINISHED)
        needed += map(_partition_of_owner, owners - indexed.owners)
        if needed:
            await run_together(*(self._put(one, state.doc_id) for one in needed))
        is_unfinished = indexed.is_unfinished or _is_unfinished(state)
        # Rows of former owners stay: a reader that finds them superfluous deletes them.
        self._remember(state.doc_id, _IndexedAs(is_unfinished, partition, owners))

    async def after_write(self, state: DocumentState) -> None:
        """Delete the document from the list of unfinished documents if its ingestion has ended. Storage
        errors are ignored, because a superfluous row is harmless.
        """
        indexed = self._known.get(state.doc_id, _IndexedAs(is_unfinished=True))
        if indexed.is_unfinished and not _is_unfinished(state):
            await self._remove(_UNFINISHED, state.doc_id)
            self._remember(state.doc_id, indexed._replace(is_unfinished=False))

    async def after_delete(self, state: DocumentState) -> None:
        """Delete the index rows of a document whose state was deleted. Storage errors are ignored, because a
        superfluous row is harmless.
        """
        self._known.pop(state.doc_id, None)
        partitions = (_UNFINISHED, *map(_partition_of_owner, state.owners))
        await run_together(*(self._remove(partition, state.doc_id) for partition in partitions))

    async def unfinished(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield an index row for every unfinished document. Some rows may be superfluous, because their
        document is finished by now.
        """
        async for row in self._table.query(f"PartitionKey eq '{_UNFINISHED}'"):
            yield row

    async def of_owner(self, user_id: str) -> AsyncIterator[Mapping[str, Any]]:
        """Yield an index row for every document of this owner. Some rows may be superfluous, because their
        document has changed its owner.
        """
        async for row in self._table.query(f"PartitionKey eq '{_partition_of_owner(user_id)}'"):
            yield row

    async def remove_superfluous(self, row: Mapping[str, Any]) -> None:
        """Delete a superfluous index row, unless it was written in the last ten minutes."""
        written_at: datetime = row.metadata["timestamp"]  # type: ignore[attr-defined]  # the SDK's entity
        if datetime.now(UTC) - written_at < _SETTLED:
            return
        try:
            await self._table.delete(str(row["PartitionKey"]), str(row["RowKey"]), revision_of(row))
        except ConflictError:
            # Another process has rewritten the row, so it may be needed.
            return

    async def changed_since(self, moment: datetime) -> list[str]:
        """Return the ids of documents whose state may have been written at `moment` or later."""
        low = _partition_of(moment)
        condition = f"PartitionKey ge '{low}' and PartitionKey lt '{_AFTER_CHANGED}'"
        return list(dict.fromkeys([str(row["RowKey"]) async for row in self._table.query(condition)]))

    async def purge(self, moment: datetime, most: int) -> int:
        """Delete at most `most` index rows of changes before `moment`, and return the number of deleted
        rows.
        """
        condition = f"PartitionKey ge '{_CHANGED}' and PartitionKey lt '{_partition_of(moment)}'"
        return await self._table.delete_keys(condition, most)

    async def _put(self, partition: str, doc_id: str) -> None:
        row = {"PartitionKey": partition, "RowKey": doc_id}
        try:
            await self._table.put(row)
        except NotFoundError:
            await self._table.ensure()
            await self._table.put(row)

    async def _remove(self, partition: str, doc_id: str) -> None:
        try:
            await self._table.delete(partition, doc_id)
        except GroundworkError:
            # A reader that finds the row superfluous will delete it.
            return

    def _remember(self, doc_id: str, indexed: _IndexedAs) -> None:
        self._known[doc_id] = indexed
        self._known.move_to_end(doc_id)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


def _partition_of_owner(user_id: str) -> str:
    # Use a digest, because user ids may contain characters that aren't allowed in keys.
    return f"{_OWNED}{digest('owner', user_id)[:32]}"


def _is_unfinished(state: DocumentState) -> bool:
    return state.status != "ready"


def _partition_of(moment: datetime) -> str:
    """Return the name of the partition for a time. A partition covers ten seconds, and names sort
    chronologically.
    """
    return f"{_CHANGED}{moment.astimezone(UTC):%Y%m%d%H%M%S}"[:-1]
