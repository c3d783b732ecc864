"""What counts as proof, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.evidence.quotes import is_verbatim, normalise

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


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("5 °C is the minimum", "-5 °C is the minimum"),
        ("5 °C is the minimum", "−5 °C is the minimum"),
        ("5 °C is the minimum", "±5 °C is the minimum"),
        ("500 kg is", "1 500 kg is the load"),
        ("500 kg is", "1\u202f500 kg is the load"),
        ("500 kg is", "1\u00a0500 kg is the load"),
        ("500 kg is", "1'500 kg is the load"),
        ("500 kg is", "1’500 kg is the load"),
        ("500 000 kg is", "1 500 000 kg is the load"),
        ("the load is 1", "the load is 1 500 kg"),
        ("the load is 1", "the load is 1 1/2 t"),
        ("the load is 10", "the load is 10-20 kg"),
        ("the load is 10", "the load is 10³ kg"),
        ("102 m is the length", "10² m is the length"),
        ("103 Pa is the limit", "10³ Pa is the limit"),
        ("2 turns", "Open by 1/2 turns."),
        ("2 turns", "Open by ½ turns."),
        ("1/2 turns", "Open by 1½ turns."),
        ("11/2 turns", "Open by 1½ turns."),
        ("5 bar", "At .5 bar it opens."),
        (".5 bar is", "At 3.5 bar is the limit"),
        ("a rate of 3.", "a rate of 3.5 percent"),
        ("the area is 5 m", "the area is 5 m² in all"),
        ("it runs at 5 m", "it runs at 5 m/s in all"),
        ("151 bar is", "15① bar is the limit"),
        ("30 is the start", "9:30 is the start"),
    ],
)
def test_a_part_of_a_number_or_quantity_is_no_proof(quote: str, content: str) -> None:
    assert not is_verbatim(quote, content)


@pytest.mark.parametrize("quote", ["1", "5", "15", "2023", "| 5 |", "--- | --- |", "........."])
def test_a_lone_number_or_mere_signs_prove_nothing(quote: str) -> None:
    assert not is_verbatim(quote, "1 and 5 and 15, in 2023, | 5 | --- | --- | .........")


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("opens at 6.5 bar", "It opens at 6.5 bar¹ or so."),
        ("the limit is 6.5 bar", "¹ the limit is 6.5 bar²"),
        ("non-flammable liquids", "only non-\nflammable liquids"),
        ("re-sign the 24-hour form", "re-\nsign the 24-\nhour form"),
        ("re-sign the maintenance plan", "re-\nsign the main-\ntenance plan"),
        ("main-\ntenance of non-\nflammable", "maintenance of non-flammable"),
        ("maintenance plan", "the main\u00ad\ntenance plan"),
        ("office opens", "of\u200cfice op\u200dens \u200ehere\u202c"),
        ("Open by ½ turns", "Open by 1/2 turns."),
        ("10² m long", "It is 10² m long."),
        ("in 2023 we sold", "in 2023 we sold 500 pieces"),
        ("sold in 2023", "sold in 2023 500 pieces"),
        ("5 °C", "from 5 °C on"),
        ("12 %", "12 % of all"),
        ("5 bar", "called '5 bar' here"),
    ],
)
def test_what_typesetting_did_is_forgiven(quote: str, content: str) -> None:
    assert is_verbatim(quote, content)


def test_a_negation_is_not_cut_off() -> None:
    assert not is_verbatim("flammable liquids", "only non-flammable liquids")
    assert not is_verbatim("flammable liquids", "only non-\nflammable liquids")
    assert is_verbatim("relevant parts", "all safety-relevant parts")


def test_a_hyphen_inside_a_line_is_not_forgiven() -> None:
    assert not is_verbatim("re-sign the contract", "resign the contract")
    assert not is_verbatim("resign the contract", "re-sign the contract")


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
