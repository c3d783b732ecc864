"""Tests for counting the items that a text lists."""

import pytest

from shared.evidence.listed_items import listed_counts


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("- A\n- B\n\n- C\n", {3}),
        ("They are:\n1. A\n2) B\nBoth end.\n* C", {2, 1}),
        ("| a |\n|---|\n| 1 |\n| 2 |\n| 3 |\n| 4 |", {4}),
        ("Three renew: C-1007 (Telvia, 31 May), C-1004 (Cleanworks) and C-1001 (Nordrack).", {3}),
        ("They are: Apia, Bonn, and Cork. It is so: Dover; Essen.", {3, 2}),
        ("Es sind: A, B, C sowie D.", {4}),
        ("Es sind: A und B.", {2}),
        ("Note: in 2025, these were late: Apia and Bonn.", {2}),
        ("It cost: 1,200.", {1}),
        ("In 2025, the North, the South and the West grew at 10:30, A, B.", set()),
    ],
)
def test_lists_tables_and_enumerations_are_counted(text: str, counts: set[int]) -> None:
    assert listed_counts(text) == counts
