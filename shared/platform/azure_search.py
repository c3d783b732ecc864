"""`SearchIndex` over the aio client of azure-search-documents. Trims nothing; sends what it is given."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Span

from shared.platform.calls import ask
from shared.platform.connections import Connection
from shared.platform.errors import (
    ConfigurationError,
    DependencyError,
    GroundworkError,
    IndexNotFoundError,
    InvalidQueryError,
)
from shared.platform.search import FacetValue, IndexRow, SearchIndex, SearchPage, SearchRequest
from shared.platform.telemetry import get_logger
from shared.platform.tracing import Attributes, outgoing, set_attributes, span

if TYPE_CHECKING:
    from azure.search.documents.aio import SearchClient
    from azure.search.documents.models import IndexingResult

MAX_BATCH_ROWS = 1000  # the service's limit
MAX_BATCH_BYTES = 1_000_000  # the service takes 16 MB, but encoding those holds up the event loop
_ROW_ENVELOPE_BYTES = 40  # "@search.action": "mergeOrUpload", and a comma
_FIELD_ENVELOPE_BYTES = 6  # quotation marks, colon, comma
_NUMBER_BYTES = 26  # -1.2345678901234567e-05, comma, blank

SCORE = "@search.score"
SCORE_OF_RANKER = "@search.reranker_score"


class AzureSearchIndex(SearchIndex):
    """One index."""

    def __init__(
        self,
        connection: "Connection[SearchClient]",
        index_name: str,
        *,
        timeout_s: float,
        key_field: str,
        absent_ok: bool = False,
    ) -> None:
        """Nothing is opened yet.

        Args:
            timeout_s: limits one query or one batch, all its tries together.
            absent_ok: a merge into a row that does not exist is no error: its row is still to be copied here.
        """
        self._absent_ok = absent_ok
        self._connection = connection
        self._index_name = index_name
        self._timeout_s = timeout_s
        self._key_field = key_field

    async def search(self, request: SearchRequest) -> SearchPage:
        """One query, paged through until `request.top` rows are there or the service has no more."""
        started = time.perf_counter()
        with self._span("search", {"filter_applied": request.filter is not None}) as asked:
            page = await ask(
                self._connection,
                lambda client: _query(client, request),
                self._read_status,
                timeout_s=self._timeout_s,
            )
            set_attributes(asked, {"result_count": len(page.rows)})
        get_logger().info(
            "search.answered",
            azure_operation="search",
            index_name=self._index_name,
            search_query=request.text,
            filter_applied=request.filter is not None,
            result_count=len(page.rows),
            search_latency_ms=round((time.perf_counter() - started) * 1000, 1),
        )
        return page

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        await self._write("upload", rows)

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        await self._write("merge", rows)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._write("delete", [{self._key_field: key} for key in keys])

    async def _write(self, action: str, rows: Sequence[IndexRow]) -> None:
        for batch in batches(rows):
            started = time.perf_counter()
            with self._span(action, {"result_count": len(batch)}):
                results = await ask(
                    self._connection,
                    partial(_send, action=action, rows=batch),
                    partial(self._read_status, writes=True),
                    timeout_s=self._timeout_s,
                )
                self._check(results)
            get_logger().info(
                "index.written",
                azure_operation=action,
                index_name=self._index_name,
                result_count=len(batch),
                search_latency_ms=round((time.perf_counter() - started) * 1000, 1),
            )

    def _span(self, action: str, known: Attributes) -> AbstractContextManager[Span]:
        """Without the query: it is what somebody asked."""
        attributes: Attributes = {
            "db.system.name": "azure.ai.search",
            "db.operation.name": action,
            "db.collection.name": self._index_name,
            "azure_operation": action,
            "index_name": self._index_name,
            **known,
        }
        return span(f"{action} {self._index_name}", attributes, "client")

    def _check(self, results: "Sequence[IndexingResult]") -> None:
        refused = [
            result
            for result in results
            if not result.succeeded and not (self._absent_ok and result.status_code == 404)
        ]
        if not refused:
            return
        first = refused[0].error_message or f"status {refused[0].status_code}"
        detail = (
            f"{len(refused)} of {len(results)} rows were not written to the index {self._index_name}: {first}"
        )
        if any(result.status_code == 400 for result in refused):
            raise ConfigurationError(detail, _SCHEMA_HINT)
        raise DependencyError(detail, "Try again; writing a row twice does no harm.")

    def _read_status(self, status: int, message: str, *, writes: bool = False) -> GroundworkError | None:
        if status == 400 and writes:
            refusal = f"The index {self._index_name} refused the rows: {message}"
            return ConfigurationError(refusal, _SCHEMA_HINT)
        if status == 400:
            return InvalidQueryError(f"The search service refused the query: {message}")
        if status != 404:
            return None
        return IndexNotFoundError(
            f"The search index {self._index_name} does not exist.",
            "Create it by ingesting a document, or check AZURE_SEARCH_ENDPOINT and the name of the index.",
        )


_SCHEMA_HINT = (
    "The index has another schema than this version writes, or other EMBEDDING_DIMENSIONS: "
    "rebuild it under a new name."
)


def batches(rows: Sequence[IndexRow]) -> Iterator[list[IndexRow]]:
    """Split rows into batches that the service takes. A row that is too large by itself gets its own."""
    batch: list[IndexRow] = []
    batch_bytes = 0
    for row in rows:
        row_bytes = sum(_bytes_of(name, value) for name, value in row.items()) + _ROW_ENVELOPE_BYTES
        if batch and (len(batch) == MAX_BATCH_ROWS or batch_bytes + row_bytes > MAX_BATCH_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(row)
        batch_bytes += row_bytes
    if batch:
        yield batch


def _bytes_of(name: str, value: Any) -> int:
    """At least as many as it has in JSON; to encode a vector for that would hold up the event loop."""
    is_vector = isinstance(value, list) and bool(value) and isinstance(value[0], float)
    size = len(value) * _NUMBER_BYTES if is_vector else len(json.dumps(value))
    return len(name) + size + _FIELD_ENVELOPE_BYTES


async def _query(client: "SearchClient", request: SearchRequest) -> SearchPage:
    # The SDK's get_count() and iteration each send the whole query; one page iterator sends it once.
    results = await client.search(**_query_arguments(request), headers=outgoing())
    pages: Any = results.by_page()
    rows: list[IndexRow] = []
    async for page in pages:
        rows.extend([_row(row) async for row in page])
    # Asked last: both forget the way to the next page. Every page repeats count and facets.
    count = await pages.get_count() if request.count else None
    facets = await pages.get_facets() if request.facets else None
    values = {
        field: tuple(FacetValue(value=str(found["value"]), count=found["count"]) for found in counted)
        for field, counted in (facets or {}).items()
    }
    return SearchPage(rows=tuple(rows), count=count, facets=values)


async def _send(client: "SearchClient", action: str, rows: Sequence[IndexRow]) -> "list[IndexingResult]":
    from azure.search.documents.models import IndexAction, IndexDocumentsBatch

    actions = [IndexAction({"@search.action": action}) for _ in rows]
    for made, row in zip(actions, rows, strict=True):
        made.update(row)  # as below: rows are JSON, and nothing in them is to be converted
    batch = IndexDocumentsBatch(actions=actions)
    return await client.index_documents(batch, headers=outgoing())


def _query_arguments(request: SearchRequest) -> dict[str, Any]:
    from azure.search.documents.models import VectorizedQuery

    vectors = [
        VectorizedQuery(vector=[], k_nearest_neighbors=query.k, fields=query.field)
        for query in request.vectors
    ]
    for asked, query in zip(vectors, request.vectors, strict=True):
        # Set as an item: the constructor tries to make a date of each number, 4.5 ms for 1,536 of them.
        asked["vector"] = list(query.vector)
    plain_type = request.query_type if request.text else None
    return {
        "search_text": request.text,
        "search_fields": list(request.search_fields) or None,
        "search_mode": request.search_mode if request.text else None,
        "query_type": "semantic" if request.semantic_configuration else plain_type,
        "semantic_configuration_name": request.semantic_configuration,
        "semantic_query": request.semantic_query,
        "vector_queries": vectors or None,
        # Always said: an index from before this was the default trims after the nearest k were chosen.
        "vector_filter_mode": "preFilter" if vectors else None,
        "filter": request.filter,
        "select": list(request.select) or None,
        "order_by": list(request.order_by) or None,
        "top": request.top,
        "skip": request.skip or None,
        "facets": list(request.facets) or None,
        "include_total_count": request.count or None,
    }


def _row(found: IndexRow) -> IndexRow:
    kept = {name: value for name, value in found.items() if name == SCORE or not name.startswith("@search.")}
    if found.get(SCORE_OF_RANKER) is not None:
        kept[SCORE_OF_RANKER] = found[SCORE_OF_RANKER]
    return kept
