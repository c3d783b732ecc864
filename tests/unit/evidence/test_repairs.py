"""Tests for the repair prompt, which the model receives for quotations found in no document."""

import pytest

from shared.evidence.repairs import FailedQuotation, keeps_numbers, repair_input
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


@pytest.mark.parametrize(
    ("replacement", "expected"),
    [
        ("to the sponsor within 24 hours and to the committee within seven days", True),
        ("to the sponsor within 24 hours and to the committee", False),
        ("to the committee within 7 days", False),
    ],
)
def test_a_replacement_keeps_the_numbers_that_the_failed_quotation_has_of_the_claim(
    replacement: str, expected: bool
) -> None:
    failed = FailedQuotation(
        1,
        "In 2026, events are reported within 7 days, and to the sponsor within 24 hours.",
        "d1",
        "3.1 An event is reported to the sponsor within 24 hours and to the committee within 7 days",
    )
    assert keeps_numbers(failed, replacement, "en") is expected
