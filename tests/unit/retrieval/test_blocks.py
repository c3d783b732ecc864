"""Tests for hybrid search: the index requests, and fusing of their results."""

import asyncio
from collections.abc import Sequence

import pytest

from shared.access.models import UserContext
from shared.platform.errors import InvalidQueryError, RateLimitError
from shared.platform.language_models.models import CallLimits, Embedder
from shared.platform.search import Filters, IndexRow, SearchPage, SearchRequest
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.document_rows import DocumentRow
from shared.retrieval.secured_index import SecuredIndex
from tests.fakes.document_rows import FixedRows
from tests.fakes.recording_index import RecordingIndex

ANNA = UserContext(user_id="anna")
LIMITS = CallLimits(timeout_s=1)


class LengthEmbedder(Embedder):
    """An embedder whose vectors contain the length of the text."""

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
    """An index with one page for keyword searches and one page per field for vector searches."""

    def __init__(self, keyword: Sequence[IndexRow], **vectors: Sequence[IndexRow]) -> None:
        super().__init__(SearchPage(rows=()))
        self._keyword = SearchPage(rows=tuple(keyword))
        self._vectors = {field: SearchPage(rows=tuple(rows)) for field, rows in vectors.items()}

    def answer(self, keyword: Sequence[IndexRow]) -> None:
        """Replace the page of keyword searches."""
        self._keyword = SearchPage(rows=tuple(keyword))

    async def search(self, request: SearchRequest) -> SearchPage:
        await super().search(request)
        if request.vectors:
            return self._vectors.get(request.vectors[0].field, SearchPage(rows=()))
        return self._keyword


def secured(index: RecordingIndex) -> SecuredIndex:
    return SecuredIndex(index, ANNA, FixedRows())


def searching(index: RecordingIndex) -> BlockSearch:
    return BlockSearch(secured(index), LengthEmbedder(), LIMITS)


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
        assert request.filter.startswith("((access_control_list/any(")
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
    await searching(index).search(['at -12 b"ar'], 10, {})
    queries = [(request.query_type, request.text) for request in index.requests if request.text]
    assert queries == [("full", '\\-12 b\\"ar "\\-12 b\\"ar"^0.25 "\\-12 b\\"ar"~3^0.25')]


async def test_scores_are_those_without_what_the_rows_refuse() -> None:
    index_rows = [row("closed", 10.0, doc_id="secret"), row("a", 5.0), row("b", 4.0), row("c", 3.0)]
    index = ScriptedIndex(index_rows)
    secret = DocumentRow((("ben",),))
    search = BlockSearch(SecuredIndex(index, ANNA, FixedRows({"secret": secret})), LengthEmbedder(), LIMITS)
    hits = await search.search(["pressure"], 10, {})
    assert [(hit.block_id, hit.score) for hit in hits] == [("a", 0.25), ("b", 0.2), ("c", 0.15)]
    assert len([request for request in index.requests if request.text]) == 1


async def test_a_search_that_loses_a_third_of_its_hits_runs_once_more_without_their_documents() -> None:
    index = ScriptedIndex([row("closed", 10.0, doc_id="secret"), row("a", 5.0)])
    rows = FixedRows({"secret": DocumentRow((("ben",),))})
    search = BlockSearch(SecuredIndex(index, ANNA, rows), LengthEmbedder(), LIMITS)
    assert [hit.block_id for hit in await search.search(["pressure"], 10, {})] == ["a"]
    first, again = [request for request in index.requests if request.text]
    assert "secret" not in (first.filter or "")
    assert "not search.in(doc_id, 'secret', '|')" in (again.filter or "")


async def test_a_document_that_was_replaced_after_the_search_is_searched_again() -> None:
    index = ScriptedIndex([row("old", 10.0, version=1)])
    search = BlockSearch(
        SecuredIndex(index, ANNA, FixedRows({"d": DocumentRow((("*",),), version=2)})),
        LengthEmbedder(),
        LIMITS,
    )
    rankings = await search.rank_each(["pressure"], {})
    index.answer([row("new", 10.0, version=2)])
    assert [hit.block_id for hit in await search.merge(rankings, 10)] == ["new"]


async def test_only_documents_of_hits_that_are_shown_are_checked() -> None:
    index_rows = [row(f"b{number}", 20.0 - number, doc_id=f"d{number}") for number in range(10)]
    rows = FixedRows()
    search = BlockSearch(SecuredIndex(ScriptedIndex(index_rows), ANNA, rows), LengthEmbedder(), LIMITS)
    await search.search(["pressure"], 3, {})
    assert rows.reads == ["d0", "d1", "d2"]


async def test_a_copy_stands_behind_the_document_that_was_there_before_it() -> None:
    ages = {"copy": "2026-03-02", "guide": "2026-03-01"}
    rows = FixedRows({doc_id: DocumentRow((("*",),), 0, "same", day) for doc_id, day in ages.items()})
    index_rows = [
        row("copy-words-0", 9.0, doc_id="copy"),
        row("other-words-0", 8.0, doc_id="other"),
        row("guide-words-0", 7.0, doc_id="guide"),
    ]
    search = BlockSearch(SecuredIndex(ScriptedIndex(index_rows), ANNA, rows), LengthEmbedder(), LIMITS)
    # Applies even if only the copy ranks among the best.
    assert [hit.block_id for hit in await search.search(["pressure"], 1, {})] == ["guide-words-0"]


