"""Tests for rankings of blocks: fused scores, rows that are checked late, copies, and merging."""

from collections.abc import Sequence

from shared.platform.search import Filters, IndexRow, SearchPage
from shared.retrieval.document_rows import DocumentRow
from shared.retrieval.fusion import REFERENCE_COSINE
from shared.retrieval.models import Hit
from shared.retrieval.ranking_merge import (
    crowding_spreadsheets,
    documents_to_check,
    merge_rankings,
    spreadsheets_last,
)
from shared.retrieval.rankings import Phrasing, Ranking, originals_first


def row(block_id: str, score: float, **more: object) -> IndexRow:
    return {"block_id": block_id, "doc_id": "d", "filename": "f.pdf", "@search.score": score, **more}


def page(*rows: IndexRow) -> SearchPage:
    return SearchPage(rows=rows)


def ranking(*rows: IndexRow, filters: Filters | None = None, named_id: str = "") -> Ranking:
    phrasing = Phrasing("Who?", (1.0,), "Who", page(*rows))
    return Ranking(phrasing, filters or {}, {named_id: 5.0} if named_id else {}, REFERENCE_COSINE)


def scores_of(ranked: Ranking) -> dict[str, float]:
    return {hit.block_id: hit.score for hit in ranked.hits}


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.block_id for hit in hits]


def hit(block_id: str, doc_id: str = "t", filename: str = "t.xlsx") -> Hit:
    return Hit(block_id=block_id, doc_id=doc_id, filename=filename)


def test_vector_results_are_fused_and_leave_the_rows_of_the_keyword_search() -> None:
    ranked = ranking(row("a", 10.0, content="whole"), row("b", 5.0))
    assert ids(ranked.hits) == ["a", "b"]
    partial_row = {"block_id": "a", "doc_id": "d", "@search.score": 0.8}
    ranked.add_vector_results([page(partial_row, row("c", 0.9))])
    assert [(best.block_id, best.content) for best in ranked.hits] == [("a", "whole"), ("b", ""), ("c", "")]


def test_unknown_keyword_scores_are_requested_only_if_the_keyword_page_is_full() -> None:
    for count, unknown in ((49, []), (50, ["v"])):
        ranked = ranking(*(row(f"k{number}", 1.0) for number in range(count)))
        ranked.add_vector_results([page(row("v", 0.8))])
        assert ranked.without_keyword_score == unknown


def test_a_requested_keyword_score_counts() -> None:
    ranked = ranking(row("k", 10.0))
    ranked.add_vector_results([page(row("v", 0.8))])
    before = scores_of(ranked)
    ranked.add_keyword_scores(page(row("v", 8.0)))
    after = scores_of(ranked)
    assert (round(after["v"] - before["v"], 6), after["k"]) == (0.2, before["k"])


def test_blocks_of_unreadable_documents_and_outdated_versions_are_dropped() -> None:
    ranked = ranking(
        row("closed", 9.0, doc_id="secret"), row("old", 8.0, version=1), row("new", 7.0, version=2)
    )
    ranked.check({"secret": None, "d": DocumentRow((("*",),), version=2)})
    assert ids(ranked.hits) == ["new"]


def test_copies_are_ordered_by_age_in_the_positions_that_they_have() -> None:
    rows = {
        "copy-x": DocumentRow((), content_hash="same", upload_date="2026-02-02"),
        "first-x": DocumentRow((), content_hash="same", upload_date="2026-02-01"),
        "unlike-x": DocumentRow((), content_hash="other", upload_date="2026-01-01"),
    }
    assert originals_first(["copy-x", "unlike-x", "first-x", "copy-y"], rows) == [
        "first-x",
        "unlike-x",
        "copy-x",
        "copy-y",
    ]


def test_a_block_in_several_rankings_comes_first_with_its_best_score() -> None:
    merged = merge_rankings([ranking(row("a", 9.0), row("b", 8.0)), ranking(row("b", 4.0), row("c", 4.0))])
    assert ids(merged) == ["b", "a", "c"]
    assert merged[0].score == 0.25


def test_three_blocks_of_a_spreadsheet_keep_their_rank_unless_it_is_named() -> None:
    hits = [*(hit(f"t{number}") for number in range(5)), hit("p", "p", "policy.pdf")]
    assert ids(spreadsheets_last(hits, ())) == ["t0", "t1", "t2", "p", "t3", "t4"]
    assert spreadsheets_last(hits, {"t"}) == hits


def test_spreadsheets_crowd_out_others_if_they_take_nearly_all_candidates() -> None:
    sheet = [row(f"t{number}", 60.0 - number, doc_id="t", filename="t.csv") for number in range(50)]
    other = row("p", 1.0, doc_id="p", filename="policy.pdf")
    assert crowding_spreadsheets([ranking(*sheet)], 5) == {"t"}
    assert crowding_spreadsheets([ranking(*sheet, other)], 2) == set()
    assert crowding_spreadsheets([ranking(*sheet[:20])], 5) == set()
    assert crowding_spreadsheets([ranking(*sheet, named_id="t")], 5) == set()
    assert crowding_spreadsheets([ranking(*sheet, filters={"doc_id": ("t",)})], 5) == set()
    assert crowding_spreadsheets([ranking(*sheet, filters={"doc_id": ("t", "u")})], 5) == {"t"}


def test_documents_with_a_copy_of_a_best_block_are_checked_as_well() -> None:
    best = hit("d1-words", "d1")
    ordered = [best, hit("d2-words", "d2"), hit("d3-others", "d3"), hit("memo", "d4")]
    assert documents_to_check([best], ordered) == {"d1", "d2"}
    assert documents_to_check([hit("memo", "d4")], [hit("note", "d5")]) == {"d4"}
