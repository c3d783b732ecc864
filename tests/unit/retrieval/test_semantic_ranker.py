"""Tests for reranking by the search service: the new order, and the pause after a refusal."""

import pytest

from shared.access.models import UserContext
from shared.platform.errors import GroundworkError, InvalidQueryError, RateLimitError
from shared.platform.search import SearchPage, SearchRequest
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import SecuredIndex
from shared.retrieval.semantic_ranker import RANKER_PAUSE_S, RankerPause, semantically_ranked
from tests.fakes.document_rows import FixedRows
from tests.fakes.recording_index import RecordingIndex

ANNA = UserContext(user_id="anna")


def secured(index: RecordingIndex) -> SecuredIndex:
    return SecuredIndex(index, ANNA, FixedRows())


HITS = [
    Hit(block_id=name, doc_id="d", filename="f.md", score=score) for name, score in (("a", 0.7), ("b", 0.6))
]


def ranked(**scores: float | None) -> SearchPage:
    return SearchPage(
        rows=tuple({"block_id": name, "@search.reranker_score": score} for name, score in scores.items())
    )


async def test_the_ranker_changes_the_order_and_not_the_scale_of_scores() -> None:
    index = RecordingIndex(ranked(a=1.0, b=3.0))
    hits = await semantically_ranked(secured(index), "Who?", (1.0,), HITS, RankerPause())
    assert [(hit.block_id, hit.score) for hit in hits] == [("b", 0.7), ("a", 0.6)]


async def test_it_is_asked_for_what_was_found_and_within_the_users_rights() -> None:
    index = RecordingIndex(ranked(a=1.0, b=3.0))
    await semantically_ranked(secured(index), "Who?", (1.0,), HITS, RankerPause())
    (request,) = index.requests
    assert (request.semantic_configuration, request.semantic_query, request.top) == ("default", "Who?", 2)
    assert {query.field for query in request.vectors} == {"content_vector", "image_caption_vector"}
    assert "search.in(block_id, 'a|b', '|')" in (request.filter or "")
    assert (request.filter or "").startswith("((access_control_list/any(")


async def test_what_it_passed_over_comes_last() -> None:
    index = SecuredIndex(RecordingIndex(ranked(b=2.0)), ANNA, FixedRows())
    hits = await semantically_ranked(index, "Who?", (1.0,), HITS, RankerPause())
    assert [(hit.block_id, hit.score) for hit in hits] == [("b", 0.7), ("a", 0.6)]


async def test_a_service_that_leaves_the_scores_out_changes_nothing() -> None:
    index, pause = RecordingIndex(ranked(a=None, b=None)), RankerPause()
    assert await semantically_ranked(secured(index), "Who?", (1.0,), HITS, pause) == HITS
    assert pause.is_on


async def test_nothing_found_asks_nothing() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    assert await semantically_ranked(secured(index), "Who?", (1.0,), []) == []
    assert index.requests == []


class RefusingIndex(RecordingIndex):
    """An index that refuses every search with the same error."""

    def __init__(self, failure: GroundworkError) -> None:
        super().__init__(SearchPage(rows=()))
        self._failure = failure

    async def search(self, request: SearchRequest) -> SearchPage:
        raise self._failure


@pytest.mark.parametrize(
    "failure", [InvalidQueryError("Semantic search is not enabled."), RateLimitError("slow down")]
)
async def test_a_service_that_refuses_changes_nothing_and_is_left_alone_for_a_while(
    failure: GroundworkError,
) -> None:
    now = 0.0
    pause = RankerPause(lambda: now)
    refusing = SecuredIndex(RefusingIndex(failure), ANNA, FixedRows())
    assert await semantically_ranked(refusing, "Who?", (1.0,), HITS, pause) == HITS
    index = RecordingIndex(ranked(b=2.0))
    assert await semantically_ranked(secured(index), "Who?", (1.0,), HITS, pause) == HITS
    assert index.requests == []
    now = RANKER_PAUSE_S
    assert await semantically_ranked(secured(index), "Who?", (1.0,), HITS, pause) != HITS
    assert len(index.requests) == 1
