"""Where sentences end, and where they only seem to."""

import pytest

from shared.evidence.text import split_sentences, split_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("See Fig. 3 and Dr. Smith. Then go.", ["See Fig. 3 and Dr. Smith.", "Then go."]),
        ("It costs 3.5 bar. ok", ["It costs 3.5 bar. ok"]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("J. Doe wrote it. He knew.", ["J. Doe wrote it.", "He knew."]),
        ("row one\nrow two", ["row one", "row two"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_scripts_without_blanks_are_cut_into_bounded_runs() -> None:
    assert [len(word) for word in split_words("語" * 90)] == [40, 40, 10]
