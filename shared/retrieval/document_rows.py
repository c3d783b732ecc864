"""Who may read a document, and which version of it is current: its row in Table Storage decides.

Access lists in the search index are copies. They narrow a search, may lag, and open nothing. A row is read
once per document and HTTP request, tool call or activity, and is never kept longer, so a change of access
holds for every read that starts after the row was written. A document without a row is hidden.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from shared.access.models import UserContext
from shared.access.security_filter import may_read
from shared.platform.concurrency import run_together

_AT_ONCE = 32  # row reads in flight; more only queue up in the client (unmeasured against Azure)


class DocumentRow(NamedTuple):
    """The part of a document's row that readers need.

    Attributes:
        access_lists: each of them must admit the reader: while a new version is ingested, the list of the
            version that is shown and the list of the one that replaces it.
        version: blocks of older versions are stale.
        upload_date: ISO 8601 in UTC, which sorts.
    """

    access_lists: tuple[tuple[str, ...], ...]
    version: int = 0
    content_hash: str = ""
    upload_date: str = ""

    def admits(self, user: UserContext) -> bool:
        """Return whether the user may read the document."""
        return bool(self.access_lists) and all(may_read(user, acl) for acl in self.access_lists)


class DocumentRows(Protocol):
    """Reads rows of documents from where they are stored."""

    async def row(self, doc_id: str) -> DocumentRow | None:
        """Return the row of a document that has a searchable version; None if it has none or was deleted."""


class RowsReadOnce(DocumentRows):
    """Rows for one HTTP request, tool call or activity, each read once.

    Never keep an instance longer: it would miss changes of access.
    """

    def __init__(self, rows: DocumentRows) -> None:
        self._rows = rows
        self._known: dict[str, DocumentRow | None] = {}

    async def row(self, doc_id: str) -> DocumentRow | None:
        if doc_id not in self._known:
            self._known[doc_id] = await self._rows.row(doc_id)
        return self._known[doc_id]


async def readable_rows(
    doc_ids: Iterable[str], user: UserContext, rows: DocumentRows
) -> dict[str, DocumentRow]:
    """Return the rows of those documents that the user may read, by document.

    Raises:
        DependencyError: the table storage failed.
    """
    ids = list(dict.fromkeys(doc_ids))
    found = await run_together(*(rows.row(doc_id) for doc_id in ids), at_once=_AT_ONCE)
    return {
        doc_id: row for doc_id, row in zip(ids, found, strict=True) if row is not None and row.admits(user)
    }
