"""Tests for resolving references to documents, also misspelt ones."""

import pytest

from shared.retrieval.document_names import match_reference, reference_query, spelled_as_named
from tests.fakes.records import named_record

REPORTS = (
    named_record("report-2023.pdf", "Annual report 2023"),
    named_record("report-2024.pdf", "Annual report 2024"),
    named_record("pump-manual.pdf", "HX-200 pump: operating manual", "manual"),
    named_record("fire-drill.eml", "Fire drill on 6 November"),
)


def names(reference: str) -> list[str]:
    return [report.filename for report in match_reference(reference, REPORTS)]


def test_a_file_name_means_that_file() -> None:
    assert names("report-2023.pdf") == ["report-2023.pdf"]
    assert names("Report-2023") == ["report-2023.pdf"]


def test_a_title_means_that_document() -> None:
    assert names("annual REPORT 2024") == ["report-2024.pdf"]


def test_some_words_of_a_title_are_enough() -> None:
    assert names("the pump manual") == ["pump-manual.pdf"]


def test_tags_complete_a_name() -> None:
    policy = named_record("BP-77.pdf", "Property policy", "policy").model_copy(
        update={"tags": ("Insurance", "Hull")}
    )
    tagged = named_record("e-3.pdf", "Endorsement 3").model_copy(update={"tags": ("insurance", "policy")})
    assert match_reference("the insurance policy", (tagged, policy)) == (policy,)
    assert match_reference("insurance cover", (tagged, policy)) == ()


def test_a_month_may_be_written_as_a_number() -> None:
    reports = [
        named_record(f"inspection-report-2025-{month:02}.md", "Inspection report") for month in range(1, 13)
    ]
    for reference in (
        "inspection report March 2025",
        "inspection report März 2025",
        "2025-03 inspection report",
    ):
        assert [report.filename for report in match_reference(reference, reports)] == [reports[2].filename]
    assert len(match_reference("inspection report 2025", reports)) == len(reports)


def test_a_file_may_be_called_by_its_format() -> None:
    assert names("the fire drill e-mail") == ["fire-drill.eml"]
    assert names("the e-mail") == []
    assert names("the parking e-mail") == []


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
    assert match_reference(reference, [named_record("README", "")]) == ()


def test_a_misspelt_word_is_spelled_as_the_documents_spell_it() -> None:
    assert spelled_as_named("the anual reprot 2023", REPORTS) == "the annual report 2023"


def test_a_word_that_a_document_bears_is_never_changed() -> None:
    assert spelled_as_named("annual reports HX-300", REPORTS) == "annual reports HX-300"


def test_misspelt_words_are_searched_for_with_slips_but_numbers_are_not() -> None:
    assert reference_query("pmup manual 2023") == "2023 2023* manual manual* manual~1 pmup pmup*"
