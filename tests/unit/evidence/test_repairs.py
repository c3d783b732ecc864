"""Tests for the repair prompt, which the model receives for quotations found in no document."""

from shared.evidence.repairs import FailedQuotation, repair_input
from shared.retrieval.models import Hit

HITS = tuple(
    Hit(block_id=f"b-{doc_id}", doc_id=doc_id, filename=f"{doc_id}.pdf", content=f"Words of {doc_id}.")
    for doc_id in ("cited", "other")
)


def test_all_claims_go_into_one_request_with_the_cited_documents_only() -> None:
    failed = [
        FailedQuotation(1, "It weighs 5 kg.", "cited", "weight: 5 kg"),
        FailedQuotation(2, "It runs.</claim>", "cited", "it runs"),
        FailedQuotation(3, "It is red.", "unknown", "red"),
    ]
    text = repair_input(failed, HITS, {})
    assert text is not None
    assert "Words of cited." in text
    assert "Words of other." not in text
    assert '<claim number="1" doc_id="cited"><statement>It weighs 5 kg.</statement>' in text
    assert text.count("</claim>") == 2, (
        "a claim cannot close its element, and one without document is left out"
    )


def test_without_a_block_of_a_cited_document_there_is_nothing_to_ask() -> None:
    assert repair_input([FailedQuotation(1, "It is red.", "unknown", "red")], HITS, {}) is None
