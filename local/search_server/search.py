"""One search request to one answer: rank, rerank, cut the page, build its rows."""

from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from local.search_server import store
from local.search_server.errors import RequestError
from local.search_server.facets import count_facets
from local.search_server.index import View
from local.search_server.passages import best_marked
from local.search_server.projection import Projection
from local.search_server.ranking import Ranking, Scored, rank
from local.search_server.requests import SearchRequest
from local.search_server.schema import Field, JsonObject, values_at
from local.search_server.semantic import (
    MAX_RERANKED,
    Candidate,
    Extraction,
    Reranked,
    Reranker,
    answers,
    caption,
    parse_extraction,
)
from local.search_server.text_query import TextQuestion, matcher_for, parse_question, searchable

DEFAULT_PAGE: Final = 50
MAX_PAGE: Final = 1000
MAX_FRAGMENTS: Final = 5


@dataclass(frozen=True)
class _Semantic:
    """The semantic half of an answer: scores and passages by slot, and what was asked to be extracted."""

    reranker: Reranker
    by_slot: dict[int, Reranked]
    captions: Extraction | None
    answers: list[JsonObject] | None


def run_search(view: View, request: SearchRequest, body: JsonObject) -> JsonObject:
    """The answer as it travels; `body` is the request as it came, which a next page repeats.

    Raises:
        RequestError: 400, anything in the request that the index or this server does not have.
    """
    _check(request)
    question = _question(view, request)
    size = min(DEFAULT_PAGE if request.top is None else request.top, MAX_PAGE)
    is_semantic = request.query_type == "semantic"
    depth = max(request.skip + size + 1, MAX_RERANKED if is_semantic else 0)
    projection = Projection(view.schema, request.select)
    highlighter = _Highlighter(view, request, question)
    ranking = rank(view, request, question, depth)
    hits = ranking.hits
    semantic = None
    if is_semantic:
        semantic = _rerank(view, request, hits)
        order = [(one.candidate.slot, one.candidate.score) for one in semantic.by_slot.values()]
        hits = order + hits[MAX_RERANKED:]
    page = hits[request.skip : request.skip + size]
    answer = _head(view, request, ranking)
    if semantic is not None and semantic.answers is not None:
        answer["@search.answers"] = list(semantic.answers)
    if len(hits) > request.skip + size and (request.top is None or request.top > size):
        answer["@search.nextPageParameters"] = _next_page(request, body, size)
    answer["value"] = _rows(view, page, projection, highlighter, semantic)
    return answer


def _check(request: SearchRequest) -> None:
    if request.query_type == "semantic" and request.orderby:
        raise RequestError("'orderby' cannot be used with queryType 'semantic'.")
    if request.query_type != "semantic" and (request.answers or request.captions or request.semantic_query):
        raise RequestError("'answers', 'captions' and 'semanticQuery' need queryType 'semantic'.")
    if request.scoring_parameters:
        raise RequestError("Scoring parameters are not supported by the local search server.")


def _question(view: View, request: SearchRequest) -> TextQuestion:
    question = parse_question(
        view.schema,
        request.search or "",
        full=request.query_type == "full",
        match_all_words=request.search_mode == "all",
        search_fields=request.search_fields,
    )
    weights = view.schema.weights(request.scoring_profile)
    return TextQuestion(question.node, question.fields, question.default, weights)


def _head(view: View, request: SearchRequest, ranking: Ranking) -> JsonObject:
    """What stands before the rows. `rank` always finds every match where it is needed here."""
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


def _rerank(view: View, request: SearchRequest, hits: Scored) -> _Semantic:
    configuration = view.schema.semantic_configuration(request.semantic_configuration)
    wanted_answers = parse_extraction(request.answers, "answers")
    wanted_captions = parse_extraction(request.captions, "captions")
    reranker = Reranker(configuration, request.semantic_query or request.search or "")
    first = hits[:MAX_RERANKED]
    bodies = store.read_bodies(view.connection, [slot for slot, _ in first])
    reranked = reranker.rerank([Candidate(slot, score, bodies[slot]) for slot, score in first])
    found = None
    if wanted_answers is not None:
        found = answers(reranker, reranked, wanted_answers, view.schema.key.path)
    return _Semantic(reranker, {one.candidate.slot: one for one in reranked}, wanted_captions, found)


def _rows(
    view: View, page: Scored, projection: Projection, highlighter: "_Highlighter", semantic: _Semantic | None
) -> list[JsonValue]:
    slots = [slot for slot, _ in page]
    bodies = store.read_bodies(view.connection, slots)
    vectors = store.read_vectors(view.connection, slots) if projection.has_vectors else {}
    rows: list[JsonValue] = []
    for slot, score in page:
        row: JsonObject = {"@search.score": score}
        if semantic is not None and slot in semantic.by_slot:
            one = semantic.by_slot[slot]
            row["@search.rerankerScore"] = one.score
            if semantic.captions is not None:
                row["@search.captions"] = [caption(semantic.reranker, one, semantic.captions)]
        highlights = highlighter.highlights(bodies[slot])
        if highlights:
            row["@search.highlights"] = highlights
        row.update(projection.apply(bodies[slot], vectors.get(slot, {})))
        rows.append(row)
    return rows


class _Highlighter:
    """Marks the words of the question in the fields named by `highlight`, e.g. `content-3`."""

    def __init__(self, view: View, request: SearchRequest, question: TextQuestion) -> None:
        self._tags = (request.highlight_pre_tag, request.highlight_post_tag)
        self._fields = [self._parse(view, text) for text in request.highlight]
        self._matchers = {field.path: matcher_for(question, field) for field, _ in self._fields}

    def highlights(self, body: JsonObject) -> JsonObject:
        """Fragments by field path; fields without a match are left out."""
        found: JsonObject = {}
        for field, limit in self._fields:
            matches = self._matchers[field.path].matches
            marked: list[JsonValue] = []
            for text in values_at(body, field.path):
                marked += best_marked(str(text), field.index_analyzer, matches, self._tags, limit)
            if marked:
                found[field.path] = marked[:limit]
        return found

    @staticmethod
    def _parse(view: View, text: str) -> tuple[Field, int]:
        path, _, limit = text.partition("-")
        if limit and (not limit.isdecimal() or int(limit) < 1):
            raise RequestError(f"Invalid highlight expression '{text}'.")
        field = searchable(view.schema, path)
        if field.definition.retrievable is False:
            raise RequestError(f"The field '{path}' cannot be highlighted: it is not retrievable.")
        return field, int(limit or MAX_FRAGMENTS)