class HangingIndex(RecordingIndex):
    """An index that refuses text searches, and whose image searches hang and record their cancellation."""

    def __init__(self) -> None:
        super().__init__(SearchPage(rows=()))
        self.ended = 0

    async def search(self, request: SearchRequest) -> SearchPage:
        if not request.vectors:
            return SearchPage(rows=())
        if request.vectors[0].field == "content_vector":
            await asyncio.sleep(0)  # let the other requests start
            raise RateLimitError("slow down")
        try:
            return await asyncio.Future()
        finally:
            self.ended += 1


async def test_one_failed_search_ends_all_the_others() -> None:
    index = HangingIndex()
    with pytest.raises(RateLimitError):
        await searching(index).search(["one", "two"], 10, {})
    assert index.ended == 2


class SlowEmbedder(LengthEmbedder):
    """A slow embedder that records the index requests made in the meantime."""

    def __init__(self, index: RecordingIndex) -> None:
        self._index = index
        self.meanwhile: list[SearchRequest] = []

    async def embed(self, texts: Sequence[str], limits: CallLimits) -> list[tuple[float, ...]]:
        for _ in range(10):
            await asyncio.sleep(0)
        self.meanwhile = list(self._index.requests)
        return await super().embed(texts, limits)


async def test_words_are_looked_for_while_the_question_is_embedded() -> None:
    index = ScriptedIndex([row("k", 10.0)])
    embedder = SlowEmbedder(index)
    await BlockSearch(secured(index), embedder, LIMITS).search(["one", "two"], 10, {})
    assert [request.text for request in embedder.meanwhile] == ["one", "two"]


class NamedDocuments(RecordingIndex):
    """A document lookup that knows one document by name, or fails."""

    def __init__(self, *, refuses: bool = False) -> None:
        report_row = {
            "doc_id": "named",
            "filename": "Acme_2019.pdf",
            "title": "Annual report",
            "@search.score": 5.0,
        }
        super().__init__(SearchPage(rows=(report_row,)))
        self._refuses = refuses

    async def search(self, request: SearchRequest) -> SearchPage:
        if self._refuses:
            raise InvalidQueryError("There is no field 'names'.")
        return await super().search(request)


def with_documents(index: RecordingIndex, documents: RecordingIndex) -> BlockSearch:
    trimmed = secured(documents)
    return BlockSearch(secured(index), LengthEmbedder(), LIMITS, trimmed)


async def test_blocks_of_a_named_document_come_first_with_the_score_they_have() -> None:
    index = ScriptedIndex([row("k", 10.0), row("n", 9.0, doc_id="named")])
    hits = await with_documents(index, NamedDocuments()).search(["Acme"], 10, {})
    assert [hit.block_id for hit in hits] == ["n", "k"]
    assert hits[0].score < hits[1].score


async def test_a_spreadsheet_leaves_room_for_other_documents() -> None:
    tickets = [row(f"t{number}", 50.0 - number, doc_id="t", filename="Tickets.CSV") for number in range(8)]
    policy = row("p", 1.0, doc_id="p", filename="policy.pdf")
    hits = await searching(ScriptedIndex([*tickets, policy])).search(["Hull"], 5, {})
    assert [hit.block_id for hit in hits] == ["t0", "t1", "t2", "p", "t3"]


TICKETS = [row(f"t{number}", 60.0 - number, doc_id="t", filename="t.csv") for number in range(50)]


async def test_spreadsheets_that_take_all_candidates_are_left_out_of_a_second_search() -> None:
    class CrowdedIndex(ScriptedIndex):
        async def search(self, request: SearchRequest) -> SearchPage:
            page = await super().search(request)
            policy = row("p", 1.0, doc_id="p", filename="policy.pdf")
            return SearchPage(rows=(policy,)) if "not search.in(doc_id, 't'" in str(request.filter) else page

    hits = await searching(CrowdedIndex(TICKETS)).search(["Hull"], 5, {})
    assert {hit.block_id for hit in hits[:4]} == {"t0", "t1", "t2", "p"}


@pytest.mark.parametrize(
    ("rows", "queries", "filters"),
    [
        (TICKETS[:20], ["Hull", "harbour", "dock"], {}),
        (TICKETS, ["Hull"], {"doc_id": "t"}),
        (TICKETS, ["Hull"], {"doc_id": ("t",)}),
    ],
)
async def test_spreadsheets_are_searched_once_if_nothing_else_can_match(
    rows: Sequence[IndexRow], queries: Sequence[str], filters: Filters
) -> None:
    index = ScriptedIndex(rows)
    hits = await searching(index).search(queries, 5, filters)
    assert len(hits) == 5
    assert not any("not search.in" in str(request.filter) for request in index.requests)


