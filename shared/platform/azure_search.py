"""Adapter of `SearchIndex` to the Azure AI Search SDK. It adds no filter to a query."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from azure.search.documents.aio import SearchClient
from azure.search.documents.models import IndexAction, IndexDocumentsBatch, IndexingResult, VectorizedQuery
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

MAX_BATCH_ROWS = 1000  # the search service accepts at most this number of rows per request
MAX_BATCH_BYTES = (
    1_000_000  # the service accepts requests of 16 MB, but encoding one would block the event loop
)
_ROW_ENVELOPE_BYTES = 40  # size of the "@search.action" field with its value and a comma
_FIELD_ENVELOPE_BYTES = 6  # size of the quotation marks, colon and comma of a field
_NUMBER_BYTES = 26  # size of the longest number, such as -1.2345678901234567e-05, with a comma and a space

SCORE = "@search.score"
SCORE_OF_RANKER = "@search.reranker_score"


class AzureSearchIndex(SearchIndex):
    """Search index on Azure AI Search."""

    def __init__(
        self,
        connection: Connection[SearchClient],
        index_name: str,
        *,
        timeout_s: float,
        key_field: str,
        absent_ok: bool = False,
    ) -> None:
        """Store the connection, which creates its client on the first call. With `absent_ok`, a missing index
        counts as empty.

        Args:
            timeout_s: limit per query or batch, including retries.
            absent_ok: ignore merges into missing rows, e.g. while a migration is still copying them.
        """
        self._absent_ok = absent_ok
        self._connection = connection
        self._index_name = index_name
        self._timeout_s = timeout_s
        self._key_field = key_field

    async def search(self, request: SearchRequest) -> SearchPage:
        """Run one query and return its rows, reading further result pages as needed."""
        started = time.perf_counter()
        with self._span("search", {"filter_applied": request.filter is not None}) as span:
            page = await ask(
                self._connection,
                lambda client: _query(client, request),
                self._read_status,
                timeout_s=self._timeout_s,
            )
            set_attributes(span, {"result_count": len(page.rows)})
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

    def _span(self, action: str, details: Attributes) -> AbstractContextManager[Span]:
        """Return a tracing span for one operation. It omits the query text, which is user input."""
        attributes: Attributes = {
            "db.system.name": "azure.ai.search",
            "db.operation.name": action,
            "db.collection.name": self._index_name,
            "azure_operation": action,
            "index_name": self._index_name,
            **details,
        }
        return span(f"{action} {self._index_name}", attributes, "client")

    def _check(self, results: Sequence[IndexingResult]) -> None:
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
        raise DependencyError(detail, "Try again. It is safe to write a row twice.")

    def _read_status(self, status: int, message: str, *, writes: bool = False) -> GroundworkError | None:
        if status == 400 and writes:
            refusal = f"The index {self._index_name} rejected the rows: {message}"
            return ConfigurationError(refusal, _SCHEMA_HINT)
        if status == 400:
            return InvalidQueryError(f"The search service rejected the query: {message}")
        if status != 404:
            return None
        return IndexNotFoundError(
            f"The search index {self._index_name} does not exist.",
            "Create it by ingesting a document, or check AZURE_SEARCH_ENDPOINT and the index name.",
        )


_SCHEMA_HINT = (
    "The index was created with a different schema or a different value of EMBEDDING_DIMENSIONS. "
    "Rebuild it under a new name."
)


def batches(rows: Sequence[IndexRow]) -> Iterator[list[IndexRow]]:
    """Split rows into batches that fit the limits per request. An oversized row gets its own batch."""
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
    """Return an upper bound for a field's size in bytes as JSON. Vectors are estimated, because encoding them
    would block the event loop.
    """
    is_vector = isinstance(value, list) and bool(value) and isinstance(value[0], float)
    size = len(value) * _NUMBER_BYTES if is_vector else len(json.dumps(value))
    return len(name) + size + _FIELD_ENVELOPE_BYTES


async def _query(client: SearchClient, request: SearchRequest) -> SearchPage:
    # Iterate over pages: in the SDK, iterating over rows and get_count() would each send the query again.
    results = await client.search(**_query_arguments(request), headers=outgoing())
    pages: Any = results.by_page()
    rows: list[IndexRow] = []
    async for page in pages:
        rows.extend([_row(row) async for row in page])
    # Read these last: both calls reset the page iterator. Every page repeats the count and facets.
    count = await pages.get_count() if request.count else None
    facets = await pages.get_facets() if request.facets else None
    values = {
        field: tuple(FacetValue(value=str(facet["value"]), count=facet["count"]) for facet in counted)
        for field, counted in (facets or {}).items()
    }
    return SearchPage(rows=tuple(rows), count=count, facets=values)


async def _send(client: SearchClient, action: str, rows: Sequence[IndexRow]) -> list[IndexingResult]:
    actions = [IndexAction({"@search.action": action}) for _ in rows]
    for sdk_action, row in zip(actions, rows, strict=True):
        # `update` sets the fields as items, because the constructor would convert their values.
        sdk_action.update(row)
    batch = IndexDocumentsBatch(actions=actions)
    return await client.index_documents(batch, headers=outgoing())


def _query_arguments(request: SearchRequest) -> dict[str, Any]:
    vectors = [
        VectorizedQuery(vector=[], k_nearest_neighbors=query.k, fields=query.field)
        for query in request.vectors
    ]
    for vector, query in zip(vectors, request.vectors, strict=True):
        # The vector is set as an item, because the constructor would try to parse each number as a date (4.5
        # ms per vector).
        vector["vector"] = list(query.vector)
    plain_type = request.query_type if request.text else None
    return {
        "search_text": request.text,
        "search_fields": list(request.search_fields) or None,
        "search_mode": request.search_mode if request.text else None,
        "query_type": "semantic" if request.semantic_configuration else plain_type,
        "semantic_configuration_name": request.semantic_configuration,
        "semantic_query": request.semantic_query,
        "vector_queries": vectors or None,
        # The mode is explicit, because older indexes select the nearest neighbours before they filter.
        "vector_filter_mode": "preFilter" if vectors else None,
        "filter": request.filter,
        "select": list(request.select) or None,
        "order_by": list(request.order_by) or None,
        "top": request.top,
        "skip": request.skip or None,
        "facets": list(request.facets) or None,
        "include_total_count": request.count or None,
    }


def _row(row: IndexRow) -> IndexRow:
    fields = {name: value for name, value in row.items() if name == SCORE or not name.startswith("@search.")}
    if row.get(SCORE_OF_RANKER) is not None:
        fields[SCORE_OF_RANKER] = row[SCORE_OF_RANKER]
    return fields
