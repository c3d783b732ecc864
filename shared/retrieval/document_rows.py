"""Document rows in Table Storage, which decide who may read a document and which version is current.

Access lists in the search index are copies. They narrow a search, may lag, and open nothing. A row is read
once per document and HTTP request, tool call or activity, and is never kept longer, so a change of access
holds for every read that starts after the row was written. A document without a row is hidden.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from shared.access.models import UserContext
from shared.access.security_filter import is_in_reach, may_read
from shared.platform.concurrency import run_together

_AT_ONCE = 32  # number of concurrent reads; more would only queue in the client (not measured on Azure)


class DocumentRow(NamedTuple):
    """The columns of a document's table row that determine who may read it and how it is shown.

    Attributes:
        access_lists: all must admit the reader: during ingestion of a new version, the list of the visible
            version and the list of its replacement.
        version: blocks of older versions are stale.
        content_hash: the same for identical files; "" = never identical to another file.
        upload_date: ISO 8601 in UTC, which sorts.
        corrections: users' corrections that the documents index lacks.
        thread_id: the only thread in which the document may be read; "" = no such limit.
        folder: the uploader's folder; None = not uploaded through the API.
        unreadable_pages, has_text, warnings: what a search cannot find in it, and warnings for users.
    """

    access_lists: tuple[tuple[str, ...], ...]
    version: int = 0
    content_hash: str = ""
    upload_date: str = ""
    corrections: Mapping[str, object] = MappingProxyType({})
    thread_id: str = ""
    folder: str | None = None
    unreadable_pages: int = 0
    has_text: bool = True
    warnings: tuple[str, ...] = ()

    def admits(self, user: UserContext) -> bool:
        """Return whether the user may read the document. All of its access lists must admit the user."""
        if not is_in_reach(user, self.thread_id):
            return False
        return bool(self.access_lists) and all(may_read(user, acl) for acl in self.access_lists)


class DocumentRows(Protocol):
    """Source of document rows."""

    async def row(self, doc_id: str) -> DocumentRow | None:
        """Return the document's row, or None if it was deleted or has no searchable version."""


class RowsReadOnce(DocumentRows):
    """Cache of document rows for one HTTP request, tool call or activity.

    Never keep an instance longer: it would miss changed permissions.
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
    """Return the rows of those documents that the user may read, keyed by document id.

    Raises:
        DependencyError: the table storage failed.
    """
    ids = list(dict.fromkeys(doc_ids))
    results = await run_together(*(rows.row(doc_id) for doc_id in ids), at_once=_AT_ONCE)
    return {
        doc_id: row for doc_id, row in zip(ids, results, strict=True) if row is not None and row.admits(user)
    }
