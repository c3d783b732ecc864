"""Permission filters below the tools: a question can reach an index only through this module.

A tool gets a SecuredIndex for one user. No model, prompt or caller can change the condition that it adds, or
skip the check of document rows that follows (`document_rows`).
"""

from collections.abc import Iterable, Sequence

from shared.access.models import UserContext
from shared.access.security_filter import security_filter
from shared.platform.odata import all_of
from shared.platform.search import IndexRow, SearchIndex, SearchPage, SearchRequest
from shared.retrieval.document_rows import DocumentRow, DocumentRows, readable_rows

# Maximum number of pages read to replace rows that the user may not read. More are needed only after a mass
# change of permissions.
_MAX_REFILLS = 5
# Minimum size of these pages: many unreadable rows may precede a readable one.
_REFILL_ROWS = 200
_CHECKED_AT_ONCE = 64  # minimum number of rows checked at a time (not measured)


class SecuredIndex:
    """A search index restricted to what one user may read."""

    def __init__(
        self,
        index: SearchIndex,
        user: UserContext,
        rows: DocumentRows,
        *,
        within: str | None = None,
    ) -> None:
        """Restrict `index` to what `user` may read.

        Args:
            rows: decide who may read; pass `RowsReadOnce` to share them among the searches of a tool call.
            within: an additional condition on all rows, such as the caller's project.

        Raises:
            AccessDeniedError: the user id is empty.
        """
        self._trimming = all_of(security_filter(user), within)
        self._index = index
        self._user = user
        self._rows = rows

    async def search(self, request: SearchRequest) -> SearchPage:
        """Return rows of documents that the user may read, without blocks of outdated versions.

        Removed rows are replaced from the next pages. `count` and `facets` come from the index, and may lag
        behind changed permissions by seconds.
        """
        first = page = await self.candidates(request)
        skip, top = request.skip, request.top
        rows = await self._readable_rows(page.rows, skip, request.top)
        for _ in range(_MAX_REFILLS):
            if len(rows) >= request.top or len(page.rows) < top:
                break
            skip, top = skip + top, max(request.top, _REFILL_ROWS)
            page = await self.candidates(request.model_copy(update={"skip": skip, "top": top}))
            rows += await self._readable_rows(page.rows, skip, request.top - len(rows))
        rows = rows[: request.top]
        return first.model_copy(
            update={
                "rows": tuple(row for _, row in rows),
                "positions": tuple(position for position, _ in rows),
            }
        )

    async def candidates(self, request: SearchRequest) -> SearchPage:
        """Return rows that pass the access lists stored in the index, which may be outdated. Rank them, then
        check them.

        Show a row only after `readable` or `readable_documents` has admitted its document.
        """
        if request.select:
            more = ("doc_id", "version") if "block_id" in request.select else ("doc_id",)
            request = request.model_copy(update={"select": tuple(dict.fromkeys((*request.select, *more)))})
        trimmed = all_of(self._trimming, request.filter)
        return await self._index.search(request.model_copy(update={"filter": trimmed}))

    async def readable(self, rows: Sequence[IndexRow]) -> list[IndexRow]:
        """Return the rows whose documents the user may read, without blocks of outdated versions."""
        documents = await self.readable_documents(str(row["doc_id"]) for row in rows)
        return [row for row in rows if is_current(row, documents.get(str(row["doc_id"])))]

    async def readable_documents(self, doc_ids: Iterable[str]) -> dict[str, DocumentRow]:
        """Return the rows of the documents that the user may currently read, keyed by document id.

        Raises:
            DependencyError: the table storage failed.
        """
        return await readable_rows(doc_ids, self._user, self._rows)

    async def _readable_rows(
        self, rows: Sequence[IndexRow], skip: int, least: int
    ) -> list[tuple[int, IndexRow]]:
        """Return readable rows with their positions, at least `least` of them if available.

        Args:
            skip: position of the first row.
        """
        readable_rows: list[tuple[int, IndexRow]] = []
        at_once = max(least, _CHECKED_AT_ONCE)
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            documents = await self.readable_documents(str(row["doc_id"]) for row in some)
            readable_rows += [
                (position, row)
                for position, row in enumerate(some, start=skip + start)
                if is_current(row, documents.get(str(row["doc_id"])))
            ]
            if len(readable_rows) >= least:
                break
        return readable_rows


def is_current(row: IndexRow, document: DocumentRow | None) -> bool:
    """Return whether an index row belongs to the current version of a document. Without a readable document
    (None), return False.
    """
    if document is None:
        return False
    # Newer versions count too: before a new version is published, the blocks it keeps already have its
    # number.
    return "block_id" not in row or int(row.get("version") or 0) >= document.version
