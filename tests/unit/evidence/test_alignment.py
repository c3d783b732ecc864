"""What counts as proof, and what does not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.evidence.alignment import OMISSION, Block, align
from shared.evidence.words import block_words, quoted_words


def stands_in(quote: str, content: str) -> bool:
    return align(quote, Block(content)) is not None


BLOCK = "The pump runs at 15 bar. Its “safe” limit—set by the maker—is 1,200 rpm for main-\ntenance work."


@pytest.mark.parametrize(
    "quote",
    [
        "The pump runs at 15 bar.",
        "The  pump\nruns at 15 bar",
        'Its "safe" limit - set by the maker - is 1,200 rpm',
        "for maintenance work",
        "15 bar",
        "1,200 rpm",
    ],
)
def test_the_same_words_in_another_typography_are_verbatim(quote: str) -> None:
    assert stands_in(quote, BLOCK)


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        ("5 bar", "inside 15 bar"),
        ("200 rpm", "inside 1,200 rpm"),
        ("1", "inside 15 and 1,200"),
        ("15 … rpm", "a number and the unit of another"),
        ("The pump ran at 15 bar", "another word"),
        ("for", "proves nothing"),
        ("", "nothing"),
        ("   ", "nothing"),
        ("he pump runs", "cut inside a word"),
    ],
)
def test_other_words_and_numbers_are_not(quote: str, why: str) -> None:
    assert not stands_in(quote, BLOCK), why


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
    assert not stands_in(quote, content)


@pytest.mark.parametrize("quote", ["1", "5", "15", "2023", "| 5 |", "--- | --- |", "........."])
def test_a_lone_number_or_mere_signs_prove_nothing(quote: str) -> None:
    assert not stands_in(quote, "1 and 5 and 15, in 2023, | 5 | --- | --- | .........")


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
    assert stands_in(quote, content)


def test_a_negation_is_not_cut_off() -> None:
    assert not stands_in("flammable liquids", "only non-flammable liquids")
    assert not stands_in("flammable liquids", "only non-\nflammable liquids")
    assert not stands_in("flammable liquids are", "These are not flammable liquids")


def test_a_hyphen_inside_a_line_is_not_forgiven() -> None:
    assert not stands_in("re-sign the contract", "resign the contract")
    assert not stands_in("resign the contract", "re-sign the contract")


def test_only_words_are_joined_at_the_end_of_a_line() -> None:
    assert stands_in("see 10- 20 pieces", "see 10-\n20 pieces")
    assert not stands_in("see 1020 pieces", "see 10-\n20 pieces")
    assert not stands_in("first second", "first-\n\nsecond")


def test_a_decimal_is_not_proved_by_its_end() -> None:
    assert not stands_in("5 percent", "a rate of 3.5 percent")
    assert not stands_in("a rate of 3", "a rate of 3.5 percent")
    assert stands_in("a rate of 3", "a rate of 3. Then more.")


@given(st.text(min_size=1), st.text(), st.text())
def test_a_whole_paragraph_is_verbatim_between_any_others(middle: str, before: str, after: str) -> None:
    text = f"{before}\n\nSentence 1 {middle} ends here.\n\n{after}"
    assert stands_in(f"Sentence 1 {middle} ends here.", text)


SENTENCES = (
    "Revenue in 2023 was 48.2 million euros. The operating profit in 2023 was 3.9 million euros. "
    "Two findings were recorded: the tester was not calibrated, and lot numbers are missing on 7 castings. "
    "Visitors may not, under any circumstances, enter the hall alone. Revenue rose from 40 "
    "to 48 million euros."
)
TABLE = """The parts are listed.

