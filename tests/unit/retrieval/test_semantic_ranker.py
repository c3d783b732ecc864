"""The service's semantic ranker: asked once, believed on 0-1, and not missed when it does not answer."""

import pytest

from shared.access.models import UserContext
from shared.platform.errors import GroundworkError, InvalidQueryError, RateLimitError
from shared.platform.search import SearchPage, SearchRequest
from shared.retrieval.blocks import semantically_ranked
from shared.retrieval.models import Hit
from shared.retrieval.secured_index import SecuredIndex
from tests.fakes.recording_index import RecordingIndex

ANNA = UserContext(user_id="anna")
HITS = [
    Hit(block_id=name, doc_id="d", filename="f.md", score=score) for name, score in (("a", 0.7), ("b", 0.6))
]


def ranked(**scores: float | None) -> SearchPage:
    return SearchPage(
        rows=tuple({"block_id": name, "@search.reranker_score": score} for name, score in scores.items())
    )


async def test_its_scores_take_the_place_of_the_fused_ones() -> None:
    index = RecordingIndex(ranked(a=1.0, b=3.0))
    hits = await semantically_ranked(SecuredIndex(index, ANNA), "Who?", (1.0,), HITS)
    assert [(hit.block_id, hit.score) for hit in hits] == [("b", 0.75), ("a", 0.25)]


async def test_it_is_asked_for_what_was_found_and_within_the_users_rights() -> None:
    index = RecordingIndex(ranked(a=1.0, b=3.0))
    await semantically_ranked(SecuredIndex(index, ANNA), "Who?", (1.0,), HITS)
    (asked,) = index.requests
    assert (asked.semantic_configuration, asked.semantic_query, asked.top) == ("default", "Who?", 2)
    assert {query.field for query in asked.vectors} == {"content_vector", "image_caption_vector"}
    assert "search.in(block_id, 'a|b', '|')" in (asked.filter or "")
    assert (asked.filter or "").startswith("(access_control_list/any(")


async def test_what_it_passed_over_comes_last() -> None:
    hits = await semantically_ranked(SecuredIndex(RecordingIndex(ranked(b=2.0)), ANNA), "Who?", (1.0,), HITS)
    assert [(hit.block_id, hit.score) for hit in hits] == [("b", 0.5), ("a", 0.5)]


async def test_a_service_that_leaves_the_scores_out_changes_nothing() -> None:
    index = RecordingIndex(ranked(a=None, b=None))
    assert await semantically_ranked(SecuredIndex(index, ANNA), "Who?", (1.0,), HITS) == HITS


async def test_nothing_found_asks_nothing() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    assert await semantically_ranked(SecuredIndex(index, ANNA), "Who?", (1.0,), []) == []
    assert index.requests == []


class RefusingIndex(RecordingIndex):
    """Fails every search alike."""

    def __init__(self, failure: GroundworkError) -> None:
        super().__init__(SearchPage(rows=()))
        self._failure = failure

    async def search(self, request: SearchRequest) -> SearchPage:
        raise self._failure


@pytest.mark.parametrize(
    "failure", [InvalidQueryError("Semantic search is not enabled."), RateLimitError("slow down")]
)
async def test_a_service_without_it_changes_nothing(failure: GroundworkError) -> None:
    index = SecuredIndex(RefusingIndex(failure), ANNA)
    assert await semantically_ranked(index, "Who?", (1.0,), HITS) == HITS
