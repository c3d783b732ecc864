"""Tests for formatting result cells in the notation of the answer's language."""

import pytest

from shared.evidence.models import Cell
from shared.evidence.number_format import column_texts
from shared.evidence.number_proof import numbers_of


@pytest.mark.parametrize(
    ("cell", "language", "expected"),
    [
        (8900.0, "de", "8900"),
        (8900.5, "de", "8900,5"),
        (12345.67, "de-AT", "12.345,67"),
        (12345.67, "en", "12,345.67"),
        (12345.67, "fr", "12\u202f345,67"),
        (0.1 + 0.2, "de", "0,3"),
        (-1234567, "en", "-1,234,567"),
        (2024, "de", "2024"),
        (9999, "en", "9999"),
        (10_000, "en", "10,000"),
        (12_345_678_901_234_567, "en", "12,345,678,901,234,567"),
        (1e20, "de", "1e+20"),
        ("1.5", "de", "1.5"),
        (None, "de", ""),
    ],
)
def test_numbers_are_written_as_the_language_writes_them(cell: Cell, language: str, expected: str) -> None:
    assert column_texts([cell], language) == [expected]


def test_numbers_that_are_names_have_no_separators() -> None:
    assert [column_texts([4711001], "de", name)[0] for name in ("customer_id", "Kunden-Nr", "revenue")] == [
        "4711001",
        "4711001",
        "4.711.001",
    ]


@pytest.mark.parametrize("language", ["en", "de", "fr", "sv", "ru"])
@pytest.mark.parametrize("value", [8900.5, 12345.25, 1234567.0, 3])
def test_what_is_written_is_read_as_the_same_number(value: float, language: str) -> None:
    (number,) = numbers_of(f"Total {column_texts([value], language)[0]} EUR", language)
    assert float(number.value) == value


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        ([1196, 9145.3, 100598, None, "n/a"], ["1,196.0", "9,145.3", "100,598.0", "", "n/a"]),
        ([1196.0, 9145.25, 12.5], ["1196.00", "9145.25", "12.50"]),
        ([2024, 2025], ["2024", "2025"]),
        ([1.125, 3], ["1.125", "3.000"]),
        ([-5000, 12000], ["-5,000", "12,000"]),
        ([1224.16666666667, 3], ["1224.16666666667", "3"]),
    ],
)
def test_numbers_of_a_column_have_the_same_form(cells: list[Cell], texts: list[str]) -> None:
    assert column_texts(cells, "en") == texts
