"""Tests for series of files, and for questions about several of a series."""

import pytest

from shared.retrieval.document_series import repeated_series, series_of, series_words, speaks_of_editions


@pytest.mark.parametrize(
    ("filename", "series"),
    [
        ("2023 Q1 NVDA.pdf", "# nvda"),
        ("2022 Q3 NVDA.pdf", "# nvda"),
        ("annual-report-2023.pdf", "annual report #"),
        ("annual_report_2024.docx", "annual report #"),
        ("Protokoll 12. März 2024.md", "protokoll #"),
        ("Protokoll_3_Oktober_2024.md", "protokoll #"),
        ("minutes-v2.pdf", "minutes #"),
        ("travel-policy.pdf", ""),
        ("2023.pdf", ""),
        ("2023-05.pdf", ""),
        ("report 2023", "report #"),
        ("", ""),
        (".pdf", ""),
    ],
)
def test_what_changes_is_told_from_what_stays(filename: str, series: str) -> None:
    assert series_of(filename) == series


def test_words_in_another_order_are_another_series() -> None:
    assert series_of("report 2023 sales.pdf") != series_of("sales report 2023.pdf")


def test_a_series_needs_several_names_and_the_longest_comes_first() -> None:
    names = [
        "a 1.pdf",
        "b 1.pdf",
        "b 2.pdf",
        "b 2.pdf",
        "c 1.pdf",
        "c 2.pdf",
        "c 3.pdf",
        "plain.pdf",
        "other.pdf",
    ]
    assert repeated_series(names) == ("c #", "b #")
    assert series_words("annual report #") == "annual report"


@pytest.mark.parametrize(
    "question",
    [
        "Which lawsuits are disclosed in these 10-Qs?",
        "Were shares bought back in the reported quarters?",
        "List it for each reporting period.",
        "What changed over the last three annual reports?",
        "Was steht dazu in diesen Berichten?",
        "Wie hoch war der Umsatz in den letzten drei Jahren?",
    ],
)
def test_several_editions_are_spoken_of_without_a_name(question: str) -> None:
    assert speaks_of_editions(question)


@pytest.mark.parametrize(
    "question",
    [
        "What was the gross margin in the latest quarter?",
        "How did expenses for Q1 2023 compare to revenue for the same quarter?",
        "Who reports to the quality manager?",
        "Wie lange ist die Gewährleistung?",
    ],
)
def test_one_edition_is_not_several(question: str) -> None:
    assert not speaks_of_editions(question)
