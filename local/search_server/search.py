"""Executes a search request: ranks, reranks, selects the page and builds its rows."""

from typing import Final

from pydantic import JsonValue

from local.search_server import store
from local.search_server.errors import RequestError
from local.search_server.facets import count_facets
from local.search_server.index import View
from local.search_server.projection import Projection
from local.search_server.ranking import Ranking, Scored, rank
from local.search_server.requests import SearchRequest
from local.search_server.schema import JsonObject
from local.search_server.semantic import MAX_RERANKED, Candidate, Reranker
from local.search_server.text_query import parse_question

DEFAULT_PAGE: Final = 50
MAX_PAGE: Final = 1000


def run_search(view: View, request: SearchRequest, body: JsonObject) -> JsonObject:
    """Return the response to a search request. `body` is the original JSON, from which the parameters of the
    next page are derived.

    Raises:
        RequestError: 400, if the index or this server doesn't support a part of the request.
    """
    _check(request)
    question = parse_question(
        view.schema,
        request.search or "",
        full=request.query_type == "full",
        match_all_words=request.search_mode == "all",
        search_fields=request.search_fields,
    )
    size = min(DEFAULT_PAGE if request.top is None else request.top, MAX_PAGE)
    is_semantic = request.query_type == "semantic"
    depth = max(request.skip + size + 1, MAX_RERANKED if is_semantic else 0)
    projection = Projection(view.schema, request.select)
    ranking = rank(view, request, question, depth)
    hits = ranking.hits
    reranked: dict[int, float] = {}
    if is_semantic:
        reranked = _rerank(view, request, hits[:MAX_RERANKED])
        scores = dict(hits)
        hits = [(slot, scores[slot]) for slot in reranked] + hits[MAX_RERANKED:]
    page = hits[request.skip : request.skip + size]
    answer = _head(view, request, ranking)
    if len(hits) > request.skip + size and (request.top is None or request.top > size):
        answer["@search.nextPageParameters"] = _next_page(request, body, size)
    answer["value"] = _rows(view, page, projection, reranked)
    return answer


def _check(request: SearchRequest) -> None:
    if request.query_type == "semantic" and request.orderby:
        raise RequestError("'orderby' cannot be used with queryType 'semantic'.")
    if request.query_type != "semantic" and request.semantic_query:
        raise RequestError("'semanticQuery' needs queryType 'semantic'.")


def _head(view: View, request: SearchRequest, ranking: Ranking) -> JsonObject:
    """Return the response properties that precede the rows: count, coverage and facets, if requested."""
    head: JsonObject = {}
    matching = ranking.matching
    if request.count and matching is not None:
        head["@odata.count"] = len(matching)
    if request.minimum_coverage is not None:
        head["@search.coverage"] = 100.0
    if request.facets and matching is not None:
        facets = count_facets(view, request.facets, matching)
        head["@search.facets"] = {path: list(rows) for path, rows in facets.items()}
    return head


def _next_page(request: SearchRequest, body: JsonObject, size: int) -> JsonObject:
    following = {**body, "skip": request.skip + size}
    if request.top is not None:
        following["top"] = request.top - size
    return following


def _rerank(view: View, request: SearchRequest, hits: Scored) -> dict[int, float]:
    """Return the reranker score of each hit by slot, best first."""
    configuration = view.schema.semantic_configuration(request.semantic_configuration)
    reranker = Reranker(configuration, request.semantic_query or request.search or "")
    bodies = store.read_bodies(view.connection, [slot for slot, _ in hits])
    reranked = reranker.rerank([Candidate(slot, score, bodies[slot]) for slot, score in hits])
    return {one.candidate.slot: one.score for one in reranked}


def _rows(view: View, page: Scored, projection: Projection, reranked: dict[int, float]) -> list[JsonValue]:
    slots = [slot for slot, _ in page]
    bodies = store.read_bodies(view.connection, slots)
    vectors = store.read_vectors(view.connection, slots) if projection.has_vectors else {}
    rows: list[JsonValue] = []
    for slot, score in page:
        row: JsonObject = {"@search.score": score}
        if slot in reranked:
            row["@search.rerankerScore"] = reranked[slot]
        row.update(projection.apply(bodies[slot], vectors.get(slot, {})))
        rows.append(row)
    return rows
