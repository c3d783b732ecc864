"""The configured databases with their views, and the interface of a database engine.

Cards describe the views, like tables of files. There are only a few views, so the vectors of their cards are
kept in memory, and no search index contains anything from a database. Permissions come from the setting;
`TableLookup` checks them before it calls this module.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shared.platform.database_sources import DatabaseSource
from shared.platform.errors import GroundworkError
from shared.platform.hashing import digest
from shared.platform.language_models.models import CallLimits, Embedder
from shared.platform.telemetry import get_logger
from shared.platform.tokens import token_counter
from shared.tables.cards import card
from shared.tables.models import Dialect, Table
from shared.tables.queries import Cell

_KEPT_S = 300.0
# Seconds within which an unreachable database is not contacted again.
_FAILED_S = 20.0
_CARD_TOKENS = 400


class DatabaseEngine(Protocol):
    """Access to one configured database. Each kind of engine needs rules in the SQL guard for its dialect."""

    dialect: Dialect

    async def tables(self) -> list[Table]:
        """Return the configured views that exist in the database."""

    async def rows(self, sql: str, column_count: int) -> tuple[tuple[tuple[Cell, ...], ...], bool]:
        """Return the first rows of a query that the guard has checked, and whether there are more."""


@dataclass
class _Catalog:
    """A snapshot of a database's views, or the error of the last attempt to read them. Card vectors are
    computed on first search.
    """

    tables: Sequence[Table]
    read_at: float
    failed: GroundworkError | None = None
    vectors: list[list[float]] = field(default_factory=list)


class Databases:
    """The configured databases by `doc_id`. No connection is opened before the first question."""

    def __init__(
        self,
        sources: Iterable[DatabaseSource] = (),
        engine_of: Callable[[DatabaseSource], DatabaseEngine] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        sources_by_id = {source.doc_id: source for source in sources}
        self._engines = (
            {doc_id: engine_of(source) for doc_id, source in sources_by_id.items()} if engine_of else {}
        )
        self._sources = sources_by_id
        self._catalogs: dict[str, _Catalog] = {}
        self._reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._clock = clock

    def engine(self, doc_id: str) -> DatabaseEngine:
        """Return the engine of a database."""
        return self._engines[doc_id]

    def schema(self, doc_id: str, table: Table) -> str:
        """Return the database schema that contains a view."""
        return self._sources[doc_id].views[table.number - 1].partition(".")[0]

    async def tables(self, doc_id: str) -> Sequence[Table]:
        """Return the views of a database, cached for up to five minutes.

        Raises:
            DependencyError: the database can't be reached, or refuses the connection.
        """
        return (await self._catalog(doc_id)).tables

    async def rank_views(
        self, doc_ids: Iterable[str], vector: Sequence[float], embedder: Embedder, limits: CallLimits
    ) -> list[tuple[str, int]]:
        """Rank views by similarity to the question's vector. Return pairs of database id and table number,
        best first.

        Unreachable databases are skipped.
        """
        scores: dict[tuple[str, int], float] = {}
        for doc_id in doc_ids:
            try:
                catalog = await self._catalog(doc_id)
                if catalog.tables and not catalog.vectors:
                    count_tokens = token_counter(None)
                    cards = [card(table, _CARD_TOKENS, count_tokens) for table in catalog.tables]
                    catalog.vectors = [list(one) for one in await embedder.embed(cards, limits)]
            except GroundworkError as failed:
                get_logger().warning("table.database_failed", doc_id=doc_id, error_type=failed.code)
                continue
            for table, table_vector in zip(catalog.tables, catalog.vectors, strict=True):
                scores[doc_id, table.number] = _cosine(table_vector, vector)
        return sorted(scores, key=lambda place: -scores[place])

    def content_hash(self, doc_id: str, table: Table) -> str:
        """Return a hash of a view's name and columns. It replaces a content hash, because the rows of a view
        may change at any time.
        """
        source = self._sources[doc_id]
        columns = (f"{column.name} {column.kind}" for column in table.columns)
        return digest(source.host, source.database, source.views[table.number - 1], *columns)

    async def _catalog(self, doc_id: str) -> _Catalog:
        async with self._reading[doc_id]:  # concurrent callers wait for one connection
            catalog = self._catalogs.get(doc_id)
            kept_s = _FAILED_S if catalog and catalog.failed else _KEPT_S
            if catalog is None or self._clock() - catalog.read_at > kept_s:
                try:
                    catalog = _Catalog(await self.engine(doc_id).tables(), self._clock())
                except GroundworkError as failed:
                    catalog = _Catalog((), self._clock(), failed)
                self._catalogs[doc_id] = catalog
        if catalog.failed:
            raise catalog.failed
        return catalog


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    size = math.hypot(*one) * math.hypot(*other)
    return sum(first * second for first, second in zip(one, other, strict=True)) / size if size else 0.0