| Part number | Part | Pieces |
| --- | --- | --- |
| 400-SK-2 | Seal kit | 1 |
| 400-IM-A | Impeller A, 215 mm | 12 |"""


@pytest.mark.parametrize(
    ("quote", "fragments"),
    [
        ("REVENUE in 2023 was **48.2 million euros**…", ["Revenue in 2023 was 48.2 million euros."]),
        (
            "Two findings were recorded: […] lot numbers are missing",
            ["Two findings were recorded", "lot numbers are missing"],
        ),
        (
            "Revenue in 2023 was 48.2 million euros. Revenue rose from 40 to 48 million euros.",
            ["Revenue in 2023 was 48.2 million euros.", "Revenue rose from 40 to 48 million euros."],
        ),
        ("“the tester was not calibrated.”", ["the tester was not calibrated"]),
    ],
)
def test_a_quotation_may_consist_of_parts_and_is_shown_in_the_blocks_own_words(
    quote: str, fragments: list[str]
) -> None:
    found = align(quote, Block(SENTENCES))
    assert found is not None
    assert list(found.fragments) == fragments
    assert found.quote == OMISSION.join(fragments)


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        ("The operating profit … Revenue in 2023 was 48.2 million euros.", "the wrong order"),
        ("Revenue … was 3.9 million euros", "the number of another statement"),
        ("Revenue in 2023 was 3.9 million euros.", "parts joined inside a sentence"),
        ("Revenue in 2023 was 48.2", "a scale cut off"),
        ("The tester was calibrated", "a negation dropped"),
        ("The tester was … calibrated", "a negation left out"),
        ("Visitors may … enter the hall alone", "a negation left out with a clause"),
        ("lot numbers are not missing", "a negation added"),
        ("calibrated, and lot numbers are missing", "a negation cut off"),
        ("Revenue rose from 40 … million euros", "a number and the scale of another"),
        ("[The] operating profit in 2023", "a word put in"),
    ],
)
def test_parts_that_say_something_else_are_refused(quote: str, why: str) -> None:
    assert not stands_in(quote, SENTENCES), why


@pytest.mark.parametrize(
    "quote",
    [
        "| 400-IM-A | Impeller A, 215 mm | 12 |",
        "400-IM-A, Impeller A, 215 mm, 12",
        "400-IM-A Impeller A, 215 mm 12",
        "| Part number | Part | Pieces | | 400-IM-A | Impeller A, 215 mm | 12 |",
        "Part number: 400-IM-A; Part: Impeller A, 215 mm; Pieces: 12",
        "400-IM-A … Pieces: 12",
        "Impeller A, 215 mm",
    ],
)
def test_a_row_is_cited_as_a_row_with_its_header(quote: str) -> None:
    found = align(quote, Block(TABLE))
    assert found is not None
    assert found.fragments == ("| Part number | Part | Pieces |", "| 400-IM-A | Impeller A, 215 mm | 12 |")
    assert found.quote == "\n".join(found.fragments)


@pytest.mark.parametrize(
    "quote",
    [
        "| 400-SK-2 | Impeller A, 215 mm | 12 |",
        "Seal kit | 1 | 400-IM-A",
        "Part number: Seal kit",
        "Pieces: Impeller A, 215 mm",
        "400-SK-2 … Impeller A, 215 mm",
        "400-IM-A | Impeller A, 215 mm | 1",
    ],
)
def test_cells_of_other_rows_and_columns_are_not_put_together(quote: str) -> None:
    assert not stands_in(quote, TABLE)


def test_items_and_paragraphs_are_fragments_by_themselves() -> None:
    listed = "6.2 Starting\n- Open the valve\n- Vent the casing\n\nNo pressure\n\nSee below"
    found = align("Starting: Open the valve. Vent the casing", Block(listed))
    assert found is not None
    assert found.fragments == ("Starting", "Open the valve", "Vent the casing")
    assert not stands_in("No pressure See below", listed)


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("a power of 5 MW is", "It has a power of 5 mW is all."),
        ("78 percent of all", "78 % of all"),
        ("the loss was 1,234 euros", "the loss was (1,234) euros"),
        ("it is 5 mm thick", "it is < 5 mm thick"),
        ("at 40 m/h flow", "at 40 m³/h flow"),
        ("rated BBB by all", "rated BBB- by all"),
        ("250巴是最大", "1250巴是最大压力"),
        ("the price is 8940 euros", "the price is 8,940 euros"),
        ("the price is $ 5", "the price is € 5"),
    ],
)
def test_units_signs_and_case_of_units_count(quote: str, content: str) -> None:
    assert not stands_in(quote, content)


WORDS = (
    "the pump runs at 15 bar and not 16 mm 10² m3/h no red , . … | \n - ( ) 1,200 never € valve : ; %".split(
        " "
    )
)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.data())
def test_what_holds_is_words_of_the_block_in_their_order(words: list[str], data: st.DataObject) -> None:
    block = Block(" ".join(words))
    picked = data.draw(st.lists(st.sampled_from([*words, "…"]), max_size=12))
    found = align(" ".join(picked), block)
    if found is None:
        return
    places = [word.key for word in block_words(block.text)]
    place = 0
    for word in quoted_words(" ".join(picked)):
        while place < len(places) and places[place] != word.key:
            place += 1
        assert place < len(places), (picked, words)
        place += 1
    at = 0
    for fragment in found.fragments:
        at = block.text.index(fragment, at) + len(fragment)


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_text_can_be_read(content: str, quote: str) -> None:
    align(quote, Block(content))


def test_a_quotation_made_to_be_looked_for_everywhere_is_given_up() -> None:
    assert not stands_in("a … " * 300 + "b is 5 bar", "a, a. " * 2000)


def test_a_step_of_a_list_is_not_given_the_text_of_another() -> None:
    steps = "Step 1: Open the valve\nStep 2: Vent the casing\nStep 3: Close the valve"
    assert stands_in("Step 2: Vent the casing", steps)
    assert not stands_in("Step 1: Vent the casing", steps)
    assert not stands_in("Step 1 … Vent the casing", steps)


def test_a_line_that_is_left_out_holds_no_negation() -> None:
    assert not stands_in(
        "Fair value of hedges … of the group", "Fair value of hedges\nNot that\nof the group"
    )
