"""Lookup of the tables that one user may read: by id, by document, or by search.

Tables inherit the permissions of their document, and views the permissions of their database. Missing and
forbidden tables cause the same error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shared.access.models import UserContext
from shared.documents.rights import may_see
from shared.documents.services import DocumentServices
from shared.platform.concurrency import run_together
from shared.platform.database_sources import DatabaseSource, is_database_id
from shared.platform.errors import DocumentNotFoundError, GroundworkError
from shared.platform.language_models.models import CallLimits, Embedder
from shared.platform.telemetry import get_logger
from shared.retrieval.block_requests import card_requests
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.fusion import fuse_ranks
from shared.retrieval.secured_index import SecuredIndex
from shared.tables.databases import Databases
from shared.tables.models import Table, parts_of, sql_name, table_id, with_names
from shared.tables.queries import QueryTable
from shared.tables.table_files import get_catalog

FILE_TYPES = ("csv", "tsv", "xlsx", "xlsm")


class TableServices(DocumentServices, Protocol):
    """Services required by table lookups."""

    databases: Databases


@dataclass(frozen=True)
class ReadableTable:
    """A table that the user may read, in the current version of its document, or a view of a database.

    For a database view, `doc_id` and `filename` name the database.

    Attributes:
        size_bytes: size of the SQLite file with all tables of the document.
        folder: folder of the document version, which contains that file.
        version: number of the document version; 0 for a view.
    """

    doc_id: str
    filename: str
    content_hash: str
    table: Table
    size_bytes: int = 0
    folder: str = ""
    version: int = 0

    @property
    def table_id(self) -> str:
        """The id of the table, as used in tool calls."""
        return table_id(self.doc_id, self.table.number)

    @property
    def name(self) -> str:
        """The SQL name of the table."""
        return sql_name(self.doc_id, self.table)

    @property
    def place(self) -> tuple[str, int | None]:
        """The key of the table in search results: document id with the sheet's page number, or database id
        with the view's number.
        """
        is_view = is_database_id(self.doc_id)
        return self.doc_id, self.table.number if is_view else self.table.page_number

    @property
    def query_table(self) -> QueryTable:
        """The table as a query job describes it."""
        return QueryTable(
            name=self.name,
            stored_name=self.table.stored_name,
            title=self.table.title,
            columns=tuple(column.name for column in self.table.columns),
            kinds=tuple(column.kind for column in self.table.columns),
            hidden=self.table.hidden_columns,
        )


def tables_in(sql: str, tables: Sequence[ReadableTable]) -> list[ReadableTable]:
    """Return the tables whose names occur in a query. If there are none, return all tables."""
    words = set(re.findall(r"\w+", sql.casefold()))
    return [table for table in tables if table.name in words] or list(tables)


class TableLookup:
    """Lookup of tables and views on behalf of one user.

    `blocks` and `documents` are indexes filtered by the user's permissions. `databases` contains only
    databases that the user may read, by `doc_id`.
    """

    def __init__(
        self,
        blocks: SecuredIndex,
        documents: SecuredIndex,
        user: UserContext,
        services: TableServices,
        databases: Mapping[str, DatabaseSource],
    ) -> None:
        self._blocks = blocks
        self._databases = databases
        self._documents = DocumentSearch(documents)
        self._user = user
        self._services = services

    async def of_documents(self, doc_ids: Sequence[str]) -> list[ReadableTable]:
        """Return the tables of the given documents and databases, in order. Ids that the user may not read
        are skipped.
        """
        ids = list(dict.fromkeys(doc_ids))
        records = await self._documents.get_many([one for one in ids if one not in self._databases])
        each = await run_together(
            *(
                self._of_database(one) if one in self._databases else self._of_document(one)
                for one in ids
                if one in self._databases or one in records
            )
        )
        return [table for tables in each for table in tables]

    async def get_many(self, table_ids: Sequence[str]) -> list[ReadableTable]:
        """Return the tables with these ids, in order.

        Raises:
            DocumentNotFoundError: a table doesn't exist, or the user may not read it.
        """
        places = {one: parts_of(one) for one in table_ids}
        tables = await self.of_documents([place[0] for place in places.values() if place])
        by_id = {table.table_id: table for table in tables}
        for one in places:
            if one not in by_id:
                raise DocumentNotFoundError(f"There is no table {one[:120]!r}.", "List the tables.")
        return [by_id[one] for one in places]

    async def newest(self) -> list[ReadableTable]:
        """Return all database views, followed by the tables of the newest data files."""
        records = await self._documents.list_documents({"file_type": FILE_TYPES}, limit=100)
        files = await self.of_documents([record.doc_id for record in records])
        views: list[ReadableTable] = []
        for doc_id, source in self._databases.items():
            try:
                views += await self._of_database(doc_id)
            except GroundworkError as failed:
                get_logger().warning("table.database_failed", doc_id=source.doc_id, error_type=failed.code)
        return [*views, *files]

    async def search(self, query: str, embedder: Embedder, limits: CallLimits) -> list[ReadableTable]:
        """Return the tables whose cards match a question best, in order."""
        (vector,) = await embedder.embed([query], limits)
        pages = await run_together(*(self._blocks.search(one) for one in card_requests(query, vector)))
        rows = {str(row["block_id"]): row for page in pages for row in page.rows}
        views = await self._services.databases.rank_views(self._databases, vector, embedder, limits)
        by_rank = {table_id(*view): view for view in views}
        ranked = fuse_ranks([*([str(row["block_id"]) for row in page.rows] for page in pages), list(by_rank)])
        places = [
            by_rank[one] if one in by_rank else (str(rows[one]["doc_id"]), rows[one].get("page_number"))
            for one, _ in ranked
        ]
        order = {place: position for position, place in reversed(list(enumerate(places)))}
        tables = await self.of_documents([doc_id for doc_id, _ in places])
        last = len(order)
        return sorted(tables, key=lambda one: order.get(one.place, last))

    async def _of_document(self, doc_id: str) -> list[ReadableTable]:
        state = await self._services.documents.get(doc_id)
        if state is None or not may_see(self._user, state):
            return []
        catalog = await get_catalog(self._services.blobs, state.folder)
        filename = Path(state.filename).name
        if catalog is None:
            return []
        return [
            ReadableTable(
                doc_id,
                filename,
                state.content_hash,
                table,
                size_bytes=catalog.size_bytes,
                folder=state.folder,
                version=state.version,
            )
            for table in with_names(doc_id, catalog.tables)
        ]

    async def _of_database(self, doc_id: str) -> list[ReadableTable]:
        """Return the views of a database.

        Raises:
            DependencyError: the database can't be reached, or refuses.
        """
        databases, name = self._services.databases, self._databases[doc_id].name
        tables = await databases.tables(doc_id)
        return [ReadableTable(doc_id, name, databases.content_hash(doc_id, table), table) for table in tables]
