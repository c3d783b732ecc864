"""Hybrid search: what is asked of the index, and how the answers are fused."""

import asyncio
from collections.abc import Sequence

import pytest

from shared.errors import RateLimitError
from shared.models.identity import UserContext
from shared.models.prompts import CallLimits
from shared.models.search import IndexRow, SearchPage, SearchRequest
from shared.ports import Embedder
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.secured_index import SecuredIndex
from tests.fakes.recording_index import RecordingIndex

ANNA = UserContext(user_id="anna")
LIMITS = CallLimits(timeout_s=1)


class LengthEmbedder(Embedder):
    """A text's vector holds its length."""

    @property
    def dimensions(self) -> int:
        return 1

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        return [(float(len(text)),) for text in texts]


def row(block_id: str, score: float, **more: object) -> IndexRow:
    return {
        "block_id": block_id,
        "doc_id": "d",
        "filename": "f.pdf",
        "block_type": "text",
        "page_number": None,
        "content": f"text of {block_id}",
        "@search.score": score,
        **more,
    }


class ScriptedIndex(RecordingIndex):
    """Answers keyword searches with one page and vector searches by field with others."""

    def __init__(self, keyword: Sequence[IndexRow], **vectors: Sequence[IndexRow]) -> None:
        super().__init__(SearchPage(rows=()))
        self._keyword = SearchPage(rows=tuple(keyword))
        self._vectors = {field: SearchPage(rows=tuple(rows)) for field, rows in vectors.items()}

    async def search(self, request: SearchRequest) -> SearchPage:
        await super().search(request)
        if request.vectors:
            return self._vectors.get(request.vectors[0].field, SearchPage(rows=()))
        return self._keyword


def searching(index: RecordingIndex) -> BlockSearch:
    return BlockSearch(SecuredIndex(index, ANNA), LengthEmbedder(), LIMITS)


async def test_keyword_and_vectors_are_asked_apart_and_fused_by_score() -> None:
    index = ScriptedIndex([row("k", 10.0), row("both", 8.0)], content_vector=[row("both", 0.8)])
    hits = await searching(index).search(["pressure"], 10, {})
    assert [(hit.block_id, hit.score) for hit in hits] == [("k", 0.8125), ("both", 0.7625)]


async def test_every_query_is_trimmed_and_carries_the_callers_filter() -> None:
    index = ScriptedIndex([])
    await searching(index).search(["a", "b"], 10, {"doc_id": "d1"})
    assert len(index.requests) == 6
    for request in index.requests:
        assert request.filter is not None
        assert request.filter.startswith("(access_control_list/any(")
        assert "doc_id eq 'd1'" in request.filter


async def test_pictures_come_with_their_caption_and_no_content() -> None:
    picture = row(
        "i", 0.9, block_type="image", content=None, image_url="figures/1.png", image_caption="A valve"
    )
    hits = await searching(ScriptedIndex([], image_caption_vector=[picture])).search(["valve"], 10, {})
    assert (hits[0].block_type, hits[0].content, hits[0].image_caption) == ("image", "", "A valve")


async def test_a_block_found_by_several_phrasings_comes_first() -> None:
    index = ScriptedIndex([row("a", 5.0), row("b", 4.0)])
    hits = await searching(index).search(["one", "two", "one", " "], 1, {})
    assert [hit.block_id for hit in hits] == ["a"]
    assert len([request for request in index.requests if request.text]) == 2


async def test_nothing_to_look_for_asks_nothing() -> None:
    index = ScriptedIndex([])
    assert await searching(index).search(["  "], 10, {}) == []
    assert index.requests == []


async def test_signs_in_a_question_are_words_and_no_operators() -> None:
    index = ScriptedIndex([])
    await searching(index).search(['a pump at -12 "bar'], 10, {})
    assert [request.text for request in index.requests if request.text] == ['a pump at \\-12 \\"bar']


class HangingIndex(RecordingIndex):
    """Refuses keyword searches; vector searches hang, and say when they were ended."""

    def __init__(self) -> None:
        super().__init__(SearchPage(rows=()))
        self.ended = 0

    async def search(self, request: SearchRequest) -> SearchPage:
        if not request.vectors:
            await asyncio.sleep(0)  # the others have begun
            raise RateLimitError("slow down")
        try:
            return await asyncio.Future()
        finally:
            self.ended += 1


async def test_one_failed_search_ends_all_the_others() -> None:
    index = HangingIndex()
    with pytest.raises(RateLimitError):
        await searching(index).search(["one", "two"], 10, {})
    assert index.ended == 4