async def test_a_spreadsheet_that_the_question_names_keeps_its_ranks() -> None:
    tickets = [row(f"t{number}", 50.0 - number, doc_id="named", filename="t.csv") for number in range(5)]
    policy = row("p", 1.0, doc_id="p", filename="policy.pdf")
    index = ScriptedIndex([*tickets, policy])
    hits = await with_documents(index, NamedDocuments()).search(["Acme"], 6, {})
    assert [hit.block_id for hit in hits] == ["t0", "t1", "t2", "t3", "t4", "p"]


async def test_a_named_document_costs_one_request_more_there_and_one_here() -> None:
    index, documents = ScriptedIndex([]), NamedDocuments()
    await with_documents(index, documents).search(["Acme", "Acme pumps"], 10, {})
    assert (len(index.requests), len(documents.requests)) == (7, 1)
    (narrowed,) = [
        request for request in index.requests if "search.in(doc_id, 'named'" in (request.filter or "")
    ]
    assert (narrowed.filter or "").startswith("((access_control_list/any(")
    assert narrowed.top == 50


async def test_words_that_name_a_document_count_little_in_all_requests_for_words() -> None:
    # The page is full, so word scores of other blocks are unknown and requested by id.
    index = ScriptedIndex(
        [row(f"k{number}", 9.0) for number in range(50)], content_vector=[row("v", 0.7, doc_id="named")]
    )
    question = "What were Acme's net sales in FY2019?"
    await with_documents(index, NamedDocuments()).search([question, "net sales of Acme"], 10, {})
    texts = [request.text for request in index.requests if request.text]
    one, other = (
        'net sales "net sales"^0.25 "net sales"~3^0.25 Acme^0.25 FY2019^0.25',
        'net sales "net sales"^0.25 "net sales"~3^0.25 Acme^0.25',
    )
    assert sorted(texts) == sorted([one, other, one, other])


async def test_names_are_looked_for_within_the_callers_filters_and_rights() -> None:
    documents = NamedDocuments()
    await with_documents(ScriptedIndex([]), documents).search(
        ["Acme"], 10, {"project_id": "p", "page_number": 3}
    )
    filter_text = documents.requests[0].filter or ""
    assert "access_control_list/any(" in filter_text
    assert "project_id eq 'p'" in filter_text
    assert "page_number" not in filter_text


async def test_an_index_without_names_leaves_the_search_as_it_was() -> None:
    index = ScriptedIndex([row("k", 10.0)])
    hits = await with_documents(index, NamedDocuments(refuses=True)).search(["Acme"], 10, {})
    assert [hit.block_id for hit in hits] == ["k"]


async def test_the_meaning_of_what_words_found_is_asked_for_by_id() -> None:
    index_rows = [row("k", 10.0), row("picture", 9.0, block_type="image")]
    index = ScriptedIndex(index_rows, content_vector=[row("v", 0.8)])
    await searching(index).search(["pressure"], 10, {"doc_id": "d"})
    focused = index.requests[3]
    assert (focused.vectors[0].field, focused.vectors[0].k, focused.top) == ("content_vector", 1, 1)
    assert focused.select == ("block_id", "doc_id", "version")
    filter_text = focused.filter or ""
    assert "search.in(block_id, 'k'" in filter_text
    assert "doc_id eq 'd'" in filter_text
    assert filter_text.startswith("((access_control_list/any(")


async def test_what_is_asked_for_by_id_keeps_its_text() -> None:
    index = ScriptedIndex([row("k", 10.0)], content_vector=[{"block_id": "k", "@search.score": 0.8}])
    (hit,) = await searching(index).search(["pressure"], 10, {})
    assert (hit.content, hit.score) == ("text of k", 0.8125)


async def test_what_words_and_names_found_is_one_request() -> None:
    index = ScriptedIndex([row("k", 10.0)])
    await with_documents(index, NamedDocuments()).search(["Acme"], 10, {})
    focused = index.requests[3]
    assert "search.in(doc_id, 'named', '|') or search.in(block_id, 'k', '|')" in (focused.filter or "")
    assert (focused.top, "content" in focused.select) == (51, True)


async def test_the_words_of_what_meaning_found_are_asked_for_by_id() -> None:
    many = [row(f"k{number}", 50.0 - number) for number in range(50)]
    index = ScriptedIndex(many, content_vector=[row("v", 0.8), row("k3", 0.7)])
    await searching(index).search(["pressure"], 10, {})
    again = index.requests[-1]
    assert (again.text, again.select, again.top) == ("pressure", ("block_id", "doc_id", "version"), 1)
    assert "search.in(block_id, 'v'" in (again.filter or "")
    assert (again.filter or "").startswith("((access_control_list/any(")


async def test_words_that_showed_all_they_match_are_not_asked_again() -> None:
    index = ScriptedIndex([row("k", 10.0)], content_vector=[row("v", 0.8)])
    hits = await searching(index).search(["pressure"], 10, {})
    assert [bool(request.vectors) for request in index.requests] == [False, True, True, True]
    assert {hit.block_id: hit.score for hit in hits} == {"v": 0.5625, "k": 0.8125}
