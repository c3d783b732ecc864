"""Security trimming below the tools: the only way from a question to an index.

A tool gets a SecuredIndex, bound to one user; nothing that a model, a prompt or a caller says can reach the
condition that it adds, or skip the check of document rows that follows (`document_rows`).
"""

from collections.abc import Iterable, Sequence

from shared.access.models import UserContext
from shared.access.security_filter import security_filter
from shared.platform.odata import all_of
from shared.platform.search import IndexRow, SearchIndex, SearchPage, SearchRequest
from shared.retrieval.document_rows import DocumentRow, DocumentRows, readable_rows

_MAX_REFILLS = 5  # pages read to fill one; only a mass change of access takes more, for some seconds
_REFILL_ROWS = 200  # at least, of each of these pages: a short list may begin with many refused documents
_CHECKED_AT_ONCE = 64  # rows of a refill, at least; further ones only if these don't suffice (unmeasured)


class SecuredIndex:
    """One index as one user may see it."""

    def __init__(
        self,
        index: SearchIndex,
        user: UserContext,
        rows: DocumentRows,
        *,
        within: str | None = None,
    ) -> None:
        """Bind `index` to `user`.

        Args:
            rows: decide who may read; `RowsReadOnce`, if several searches of one tool call share them.
            within: a further condition on every row, such as the project that the caller chose.

        Raises:
            AccessDeniedError: the user has no id.
        """
        self._trimming = all_of(security_filter(user), within)
        self._index = index
        self._user = user
        self._rows = rows

    async def search(self, request: SearchRequest) -> SearchPage:
        """Return the rows of documents that the user may read, without blocks of older versions.

        A page that loses rows is filled from the next ones. `count` and `facets` are the index's own, and may
        lag behind a change of access by seconds.
        """
        first = page = await self.candidates(request)
        skip, top = request.skip, request.top
        kept = await self._kept(page.rows, skip, request.top)
        for _ in range(_MAX_REFILLS):
            if len(kept) >= request.top or len(page.rows) < top:
                break
            skip, top = skip + top, max(request.top, _REFILL_ROWS)
            page = await self.candidates(request.model_copy(update={"skip": skip, "top": top}))
            kept += await self._kept(page.rows, skip, request.top - len(kept))
        kept = kept[: request.top]
        return first.model_copy(
            update={
                "rows": tuple(row for _, row in kept),
                "positions": tuple(position for position, _ in kept),
            }
        )

    async def candidates(self, request: SearchRequest) -> SearchPage:
        """Return rows that the index's copies of access lists admit, to be ranked and then checked.

        Show nobody a row before `readable` or `readable_documents` has admitted its document.
        """
        if request.select:
            more = ("doc_id", "version") if "block_id" in request.select else ("doc_id",)
            request = request.model_copy(update={"select": tuple(dict.fromkeys((*request.select, *more)))})
        trimmed = all_of(self._trimming, request.filter)
        return await self._index.search(request.model_copy(update={"filter": trimmed}))

    async def readable(self, rows: Sequence[IndexRow]) -> list[IndexRow]:
        """Return the rows whose document the user may read, without blocks of older versions."""
        documents = await self.readable_documents(str(row["doc_id"]) for row in rows)
        return [row for row in rows if is_current(row, documents.get(str(row["doc_id"])))]

    async def readable_documents(self, doc_ids: Iterable[str]) -> dict[str, DocumentRow]:
        """Return the rows of those documents that the user may read now, by document.

        Raises:
            DependencyError: the table storage failed.
        """
        return await readable_rows(doc_ids, self._user, self._rows)

    async def _kept(self, rows: Sequence[IndexRow], skip: int, wanted: int) -> list[tuple[int, IndexRow]]:
        """Return the first readable rows, at least `wanted` if there are as many, with their positions.

        Args:
            skip: position of the first row.
        """
        kept: list[tuple[int, IndexRow]] = []
        at_once = max(wanted, _CHECKED_AT_ONCE)
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            documents = await self.readable_documents(str(row["doc_id"]) for row in some)
            kept += [
                (position, row)
                for position, row in enumerate(some, start=skip + start)
                if is_current(row, documents.get(str(row["doc_id"])))
            ]
            if len(kept) >= wanted:
                break
        return kept


def is_current(row: IndexRow, document: DocumentRow | None) -> bool:
    """Return whether an index row belongs to the version that is shown (`document`: None = unreadable)."""
    if document is None:
        return False
    # Blocks of a newer version count: those that it keeps get its number before it is published.
    return "block_id" not in row or int(row.get("version") or 0) >= document.version
