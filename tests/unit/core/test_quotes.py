"""What counts as proof, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.quotes import is_verbatim, normalise

BLOCK = "The pump runs at 15 bar. Its “safe” limit—set by the maker—is 1,200 rpm for main-\ntenance work."


@pytest.mark.parametrize(
    "quote",
    [
        "The pump runs at 15 bar.",
        "The  pump\nruns at 15 bar",
        'Its "safe" limit-set by the maker-is 1,200 rpm',
        "for maintenance work",
        "15 bar",
        "1,200 rpm",
    ],
)
def test_the_same_words_in_another_typography_are_verbatim(quote: str) -> None:
    assert is_verbatim(quote, BLOCK)


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        ("5 bar", "inside 15 bar"),
        ("200 rpm", "inside 1,200 rpm"),
        ("1", "inside 15 and 1,200"),
        ("the pump runs at 15 bar", "other case"),
        ("The pump … 15 bar", "ellipsis"),
        ("The pump ran at 15 bar", "another word"),
        ("for", "proves nothing"),
        ("", "nothing"),
        ("   ", "nothing"),
        ("he pump runs", "cut inside a word"),
    ],
)
def test_anything_looser_is_not(quote: str, why: str) -> None:
    assert not is_verbatim(quote, BLOCK), why


def test_only_words_are_joined_at_the_end_of_a_line() -> None:
    assert is_verbatim("see 10- 20 pieces", "see 10-\n20 pieces")
    assert not is_verbatim("see 1020 pieces", "see 10-\n20 pieces")
    assert not is_verbatim("first second", "first-\n\nsecond")


def test_a_decimal_is_not_proved_by_its_end() -> None:
    assert not is_verbatim("5 percent", "a rate of 3.5 percent")
    assert not is_verbatim("a rate of 3", "a rate of 3.5 percent")
    assert is_verbatim("a rate of 3", "a rate of 3. Then more.")


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(min_size=1), st.text(), st.text())
def test_a_whole_paragraph_is_verbatim_between_any_others(middle: str, before: str, after: str) -> None:
    text = f"{before}\n\nSentence 1 {middle} ends here.\n\n{after}"
    assert is_verbatim(f"Sentence 1 {middle} ends here.", text)
