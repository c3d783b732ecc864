"""Tests for column types, which must fit every cell, and for the converted values."""

import pytest

from shared.tables.cell_values import ColumnReader, Decimals


def column(*cells: str, default: Decimals = "en") -> tuple[str, list[object]]:
    """Return the kind of a column and its converted values."""
    reader = ColumnReader()
    for cell in cells:
        reader.add(cell)
    convert = reader.converter(default)
    return reader.kind, [convert(cell) for cell in cells]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (("1", "20", "-3", ""), "integer", [1, 20, -3, None]),
        (("1,234.50", "2"), "number", [1234.5, 2]),
        (("1.234,50", "2"), "number", [1234.5, 2]),
        (("1.234", "12.5"), "number", [1.234, 12.5]),
        (("1.234", "12,5"), "number", [1234, 12.5]),
        (("1.234.567", "5"), "number", [1234567, 5]),
        (("1 234,5", "2"), "number", [1234.5, 2]),
        (("1'234.5", "2"), "number", [1234.5, 2]),
        (("1e-05", "2.5E+3"), "number", [1e-05, 2500.0]),
        (("(1,200.00)", "3"), "number", [-1200.0, 3]),
        (("−5", "7"), "integer", [-5, 7]),
        (("12.5%", "3 %"), "percent", [0.125, 0.03]),
        (("€ 1.234,50", "€ 2,00"), "money", [1234.5, 2.0]),
        (("1,234.50 EUR", "-€2.00"), "money", [1234.5, -2.0]),
        (("$5", "-"), "money", [5, None]),
        (("2024-01-31", ""), "date", ["2024-01-31", None]),
        (("31.12.2024", "1.2.2023"), "date", ["2024-12-31", "2023-02-01"]),
        (("31/12/2024", "01/02/2023"), "date", ["2024-12-31", "2023-02-01"]),
        (("12/31/2024", "01/02/2023"), "date", ["2024-12-31", "2023-01-02"]),
        (("2024-01-31T10:00:00",), "date", ["2024-01-31 10:00:00"]),
    ],
)
def test_columns_of_one_kind_are_typed(cells: tuple[str, ...], kind: str, values: list[object]) -> None:
    assert column(*cells) == (
        kind,
        pytest.approx(values) if kind in ("number", "money", "percent") else values,
    )


@pytest.mark.parametrize(
    "cells",
    [
        ("1", "one"),
        ("007", "010"),
        ("1234567890123456", "2"),
        ("$5", "€5"),
        ("5%", "5"),
        ("1.5", "1,5"),
        ("01/02/2024", "03/04/2024"),  # ambiguous: day or month first
        ("31/12/2024", "12/31/2024"),
        ("2024-02-30",),
        ("(5", "5"),
        ("", ""),
        ("n/a", "-"),
        ("1-2", "3"),
        ("1.2.3", "4"),
    ],
)
def test_columns_of_several_kinds_stay_text(cells: tuple[str, ...]) -> None:
    assert column(*cells) == ("text", [cell or None for cell in cells])


def test_numbers_that_fit_both_ways_follow_the_default() -> None:
    assert column("1.234", "5", default="de")[1] == [1234, 5]
    assert column("1.234", "5", default="en")[1] == [1.234, 5]


def test_a_missing_value_has_no_number_but_its_text_is_kept() -> None:
    reader = ColumnReader()
    for cell in ("1", "n/a", "3"):
        reader.add(cell)
    assert (reader.kind, reader.has_raw) == ("integer", True)
    assert reader.converter("en")("n/a") is None


def test_a_currency_in_some_cells_is_that_of_the_column() -> None:
    reader = ColumnReader()
    for cell in ("$5", "6", "-", "$7.5"):
        reader.add(cell)
    assert (reader.kind, reader.currency) == ("money", "USD")
    assert [reader.converter("en")(cell) for cell in ("$5", "6", "-")] == [5, 6, None]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (
            ("1.234,5", "1.198,0", "987,25", "< 0,5", "ca. 950"),
            "number",
            [1234.5, 1198.0, 987.25, None, None],
        ),
        (("3", "4", "on request", "(siehe Anlage)", "5"), "integer", [3, 4, None, None, 5]),
        (("3", "4", "offen", "TBD", "5"), "integer", [3, 4, None, None, 5]),
        (("3.5", "4.5", "Lobby"), "number", [3.5, 4.5, None]),
        (("EUR 5", "12*", "EUR 7"), "money", [5, None, 7]),
        (("31.12.2024", "unbefristet", "1.2.2025"), "date", ["2024-12-31", None, "2025-02-01"]),
    ],
)
def test_a_few_remarks_have_no_value(cells: tuple[str, ...], kind: str, values: list[object]) -> None:
    assert column(*cells) == (kind, values)


@pytest.mark.parametrize(
    "cells",
    [
        ("1", "2", "12a"),
        ("2", "3", "A-1"),
        ("1", "on request", "open", "2"),
        ("EG", "1", "2", "3", "DG"),
        ("100", "200", "ABC", "300"),
    ],
)
def test_names_with_digits_and_many_remarks_are_text(cells: tuple[str, ...]) -> None:
    assert column(*cells) == ("text", list(cells))


def test_a_number_before_a_long_row_of_signs_is_text() -> None:
    cells = ("1", "2", "3", "4" + "*" * 32_000)
    assert column(*cells) == ("text", list(cells))


def test_remarks_are_kept_as_written() -> None:
    reader = ColumnReader()
    for cell in ("2024-12-31", "open", "2025-01-01"):
        reader.add(cell)
    assert (reader.kind, reader.has_raw, reader.remark_count) == ("date", True, 1)
