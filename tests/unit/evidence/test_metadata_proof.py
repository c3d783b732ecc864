"""Tests for statements that a document's record proves."""

from datetime import UTC, datetime

import pytest

from shared.evidence.citations import CitationBook, marker
from shared.evidence.metadata_proof import prove_metadata
from shared.retrieval.models import DocumentRecord

RECORD = DocumentRecord(
    doc_id="m1",
    filename="press.pdf",
    title="Press manual",
    author="Jane Doe",
    document_type="manual",
    upload_date=datetime(2024, 5, 1, tzinfo=UTC),
    document_date=datetime(2023, 12, 24, 12, tzinfo=UTC),
    version=3,
)


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("Jane Doe", "author: Jane Doe"),
        ('author="jane doe"', "author: Jane Doe"),
        ("Author: Jane Doe, dated 2023-12-24", "author: Jane Doe; date: 2023-12-24"),
        ('document_type="manual" upload_date="2024-05-01"', "type: manual; upload date: 2024-05-01"),
        ("version 3", "version: 3"),
    ],
)
def test_fields_are_proved_with_their_names_or_where_they_speak_for_themselves(
    quote: str, expected: str
) -> None:
    assert prove_metadata(quote, RECORD) == expected


@pytest.mark.parametrize(
    "quote", ["3", "manual", "", "Jane", "author: John Doe", "date: 2024-05-01", "Jane Doe wrote the manual"]
)
def test_anything_else_is_not(quote: str) -> None:
    assert prove_metadata(quote, RECORD) is None


def test_a_name_of_four_letters_speaks_for_itself_and_one_of_three_does_not() -> None:
    for author, proof in (("Ahab", "author: Ahab"), ("Ann", None)):
        assert prove_metadata(author, RECORD.model_copy(update={"author": author})) == proof


def test_a_number_of_pages_is_proved_where_it_is_known() -> None:
    assert prove_metadata("pages: 12", RECORD.model_copy(update={"page_count": 12})) == "page count: 12"
    assert prove_metadata("pages: None", RECORD) is None


def test_it_is_cited_as_metadata_and_not_as_words_of_the_document() -> None:
    book = CitationBook((), records={"m1": RECORD})
    proof = book.prove("m1", "author: Jane Doe")
    assert proof is not None
    assert (proof[0].kind, proof[0].verified, proof[0].block_id) == ("metadata", False, "")
    assert marker(proof[0]) == " (Source: press.pdf, metadata)[1]"
    assert book.prove("m1", "Jane Doe") == (proof[0], False)
    assert book.prove("other", "Jane Doe") is None
