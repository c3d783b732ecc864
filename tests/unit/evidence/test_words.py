"""Tests for splitting text into words, which must succeed for any document."""

import random

import pytest

from shared.evidence.words import block_words, quoted_words, shown_form

_PIECES = (
    "- ", "-\n", "-|-", "\n\t", "  ", ".", "|", "(", ")", "%", "++", "#", "°C", "\x02", "\ufffe", "1", "1,5",
    "3 000", "a", "end", "www.", "Next", "é", "़", "語", "10²", "½",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("12 % of all", ["12", "%", "of", "all"]),
        ("Pa is a unit", ["pa", "is", "a", "unit"]),
        ("5 The PSI", ["5", "the", "psi"]),
        ("5 mW", ["5", "mW"]),
        ("1.5 MHz", ["1.5", "MHz"]),
        ("5 Hours", ["5", "hours"]),
        ("5 Hour", ["5", "hour"]),
        ("1 500 kg", ["1 500", "kg"]),
        ("10 - 20 °C", ["10-20", "°c"]),
        ("non-\nflammable", ["nonflammable|non-flammable"]),
        ("5² m", ["5^2", "m"]),
        ("1,5² m", ["1,5^2", "m"]),
        ("x² m", ["x2|x", "m"]),
        ("5 ² m", ["5", "^2", "m"]),
        ("1.5 ² m", ["1.5", "^2", "m"]),
        ("the pump ¹ runs", ["the", "pump", "runs"]),
        ("Sales² rose", ["sales2|sales", "rose"]),
        ("5 km² of land", ["5", "km2", "of", "land"]),
        ("1.5 m² of land", ["1.5", "m2", "of", "land"]),
    ],
)
def test_words_are_compared_by_their_spellings(text: str, keys: list[str]) -> None:
    assert ["|".join(word.keys) for word in quoted_words(shown_form(text))] == keys


def test_numbers_are_split_from_their_units_and_ideographs_from_each_other() -> None:
    text = "at 15kW, 250巴是"
    words = quoted_words(text)
    assert [word.key for word in words] == ["at", "15", "kW", "250", "巴", "是"]
    assert [text[word.start : word.end] for word in words] == [word.key for word in words]


def test_digits_may_be_cells_instead_of_one_number() -> None:
    assert [word.key for word in quoted_words("1 500", groups_digits=False)] == ["1", "500"]


@pytest.mark.parametrize(
    ("text", "borders"),
    [
        ("", ""),
        ("The pump runs. It", "PARAGRAPH NONE NONE SENTENCE"),
        ("“Stop!” He", "PARAGRAPH SENTENCE"),
        ("停。动", "PARAGRAPH SENTENCE"),
        ("Open it\nVent it\nand wait", "PARAGRAPH NONE LINE NONE NONE NONE"),
        ("a: b; c, d", "PARAGRAPH STRONG STRONG CLAUSE"),
        ("a\n\nb\n- c\n# d", "PARAGRAPH PARAGRAPH PARAGRAPH PARAGRAPH"),
        ("1) Open\n2) Vent", "PARAGRAPH SENTENCE PARAGRAPH SENTENCE"),
        ("| a | b |\n| c |", "PARAGRAPH CLAUSE SENTENCE"),
        ("Exhibit A. The pump", "PARAGRAPH NONE CLAUSE NONE"),
    ],
)
def test_the_strongest_border_before_each_word(text: str, borders: str) -> None:
    assert [word.border.name for word in block_words(text)] == borders.split()


def test_the_joint_before_each_word() -> None:
    joints = [word.joint.name for word in quoted_words("“Stop” … he said, now\nor. . . never")]
    assert joints == ["SIGN", "ELLIPSIS", "NONE", "SIGN", "SIGN", "ELLIPSIS"]


def test_a_broken_word_after_a_connected_one() -> None:
    """Guard against Python 3.11's SystemError for a capturing group in a possessive repetition."""
    text = "a | b |<?http://evil.example- \n\twww.evil.example\n-|-\n"
    assert quoted_words(text)[-1].keys == ("evil.examplewww.evil.example", "evil.example-www.evil.example")


def test_any_text_is_split_in_order() -> None:
    pieces = random.Random(1)
    for _ in range(3_000):
        text = shown_form("".join(pieces.choice(_PIECES) for _ in range(pieces.randint(1, 25))))
        for words in (block_words(text), quoted_words(text), quoted_words(text, groups_digits=False)):
            spans = [span for word in words for span in (word.start, word.end)]
            assert spans == sorted(spans)
            assert all(word.keys and text[word.start : word.end] for word in words)
