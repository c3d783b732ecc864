"""Ranks a search: selects, scores and orders documents. Returns slots; the caller reads the documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from tantivy import Query

from local.search_server import edm
from local.search_server.edm import SqlValue, Vector
from local.search_server.errors import RequestError
from local.search_server.index import Selection, View
from local.search_server.requests import SearchRequest, VectorQuery
from local.search_server.schema import Field, Schema
from local.search_server.text_index import SMALL_SELECTION, Slots, best_slots, matching_slots, selected_only
from local.search_server.text_query import TextQuestion

RRF_CONSTANT: Final = 60
# Minimum number of text hits used for hybrid fusion. The service uses 1000, but a hit below this rank would
# add less than 1/110 to a score.
MIN_TEXT_RECALL: Final = 50

Scored = list[tuple[int, float]]


@dataclass(frozen=True)
class Ranking:
    """A ranked result. `hits` are ordered best first and reach at least the requested depth. `matching`
    contains all matches if the request needs them.
    """

    hits: Scored
    matching: Slots | None


@dataclass(frozen=True)
class OrderClause:
    """A sort key of `$orderby`. `field` is None for the score."""

    field: Field | None
    descending: bool


@dataclass(frozen=True)
class _Asked:
    """A search request whose texts, filter and sort order have been parsed for one index. `query` is None if
    all documents match.
    """

    request: SearchRequest
    query: Query | None
    selection: Selection
    order: list[OrderClause]
    depth: int


def rank(view: View, request: SearchRequest, question: TextQuestion, depth: int) -> Ranking:
    """Return the best `depth` hits of a search request.

    Raises:
        RequestError: 400, if the request names a field that doesn't exist or is unsuitable.
    """
    resolved = _Asked(
        request,
        query=None if question.node is None else view.compile(question),
        selection=view.select(request.filter),
        order=parse_order(view.schema, request.orderby),
        depth=depth,
    )
    return _rank_vectors(view, resolved) if request.vector_queries else _rank_texts(view, resolved)


def best_texts(view: View, query: Query, selection: Selection, limit: int) -> Scored:
    """Return the best text hits among the selected documents. The result is exact for selections of any
    size.
    """
    count = len(selection.slots)
    if count == 0:
        return []
    if count == len(view.snapshot.alive.slots):
        return best_slots(view.searcher, query, None, limit)
    if count <= SMALL_SELECTION:
        return best_slots(
            view.searcher, selected_only(view.snapshot.layout, query, selection.slots.tolist()), None, limit
        )
    return best_slots(view.searcher, query, selection.mask, limit)


def fuse(rankings: Sequence[tuple[float, Scored]]) -> Scored:
    """Merge weighted rankings by reciprocal rank fusion. Return the hits with their fused scores, best first.

    The score is the sum of weight / (60 + rank), with ranks from 0, which matches scores observed in the
    service. Ties are ordered by slot, so the result is deterministic.
    """
    scores: dict[int, float] = {}
    for weight, ranking in rankings:
        for position, (slot, _) in enumerate(ranking):
            scores[slot] = scores.get(slot, 0.0) + weight / (RRF_CONSTANT + position)
    return sorted(scores.items(), key=lambda one: (-one[1], one[0]))


def parse_order(schema: Schema, clauses: Sequence[str]) -> list[OrderClause]:
    return [_order_clause(schema, clause) for clause in clauses]


def sort_slots(view: View, order: Sequence[OrderClause], scored: Scored) -> Scored:
    """Sort hits by the given keys. As in the service, missing values come first when ascending and last when
    descending.
    """
    columns = _column_values(
        view, [one.field for one in order if one.field], np.array([slot for slot, _ in scored])
    )
    ordered = sorted(scored)
    position = len([one for one in order if one.field])
    for clause in reversed(order):
        if clause.field is None:
            ordered.sort(key=lambda one: one[1], reverse=clause.descending)
            continue
        position -= 1
        at = position
        # A column has values of one type, so the second part of the key never compares different types.
        ordered.sort(
            key=lambda one: ((value := columns[one[0]][at]) is not None, value if value is not None else 0),
            reverse=clause.descending,
        )
    return ordered


def _rank_texts(view: View, resolved: _Asked) -> Ranking:
    query, selection = resolved.query, resolved.selection
    if resolved.order:
        matching = _text_matches(view, query, selection)
        return Ranking(_sort_matches(view, resolved, matching), matching)
    if query is None:
        return Ranking([(int(slot), 1.0) for slot in selection.slots[: resolved.depth]], selection.slots)
    needs_all = resolved.request.count or resolved.request.facets
    matching_or_none = _text_matches(view, query, selection) if needs_all else None
    return Ranking(best_texts(view, query, selection, resolved.depth), matching_or_none)


def _rank_vectors(view: View, resolved: _Asked) -> Ranking:
    request, query, selection = resolved.request, resolved.query, resolved.selection
    rankings = [ranking for one in request.vector_queries for ranking in _nearest(view, one, selection)]
    if query is not None:
        recall = max(resolved.depth, MIN_TEXT_RECALL, *(one.k for one in request.vector_queries))
        rankings.insert(0, (1.0, best_texts(view, query, selection, recall)))
    hits = fuse(rankings) if len(rankings) > 1 else rankings[0][1]
    matching = np.array(sorted(slot for slot, _ in hits), dtype=np.int64)
    if query is not None and (request.count or request.facets):
        matching = np.union1d(matching, _text_matches(view, query, selection))
    return Ranking(sort_slots(view, resolved.order, hits) if resolved.order else hits, matching)


def _nearest(view: View, one: VectorQuery, selection: Selection) -> list[tuple[float, Scored]]:
    """Return (weight, hits) for each field of a vector query, hits best first."""
    rankings = []
    for path in one.fields:
        field = view.schema.field(path, "vectorQueries")
        if not field.is_vector:
            raise RequestError(f"The field '{path}' in the vector query is not a vector field.")
        vector = _query_vector(one, field)
        rankings.append((one.weight, view.snapshot.vectors[path].nearest(vector, selection.mask, one.k)))
    return rankings


def _query_vector(one: VectorQuery, field: Field) -> Vector:
    if one.kind == "text" or one.vector is None:
        raise RequestError(
            f"Field '{field.path}' does not have a vectorizer in its vector profile: the local search server"
            " takes vectors only (kind 'vector' with 'vector')."
        )
    return edm.vector_of(list(one.vector), field.definition.dimensions or 0, field.path)


def _text_matches(view: View, query: Query | None, selection: Selection) -> Slots:
    if query is None:
        return selection.slots
    slots = matching_slots(view.searcher, query)
    return slots[selection.mask[slots]]


def _sort_matches(view: View, resolved: _Asked, matching: Slots) -> Scored:
    """Return the first `depth` matches in the requested order, with their text scores."""
    query = resolved.query
    scores: dict[int, float] = {}
    if query is not None and any(clause.field is None for clause in resolved.order):
        scores = dict(best_slots(view.searcher, query, None, max(1, view.searcher.num_docs)))
    scored = [(slot, scores.get(slot, 1.0)) for slot in matching.tolist()]
    hits = sort_slots(view, resolved.order, scored)[: resolved.depth]
    if query is None or scores:
        return hits
    chosen = selected_only(view.snapshot.layout, query, [slot for slot, _ in hits])
    scores = dict(best_slots(view.searcher, chosen, None, max(1, len(hits))))
    return [(slot, scores.get(slot, 1.0)) for slot, _ in hits]


def _column_values(view: View, fields: Sequence[Field], slots: Slots) -> dict[int, tuple[SqlValue, ...]]:
    if not fields or not len(slots):
        return {}
    names = ", ".join(field.column for field in fields)
    selected = set(slots.tolist())
    query = f"SELECT slot, {names} FROM columns"  # noqa: S608 - our own column names
    if len(selected) <= SMALL_SELECTION:
        query += f" WHERE slot IN ({','.join(str(int(slot)) for slot in slots)})"
    return {row[0]: row[1:] for row in view.connection.execute(query) if row[0] in selected}


def _order_clause(schema: Schema, clause: str) -> OrderClause:
    path, _, direction = clause.strip().partition(" ")
    word: Literal["asc", "desc"] | str = direction.strip() or "asc"
    if word not in ("asc", "desc"):
        raise RequestError(f"Invalid expression in $orderby: '{clause}'.")
    if path == "search.score()":
        return OrderClause(None, word == "desc")
    if "(" in path:
        raise RequestError(
            f"Invalid expression in $orderby: '{path}' is not supported by the local search server."
        )
    field = schema.field(path, "$orderby")
    if not field.definition.sortable or not field.has_column:
        raise RequestError(f"Invalid expression in $orderby: '{path}' is not a sortable field.")
    return OrderClause(field, word == "desc")
