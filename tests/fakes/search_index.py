"""A search index in memory: exact about keys, filters, order and paging, but simple about relevance."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from shared.platform.errors import DependencyError
from shared.platform.search import (
    FacetValue,
    IndexRow,
    SearchAdmin,
    SearchIndex,
    SearchPage,
    SearchRequest,
    VectorQuery,
)
from tests.fakes.odata_filter import compile_filter

RRF_K = 60  # same value as in the service
_WORD = re.compile(r"[^\W-]+(?:\.[^\W\d-]+)*")  # by Unicode rules, "manual.pdf" and "a_b" are single words


class InMemorySearchIndex(SearchIndex):
    """An index of rows by key. Text matches by whole words, vectors by cosine; both are fused by rank."""

    def __init__(self, key_field: str) -> None:
        self.rows: dict[str, IndexRow] = {}
        self.requests: list[SearchRequest] = []
        self._key_field = key_field

    async def search(self, request: SearchRequest) -> SearchPage:
        self.requests.append(request)
        is_allowed = compile_filter(request.filter)
        allowed = [row for row in self.rows.values() if is_allowed(row)]
        rows = _ordered(_scored(allowed, request), request.order_by)
        chosen = rows[request.skip : request.skip + request.top]
        return SearchPage(
            rows=tuple(_projected(row, score, request.select) for row, score in chosen),
            count=len(rows) if request.count else None,
            facets=dict(_facet([row for row, _ in rows], expression) for expression in request.facets),
        )

    async def upload(self, rows: Sequence[IndexRow]) -> None:
        self.rows.update({row[self._key_field]: dict(row) for row in rows})

    async def merge(self, rows: Sequence[IndexRow]) -> None:
        missing = [row for row in rows if row[self._key_field] not in self.rows]
        for row in rows:
            if row not in missing:
                self.rows[row[self._key_field]].update(row)
        if missing:
            raise DependencyError(f"{len(missing)} of {len(rows)} rows were not written: Document not found.")

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.rows.pop(key, None)


class InMemorySearchAdmin(SearchAdmin):
    """A fake administration of indexes, which stores definitions by name."""

    def __init__(self) -> None:
        self.definitions: dict[str, IndexRow] = {}

    async def ensure_index(self, definition: IndexRow) -> bool:
        changed = self.definitions.get(definition["name"]) != definition
        self.definitions[definition["name"]] = definition
        return changed


def _scored(rows: list[IndexRow], request: SearchRequest) -> list[tuple[IndexRow, float]]:
    rankings = [_nearest(rows, query) for query in request.vectors]
    if request.text and request.text != "*":
        rankings.append(_matching(rows, request))
    if not rankings:
        return [(row, 1.0) for row in rows]
    if len(rankings) == 1:
        return rankings[0]
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, (row, _) in enumerate(ranking):
            scores[id(row)] = scores.get(id(row), 0.0) + 1 / (RRF_K + place)
    fused = [(row, scores[id(row)]) for row in rows if id(row) in scores]
    return sorted(fused, key=lambda pair: -pair[1])


def _matching(rows: list[IndexRow], request: SearchRequest) -> list[tuple[IndexRow, float]]:
    query_words = set((request.text or "").lower().split())
    matches = [(row, _occurring(query_words, _words(row, request.search_fields))) for row in rows]
    enough = len(query_words) if request.search_mode == "all" else 1
    scored = [(row, float(len(matched))) for row, matched in matches if len(matched) >= enough]
    return sorted(scored, key=lambda pair: -pair[1])


def _occurring(query_words: set[str], words: set[str]) -> set[str]:
    """Return the query words that occur in a row. A word such as `manu*` matches all words with this
    prefix.
    """
    return {
        one
        for one in query_words
        if one in words or (one.endswith("*") and any(word.startswith(one[:-1]) for word in words))
    }


def _words(row: IndexRow, fields: Sequence[str]) -> set[str]:
    searched = {name: row.get(name) for name in fields} if fields else row
    texts = [value for value in searched.values() if isinstance(value, str)]
    return {word for text in texts for word in _WORD.findall(text.lower())}


def _nearest(rows: list[IndexRow], query: VectorQuery) -> list[tuple[IndexRow, float]]:
    near = [(row, _score(row[query.field], query.vector)) for row in rows if row.get(query.field)]
    return sorted(near, key=lambda pair: -pair[1])[: query.k]


def _score(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the score that the service gives a vector: 1 / (1 + distance), where distance = 1 - cosine."""
    lengths = math.hypot(*left) * math.hypot(*right)
    cosine = sum(a * b for a, b in zip(left, right, strict=True)) / lengths if lengths else 0.0
    return 1 / (2 - cosine)


def _ordered(rows: list[tuple[IndexRow, float]], order_by: Sequence[str]) -> list[tuple[IndexRow, float]]:
    for clause in reversed(order_by):
        field, _, direction = clause.partition(" ")
        rows = sorted(rows, key=_sort_key(field), reverse=direction == "desc")
    return rows


def _sort_key(field: str) -> Any:
    return lambda pair: (pair[0].get(field) is not None, pair[0].get(field))


def _projected(row: IndexRow, score: float, select: Sequence[str]) -> IndexRow:
    fields = {name: row.get(name) for name in select} if select else dict(row)
    return {**fields, "@search.score": score}


def _facet(rows: list[IndexRow], expression: str) -> tuple[str, tuple[FacetValue, ...]]:
    field, _, count = expression.partition(",count:")
    values: Counter[str] = Counter()
    for row in rows:
        value = row.get(field)
        several = value if isinstance(value, list) else [value]
        values.update(str(one) for one in several if one is not None)
    commonest = values.most_common(int(count or 10))
    return field, tuple(FacetValue(value=value, count=times) for value, times in commonest)
