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
        rows = await self.readable(page.rows)
        for refill in range(1, _MAX_REFILLS + 1):
            if len(rows) >= request.top or len(page.rows) < request.top:
                break
            page = await self.candidates(
                request.model_copy(update={"skip": request.skip + refill * request.top})
            )
            rows += await self.readable(page.rows)
        return first.model_copy(update={"rows": tuple(rows[: request.top])})

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


def is_current(row: IndexRow, document: DocumentRow | None) -> bool:
    """Return whether an index row belongs to the version that is shown (`document`: None = unreadable)."""
    if document is None:
        return False
    # Blocks of a newer version count: those that it keeps get its number before it is published.
    return "block_id" not in row or int(row.get("version") or 0) >= document.version
