"""Tests for the passages attributed to the search for a gap."""

from shared.answering.lookups import relevant_to_gap
from shared.retrieval.models import Hit


def hit(block_id: str, score: float, content: str = "The pump weighs 12 kg in all.") -> Hit:
    return Hit(block_id=block_id, doc_id="manual", filename="manual.pdf", content=content, score=score)


def test_a_passage_that_shares_only_common_words_is_not_found() -> None:
    assert relevant_to_gap([hit("needed", 0.47), hit("words", 0.38)], (), 0.4) == [hit("needed", 0.47)]


def test_a_passage_that_fits_much_worse_than_one_already_shown_is_not_found() -> None:
    hits = [hit("shown", 0.64), hit("needed", 0.5), hit("unrelated", 0.42)]
    assert relevant_to_gap(hits, {"shown"}, 0.4) == [hit("shown", 0.64), hit("needed", 0.5)]
    assert relevant_to_gap(hits, (), 0.4) == hits


def test_without_embeddings_the_best_words_count() -> None:
    assert relevant_to_gap([hit("words", 0.2)], (), 0.0) == [hit("words", 0.2)]


def test_a_heading_closes_no_gap() -> None:
    assert relevant_to_gap([hit("title", 0.9, content="manual.pdf")], (), 0.4) == []
