"""Tests for judging table results, which are correct if they contain the gold columns row by row."""

import pytest

from evals.tables.questions import holds

GOLD = [["North", 130], ["South", 80.0]]


@pytest.mark.parametrize(
    ("rows", "is_right"),
    [
        (GOLD, True),
        ([["South", 80], ["North", 130]], True),
        ([[130.0, "x", "North"], ["80", "y", "South"]], True),
        ([["North", 80], ["South", 130]], False),
        ([["North", 130]], False),
        ([["North", 130], ["South", 80], ["East", 0]], False),
        ([[130], [80]], False),
        ([], False),
    ],
)
def test_columns_may_stand_in_any_order_and_rows_must_agree(rows: list[list[object]], is_right: bool) -> None:
    assert holds(rows, GOLD) is is_right
    assert holds([], [])
