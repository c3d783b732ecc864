"""Tests for answers without a model: proved quotations, best first, whatever the documents contain."""

from datetime import UTC, datetime

import pytest

from shared.evidence.alignment import align
from shared.evidence.block_text import BlockText
from shared.evidence.citations import CitationBook
from shared.evidence.messages import ENGLISH
from shared.evidence.passage_answer import MAX_PASSAGES, list_documents, quote_passages
from shared.retrieval.models import DocumentRecord, Hit

QUESTION = "At what pressure does the pump run?"


def hit(content: str, number: int = 1, **changes: object) -> Hit:
    values = {"block_id": f"b{number}", "doc_id": "manual", "filename": "manual.pdf", "page_number": number}
    return Hit.model_validate({**values, "score": 0.5, "content": content, **changes})


def quoted(*hits: Hit) -> tuple[str, CitationBook]:
    book = CitationBook(hits=hits)
    return quote_passages(QUESTION, book, ENGLISH), book


def test_of_each_block_the_sentence_that_shares_most_words_is_quoted() -> None:
    text, book = quoted(hit("The house is red. The pump runs at a pressure of 15 bar. It is old."))
    assert text.startswith("These passages of the documents fit the question best:\n\n- “")
    assert "“The pump runs at a pressure of 15 bar.” (Source: manual.pdf, S. 1)[1]" in text
    assert [(one.quote, one.verified) for one in book.citations] == [
        ("The pump runs at a pressure of 15 bar.", True)
    ]


def test_no_more_passages_than_a_reader_takes_in_and_none_twice() -> None:
    same = [hit("The pump runs at 15 bar.", 1), hit("The pump runs at 15 bar.", 1)]
    others = [hit(f"The pump of hall {number} runs at {number} bar.", number) for number in range(2, 9)]
    text, book = quoted(*same, *others)
    assert len(book.citations) == MAX_PASSAGES
    assert text.count("“") == MAX_PASSAGES


def test_what_shares_a_name_with_the_question_and_no_more_is_left_out() -> None:
    text, _ = quoted(
        hit("The pump: operating manual", 1), hit("The pump shall run at a pressure of 15 bar.", 2)
    )
    assert "operating manual" not in text
    assert "15 bar" in text


def test_a_title_is_quoted_only_where_there_is_nothing_else() -> None:
    title, statement = hit("Pump Pressure Manual", 1), hit("It runs at 15 bar.", 2)
    assert "Manual”" not in quoted(title, statement)[0]
    assert "“Pump Pressure Manual”" in quoted(title)[0]


def test_where_no_word_is_shared_the_order_of_the_search_is_kept() -> None:
    text, _ = quoted(hit("Der Druck beträgt 15 bar.", 1), hit("Das Haus ist rot gestrichen.", 2))
    assert text.index("15 bar") < text.index("rot")


def test_a_long_sentence_is_cut_between_words_and_stays_verbatim() -> None:
    content = "The pump pressure is " + "described at length " * 60
    _, book = quoted(hit(content))
    (citation,) = book.citations
    assert len(citation.quote) <= 300
    assert align(citation.quote, BlockText(content))


def test_what_a_document_says_cannot_look_like_ours() -> None:
    text, _ = quoted(hit("The pump runs [here](http://x.example) at 15 bar (Source: a.pdf, S. 1)[7]."))
    assert "http" not in text
    assert "[7]" not in text
    assert "(Source: a.pdf" not in text


def test_a_row_of_a_table_is_shown_as_its_cells() -> None:
    text, _ = quoted(hit("| pump | pressure |\n|---|---|\n| P1 pump pressure | 15 bar |"))
    assert "“P1 pump pressure · 15 bar”" in text


@pytest.mark.parametrize(
    "useless",
    [hit(""), hit("Yes."), hit("", block_type="image", image_caption="The pump pressure in a chart.")],
)
def test_what_proves_nothing_is_not_quoted(useless: Hit) -> None:
    text, book = quoted(useless)
    assert (text, book.citations) == ("", [])


def test_documents_are_listed_by_name_and_date() -> None:
    dated = datetime(2026, 1, 2, tzinfo=UTC)
    records = [
        DocumentRecord(doc_id="a", filename="a.pdf", title="Annual [report](x)", upload_date=dated),
        DocumentRecord(doc_id="b", filename="b.pdf", upload_date=dated),
    ]
    assert list_documents(records, ENGLISH).splitlines()[2:] == [
        r"- Annual \[report\](x) (a.pdf, 2026-01-02)",
        "- b.pdf (2026-01-02)",
    ]
    assert list_documents([], ENGLISH) == ""
