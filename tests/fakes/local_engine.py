"""The local search engine as an index in this process, without HTTP."""

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from local.search_server import requests as wire
from local.search_server.definition import IndexDefinition
from local.search_server.documents import parse_batch
from local.search_server.errors import RequestError
from local.search_server.http_io import parse
from local.search_server.index import Index, define
from local.search_server.schema import Schema
from local.search_server.search import run_search
from local.search_server.store import IndexStore
from shared.platform.errors import DependencyError, InvalidQueryError
from shared.platform.search import FacetValue, IndexRow, SearchIndex, SearchPage, SearchRequest


class LocalSearchIndex(SearchIndex):
    """An index of the local engine, whose files are deleted with it.

    Args:
        definition: a definition by `shared/retrieval/schema.py`, which rows must match.

    Attributes:
        requests: every query, oldest first.
    """

    def __init__(self, definition: IndexRow) -> None:
        self.requests: list[SearchRequest] = []
        folder = tempfile.mkdtemp(prefix="groundwork-index-", dir=_MEMORY if _MEMORY.is_dir() else None)
        self._index = _create(IndexDefinition.model_validate(definition), Path(folder))
        weakref.finalize(self, _close, self._index, folder)

    async def search(self, request: SearchRequest) -> SearchPage:
        self.requests.append(request)
        body: dict[str, JsonValue] | None = _body(request)
        rows: list[IndexRow] = []
        answer: dict[str, Any] = {}
        while body:
            answer = self._answer(body)
            rows += answer["value"]
            body = answer.get("@search.nextPageParameters")
        facets = {
            field: tuple(FacetValue(value=str(facet["value"]), count=facet["count"]) for facet in counted)
            for field, counted in answer.get("@search.facets", {}).items()
        }
        return SearchPage(rows=tuple(rows), count=answer.get("@odata.count"), facets=facets)

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        self._apply("upload", rows)

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        self._apply("merge", rows)

    async def delete(self, keys: Sequence[str]) -> None:
        self._apply("delete", [{self._index.schema.key.path: key} for key in keys])

    def _answer(self, body: dict[str, JsonValue]) -> dict[str, Any]:
        try:
            with self._index.view() as view:
                return run_search(view, parse(wire.SearchRequest, body), body)
        except RequestError as refused:
            raise InvalidQueryError(f"The search engine rejected the query: {refused}") from None

    def _apply(self, action: str, rows: Sequence[IndexRow]) -> None:
        if not rows:
            return
        batch: JsonValue = {"value": [{"@search.action": action, **row} for row in rows]}
        outcomes = self._index.apply(parse_batch(self._index.schema, batch))
        failed = [outcome.error for outcome in outcomes if outcome.error]
        if failed:
            raise DependencyError(f"{len(failed)} of {len(rows)} rows were not written: {failed[0]}")


_MEMORY = Path("/dev/shm")  # in memory, because commits to a disk are slow


def _create(definition: IndexDefinition, folder: Path) -> Index:
    schema = Schema(definition.with_defaults())
    store = IndexStore(folder / "index.sqlite")
    with store.writing() as connection:
        define(connection, schema, '"1"')
    return Index(schema, store, '"1"')


def _close(index: Index, folder: str) -> None:
    index.close()
    shutil.rmtree(folder, ignore_errors=True)


def _body(request: SearchRequest) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = {
        "search": request.text,
        "searchFields": ",".join(request.search_fields) or None,
        "searchMode": request.search_mode if request.text else None,
        "queryType": "semantic" if request.semantic_configuration else request.query_type,
        "semanticConfiguration": request.semantic_configuration,
        "semanticQuery": request.semantic_query,
        "vectorQueries": [
            {"kind": "vector", "vector": list(query.vector), "k": query.k, "fields": query.field}
            for query in request.vectors
        ]
        or None,
        "vectorFilterMode": "preFilter" if request.vectors else None,
        "filter": request.filter,
        "select": ",".join(request.select) or None,
        "orderby": ",".join(request.order_by) or None,
        "top": request.top,
        "skip": request.skip or None,
        "facets": list(request.facets) or None,
        "count": request.count or None,
    }
    return {name: value for name, value in body.items() if value is not None}
