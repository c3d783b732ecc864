"""Which documents a question names."""

from datetime import UTC, datetime

import pytest

from shared.retrieval.document_names import (
    match_reference,
    match_references,
    reference_query,
    spelled_as_named,
)
from shared.retrieval.models import DocumentRecord


def record(filename: str, title: str = "", document_type: str = "report") -> DocumentRecord:
    return DocumentRecord(
        doc_id=filename,
        filename=filename,
        title=title,
        document_type=document_type,
        upload_date=datetime(2026, 1, 1, tzinfo=UTC),
    )


REPORTS = (
    record("report-2023.pdf", "Annual report 2023"),
    record("report-2024.pdf", "Annual report 2024"),
    record("pump-manual.pdf", "HX-200 pump: operating manual", "manual"),
)


def names(reference: str) -> list[str]:
    return [found.filename for found in match_reference(reference, REPORTS)]


def test_a_file_name_means_that_file() -> None:
    assert names("report-2023.pdf") == ["report-2023.pdf"]
    assert names("Report-2023") == ["report-2023.pdf"]


def test_a_title_means_that_document() -> None:
    assert names("annual REPORT 2024") == ["report-2024.pdf"]


def test_some_words_of_a_title_are_enough() -> None:
    assert names("the pump manual") == ["pump-manual.pdf"]


def test_a_year_tells_two_versions_apart() -> None:
    assert names("the 2024 report") == ["report-2024.pdf"]


def test_an_ambiguous_reference_means_all_that_fit() -> None:
    assert names("the annual reports") == ["report-2023.pdf", "report-2024.pdf"]


def test_an_unknown_name_means_nothing() -> None:
    assert names("travel policy") == []
    assert names("the document") == []


@pytest.mark.parametrize(
    "reference", ["annual-report-2019.pdf", "HX-400 pump operating manual", "report 2023 v2"]
)
def test_a_number_that_no_document_bears_means_nothing(reference: str) -> None:
    assert names(reference) == []


def test_a_model_number_may_be_written_together() -> None:
    assert names("HX200 manual") == ["pump-manual.pdf"]


@pytest.mark.parametrize("reference", ["", "  "])
def test_a_blank_reference_names_no_untitled_document(reference: str) -> None:
    assert match_reference(reference, [record("README", "")]) == ()


def test_several_references_keep_their_order_and_repeat_nothing() -> None:
    found = match_references(["pump manual", "report 2023", "pump-manual.pdf"], REPORTS)
    assert [item.filename for item in found] == ["pump-manual.pdf", "report-2023.pdf"]


def test_a_misspelt_word_is_spelled_as_the_documents_spell_it() -> None:
    assert spelled_as_named("the anual reprot 2023", REPORTS) == "the annual report 2023"


def test_a_word_that_a_document_bears_is_never_changed() -> None:
    assert spelled_as_named("annual reports HX-300", REPORTS) == "annual reports HX-300"


def test_misspelt_words_are_searched_for_with_slips_but_numbers_are_not() -> None:
    assert reference_query("pmup manual 2023") == "2023 2023* manual manual* manual~1 pmup pmup*"
