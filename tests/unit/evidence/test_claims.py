"""Which statement a citation belongs to."""

import pytest

from shared.evidence.text import last_claim

TABLE = "Intro.\n\n| a | b |\n|---|---|\n| x | 9 bar"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("", ""),
        ("One. Two\n\nThree. Four. \n", "Three. Four."),
        (TABLE, "| a | b |\n| x | 9 bar"),
        ("| a", "| a"),
        ("x" * 20_000, "x" * 500),
    ],
)
def test_the_claim_is_the_whole_line_or_the_row_with_its_header(text: str, claim: str) -> None:
    assert last_claim(text) == claim
