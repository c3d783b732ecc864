"""Tests for measuring PDF text extraction, on files whose words are known."""

from pathlib import Path

import pytest

from evals.pdf_text import measure_file, missed, running_rows, similarity, tokens
from tests.unit.ingestion.pdf_files import PdfMaker


def test_rows_that_stand_in_a_table_are_counted(tmp_path: Path) -> None:
    rows = (("", "2023", "2022"), ("Net sales", "3,642", "3,507"), ("Profit", "662", "645"))
    path = PdfMaker().page().paragraph("The results:").rows(*rows).write(tmp_path / "a.pdf")
    reading = measure_file(path)
    assert (reading.rows, reading.tabled, reading.lost, reading.numbers_added) == (3, 3, 0, 0)
    assert reading.tables == {1: 1}


def test_rows_that_stay_text_are_counted_and_named(tmp_path: Path) -> None:
    path = PdfMaker().page().rows(("Net sales", "3,642", "3,507")).write(tmp_path / "a.pdf")
    reading = measure_file(path)
    assert (reading.rows, reading.tabled) == (1, 0)
    assert reading.examples == ["1 row: Net sales 3,642 3,507"]


def test_lines_at_the_edge_of_several_pages_are_running_lines() -> None:
    pages = [[["Annual", "report"], ["Text", str(number)], ["Page", str(number)]] for number in range(1, 5)]
    pages[0][1] = ["Only", "here"]
    assert running_rows(pages)[0] == ["Annual report", "Page 1"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("abcd", "abcd", 1.0), ("abcd", "abd", 6 / 7), ("abc", "xyz", 0.0), ("", "", 1.0)],
)
def test_similarity_counts_the_longest_common_subsequence(one: str, other: str, expected: float) -> None:
    assert similarity(one, other) == pytest.approx(expected)


def test_hyphens_within_words_part_nothing_and_numbers_keep_their_signs() -> None:
    assert tokens("cutting-\nedge 1,234.5 (7)") == tokens("cuttingedge 1,234.5 7")


def test_a_report_below_a_target_names_it() -> None:
    report = {
        "financebench": {"tabled": 0.5, "lost": 0.001, "numbers_added": 0},
        "similarity": {"mean": 0.95},
    }
    assert missed(report) == ["tabled"]
