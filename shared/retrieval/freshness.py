"""Drops what was found and must not be shown any more, below every tool: see `SecuredIndex`.

A block may be shown if its document's row is in the index of documents, and not of a newer version. That row
is written when all blocks of a version are there, and is the first to be deleted: so blocks of a document
that is incomplete, deleted or unknown are never shown, whatever is still in their index.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Self

from shared.platform.odata import all_of, search_in
from shared.platform.search import IndexRow, SearchIndex, SearchPage, SearchRequest

KEPT_S = 1.0  # a deletion in another process shows within this time and the search service's own delay
_LAG_S = 5.0  # how long the service may still show a row that this process deleted (unmeasured)
_MOST_KEPT = 10_000  # documents; some 4 MB
_MOST_ASKED = 1000  # rows of one page
SAME_BYTES = "@document.content_hash"  # what readers' rows get from their document, for the order of copies
SINCE = "@document.upload_date"


class KnownDocument(NamedTuple):
    """What is remembered of a row; `upload_date` as ISO 8601 in UTC, which sorts."""

    version: int
    content_hash: str
    upload_date: str

    @classmethod
    def of_row(cls, row: IndexRow) -> Self:
        """Of a row, in which all but the version may be missing."""
        return cls(int(row["version"]), str(row.get("content_hash") or ""), str(row.get("upload_date") or ""))


class CompleteDocuments(SearchIndex):
    """The index of documents; what this process deletes is gone for its readers at once."""

    def __init__(self, index: SearchIndex, clock: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._clock = clock
        self._known: dict[str, tuple[float, KnownDocument | None]] = {}  # None = there is no such document
        self._deleted: dict[str, float] = {}

    async def search(self, request: SearchRequest) -> SearchPage:
        """Every row that is found; for readers without those that were just deleted."""
        page = await self._index.search(request)
        if not request.for_readers:
            return page
        rows = [row for row in page.rows if not self._is_deleted(str(row["doc_id"]))]
        return page.model_copy(update={"rows": tuple(rows)})

    async def complete(self, doc_ids: Collection[str]) -> dict[str, KnownDocument]:
        """Those that are complete by doc_id, as of KEPT_S ago at most.

        Raises:
            DependencyError: the service failed.
        """
        now = self._clock()
        kept = self._known
        unknown = [one for one in set(doc_ids) if one not in kept or now - kept[one][0] >= KEPT_S]
        for start in range(0, len(unknown), _MOST_ASKED):
            await self._ask(unknown[start : start + _MOST_ASKED], now)
        found = {one: kept[one][1] for one in doc_ids if one in kept and not self._is_deleted(one)}
        return {doc_id: known for doc_id, known in found.items() if known is not None}

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        await self._index.upload(rows)
        for row in rows:
            self._deleted.pop(str(row["doc_id"]), None)
            self._known.pop(str(row["doc_id"]), None)

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        await self._index.merge(rows)

    async def delete(self, keys: Sequence[str]) -> None:
        # Before the service is asked: what it still shows meanwhile is dropped, too.
        self._deleted = {key: at for key, at in self._deleted.items() if self._is_deleted(key)}
        self._deleted.update(dict.fromkeys(keys, self._clock()))
        await self._index.delete(keys)

    def _is_deleted(self, doc_id: str) -> bool:
        deleted_at = self._deleted.get(doc_id)
        return deleted_at is not None and self._clock() - deleted_at < _LAG_S

    async def _ask(self, doc_ids: Sequence[str], now: float) -> None:
        condition = all_of("status eq 'ready'", search_in("doc_id", doc_ids))
        select = ("doc_id", "version", "content_hash", "upload_date")
        request = SearchRequest(filter=condition, select=select, top=len(doc_ids))
        rows = (await self._index.search(request)).rows
        if len(self._known) > _MOST_KEPT:
            self._known = {one: known for one, known in self._known.items() if now - known[0] < KEPT_S}
        self._known |= dict.fromkeys(doc_ids, (now, None))
        self._known |= {str(row["doc_id"]): (now, KnownDocument.of_row(row)) for row in rows}


class CompleteBlocks(SearchIndex):
    """The index of blocks; readers find those of complete documents only."""

    def __init__(self, index: SearchIndex, documents: CompleteDocuments) -> None:
        self._index = index
        self._documents = documents

    async def search(self, request: SearchRequest) -> SearchPage:
        """Every row that is found; for readers those of complete documents, and of no older version.

        Raises:
            DependencyError: the service failed.
        """
        if not request.for_readers:
            return await self._index.search(request)
        if request.select:
            select = tuple(dict.fromkeys((*request.select, "doc_id", "version")))
            request = request.model_copy(update={"select": select})
        page = await self._index.search(request)
        known = await self._documents.complete({str(row["doc_id"]) for row in page.rows})
        rows: list[IndexRow] = []
        for row in page.rows:
            document = known.get(str(row["doc_id"]))
            # Also of a newer one: the blocks that a version keeps have its number before its row is there.
            if document is not None and int(row.get("version") or 0) >= document.version:
                rows.append({**row, SAME_BYTES: document.content_hash, SINCE: document.upload_date})
        return page.model_copy(update={"rows": tuple(rows)})

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        await self._index.upload(rows)

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        await self._index.merge(rows)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._index.delete(keys)
