"""Tests for matching a quotation to a passage: accepted and refused proof."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.evidence.alignment import OMISSION, align, holds_words
from shared.evidence.block_text import BlockText
from shared.evidence.words import Word, block_words, quoted_words


def occurs_on(quote: str, content: str) -> bool:
    return align(quote, BlockText(content)) is not None


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
    assert occurs_on(quote, BLOCK)


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        ("5 bar", "inside 15 bar"),
        ("200 rpm", "inside 1,200 rpm"),
        ("1", "inside 15 and 1,200"),
        ("15 … rpm", "a number and the unit of another"),
        ("The pump ran at 15 bar", "another word"),
        ("maintenance work today", "more than there is"),
        ("for", "proves nothing"),
        ("", "nothing"),
        ("   ", "nothing"),
        ("he pump runs", "cut inside a word"),
    ],
)
def test_other_words_and_numbers_are_not(quote: str, why: str) -> None:
    assert not occurs_on(quote, BLOCK), why


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
        ("the price was 5 million", "the price was 5 million euros"),
        ("euros was paid", "5 million euros was paid"),
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
    assert not occurs_on(quote, content)


@pytest.mark.parametrize("quote", ["1", "5", "15", "2023", "| 5 |", "--- | --- |", "........."])
def test_a_lone_number_or_mere_signs_prove_nothing(quote: str) -> None:
    assert not occurs_on(quote, "1 and 5 and 15, in 2023, | 5 | --- | --- | .........")


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
    assert occurs_on(quote, content)


def test_a_negation_is_not_cut_off() -> None:
    assert not occurs_on("flammable liquids", "only non-flammable liquids")
    assert not occurs_on("flammable liquids", "only non-\nflammable liquids")
    assert not occurs_on("flammable liquids are", "These are not flammable liquids")


def test_a_hyphen_inside_a_line_is_not_forgiven() -> None:
    assert not occurs_on("re-sign the contract", "resign the contract")
    assert not occurs_on("resign the contract", "re-sign the contract")


def test_only_words_are_joined_at_the_end_of_a_line() -> None:
    assert occurs_on("see 10- 20 pieces", "see 10-\n20 pieces")
    assert not occurs_on("see 1020 pieces", "see 10-\n20 pieces")
    assert not occurs_on("first second", "first-\n\nsecond")


def test_a_decimal_is_not_proved_by_its_end() -> None:
    assert not occurs_on("5 percent", "a rate of 3.5 percent")
    assert not occurs_on("a rate of 3", "a rate of 3.5 percent")
    assert occurs_on("a rate of 3", "a rate of 3. Then more.")


@given(st.text(min_size=1), st.text(), st.text())
def test_a_whole_paragraph_is_verbatim_between_any_others(middle: str, before: str, after: str) -> None:
    text = f"{before}\n\nSentence 1 {middle} ends here.\n\n{after}"
    assert occurs_on(f"Sentence 1 {middle} ends here.", text)


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
    alignment = align(quote, BlockText(SENTENCES))
    assert alignment is not None
    assert list(alignment.fragments) == fragments
    assert alignment.quote == OMISSION.join(fragments)


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
    assert not occurs_on(quote, SENTENCES), why


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
    alignment = align(quote, BlockText(TABLE))
    assert alignment is not None
    assert alignment.fragments == (
        "| Part number | Part | Pieces |",
        "| 400-IM-A | Impeller A, 215 mm | 12 |",
    )
    assert alignment.quote == "\n".join(alignment.fragments)


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
    assert not occurs_on(quote, TABLE)


def test_items_and_paragraphs_are_fragments_by_themselves() -> None:
    listed = "6.2 Starting\n- Open the valve\n- Vent the casing\n\nNo pressure\n\nSee below"
    alignment = align("Starting: Open the valve. Vent the casing", BlockText(listed))
    assert alignment is not None
    assert alignment.fragments == ("Starting", "Open the valve", "Vent the casing")
    assert not occurs_on("No pressure See below", listed)


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
    assert not occurs_on(quote, content)


WORDS = (
    "the pump runs at 15 bar and not 16 mm 10² m3/h no red , . … | \n - ( ) 1,200 never € valve : ; %".split(
        " "
    )
)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.data())
def test_what_holds_is_words_of_the_block_in_their_order(words: list[str], data: st.DataObject) -> None:
    block = BlockText(" ".join(words))
    picked = data.draw(st.lists(st.sampled_from([*words, "…"]), max_size=12))
    alignment = align(" ".join(picked), block)
    if alignment is None:
        return
    places = [word.key for word in block_words(block.text)]
    place = 0
    for word in quoted_words(" ".join(picked)):
        while place < len(places) and places[place] != word.key:
            place += 1
        assert place < len(places), (picked, words)
        place += 1
    at = 0
    for fragment in alignment.fragments:
        at = block.text.index(fragment, at) + len(fragment)


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_text_can_be_read(content: str, quote: str) -> None:
    align(quote, BlockText(content))


def test_a_quotation_made_to_be_looked_for_everywhere_is_given_up() -> None:
    assert not occurs_on("a … " * 300 + "b is 5 bar", "a, a. " * 2000)


class CountedWords(list[Word]):
    """The words of a block, which count how many of them are read."""

    reads = 0

    def __getitem__(self, place: Any) -> Any:
        item = super().__getitem__(place)
        self.reads += len(item) if isinstance(place, slice) else 1
        return item


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("a b a b a b a b a b … x", "a b " * 5000 + "x"),
        ("pump runs", "no " + "pump runs " * 5000),
        ("pump runs", "pump runs " * 5000 + "no"),
        ("pump runs", "no " + "kg pump runs " * 5000),
    ],
)
def test_the_words_of_a_block_without_punctuation_are_read_a_few_times(quote: str, content: str) -> None:
    block = BlockText(content)
    block.words = words = CountedWords(block.words)
    align(quote, block)
    assert 0 < words.reads < 400_000


def test_a_step_of_a_list_is_not_given_the_text_of_another() -> None:
    steps = "Step 1: Open the valve\nStep 2: Vent the casing\nStep 3: Close the valve"
    assert occurs_on("Step 2: Vent the casing", steps)
    assert not occurs_on("Step 1: Vent the casing", steps)
    assert not occurs_on("Step 1 … Vent the casing", steps)


def test_a_line_that_is_left_out_holds_no_negation() -> None:
    assert not occurs_on(
        "Fair value of hedges … of the group", "Fair value of hedges\nNot that\nof the group"
    )


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("The database runs", "The data base runs"),
        ("The data base runs", "The database runs"),
        ("see page 3 of it", "see page3 of it"),
        ("database", "data base"),
        ("data base", "The database of databases"),
        ("database holds", "Title\n\nThe data base holds\n\nNext"),
    ],
)
def test_white_space_between_letters_may_differ(quote: str, content: str) -> None:
    assert occurs_on(quote, content)


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("in 2023 pieces", "in 20 23 pieces"),
        ("in 25 pieces", "in 2 5 pieces"),
        ("in A520 pieces", "in A5 20 pieces"),
        ("in 203d pieces", "in 20 3d pieces"),
        ("we sold in 2023", "we sold in 20 23"),
        ("data base | 15 pages", "| database | 15 pages |"),
        ("The database holds", "The\n\ndata base holds"),
        ("pa ge 3", "page 3"),
    ],
)
def test_white_space_between_digits_cells_and_paragraphs_may_not(quote: str, content: str) -> None:
    assert not occurs_on(quote, content)


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("valve 5", "see valve 5 now"),
        ("refrigeration", "the refrigeration unit runs"),
        ("It is open", "It is open, not closed"),
        ("the pump runs at night", "Not here, the pump runs at night"),
        ("flammable liquids", "It is not for flammable liquids. Flammable liquids burn."),
        ("In 5 such days", "In 5 such days hours count"),
        ("We sold 5 pumps", "We sold 5 pumps days ago"),
        ("hours are counted", "Days hours are counted from 5"),
    ],
)
def test_a_part_of_a_sentence_that_says_the_same_is_accepted(quote: str, content: str) -> None:
    assert occurs_on(quote, content)


CHALLENGE = "A participant may be re-challenged once, after the eye examination"


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        (CHALLENGE, f"{CHALLENGE}, but not in the case of mania."),
        (CHALLENGE, f"{CHALLENGE},\nbut not in the case of mania."),
        (CHALLENGE, f"{CHALLENGE} of both eyes, but not in the case of mania."),
        ("The pump runs", "The pump runs, but only at night."),
        ("The pump runs", "The pump runs; but never at night."),
        ("The pump runs", "The pump runs (except at night)."),
        ("The pump runs", "The pump runs, however, not at night."),
        ("The pump runs", "The pump runs, unless it rains."),
        ("Die Pumpe läuft", "Die Pumpe läuft, außer bei Regen."),
        ("Die Pumpe läuft", "Die Pumpe läuft, aber nur nachts."),
        ("La pompe marche", "La pompe marche, sauf la nuit."),
        ("La pompa gira", "La pompa gira, tranne di notte."),
        ("The pump runs", "The pump runs, but does not hum."),
        ("The pump runs", "The pump runs but only at night."),
        ("The pump runs", "The pump runs at home, with the exception of old ones."),
        ("The pump runs", "The pump runs with the exception of old ones."),
        ("Die Pumpe läuft", "Die Pumpe läuft, es sei denn, es regnet."),
        ("Die Pumpe läuft", "Die Pumpe läuft, mit Ausnahme der Nacht."),
        ("La pompe marche", "La pompe marche, à l'exception de la nuit."),
        ("La bomba gira", "La bomba gira, con excepción de la noche."),
        ("La bomba gira", "La bomba gira, a excepción de la noche."),
        ("La pompa gira", "La pompa gira, ad eccezione della notte."),
    ],
)
def test_an_exception_behind_the_quotation_is_not_cut_off(quote: str, content: str) -> None:
    assert not occurs_on(quote, content)


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("The pump runs", "The pump runs, but it is loud."),
        ("The pump runs", "The pump runs, but it is loud, not quiet."),
        ("The pump runs", "The pump runs, but slowly, not fast."),
        ("The pump runs", "The pump runs, and only at night it hums."),
        ("The pump runs", "The pump runs. But not at night."),
        ("The pump runs", "The pump runs\nBut not at night."),
        ("The pump runs", "The pump runs, but"),
        ("The pump runs", "The pump runs, but the valve does not close."),
        ("The pump runs", "The pump runs, but the valve never closes."),
        ("Die Pumpe läuft", "Die Pumpe läuft, aber das Ergebnis war nicht gut."),
        ("The pump runs", "The pump runs, with the usual noise."),
        ("The pump runs", "The pump runs but it is loud."),
        ("The pump runs", "The pump runs, only at night."),
    ],
)
def test_another_clause_behind_the_quotation_may_be_left_out(quote: str, content: str) -> None:
    assert occurs_on(quote, content)


def test_a_negation_behind_the_quotation_is_not_cut_off() -> None:
    assert not occurs_on("The liquids are stored", "The liquids are stored not here")


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("pump runs … it hums", "No pump runs here. The pump runs, at night. Then, it hums."),
        ("The pump … at speed", "The pump of steel runs at speed in winter"),
        ("The pump … daily. It is red", "The pump of steel runs daily. It is red."),
        ("however … at night", "The valve, however, is open at night"),
        ("It runs … the pump rests", "It runs, at night. In winter, the pump rests."),
        ("It runs … the pump rests", "It runs, at night. Note: the pump rests."),
        ("stop … The pump rests", "Note: stop, at night. The pump rests."),
        ("The pump runs … it hums", "The pump runs; it is not loud; it hums."),
        ("The pump runs … It hums", "The pump runs, at night. It is not loud. It hums."),
        ("It runs … it hums", "It runs, at night. It is old. It is not loud. Today, it hums."),
        ("In 2022 … in spring", "In 2022 we sold pumps in spring"),
        # The first matching positions are not the correct ones.
        ("The pump runs … at 15, it rings", "The pump runs, at 15 bar. It stops. At 15, it rings."),
        ("The pump runs … at 15 bar … it leaks", "The pump runs, at 15 bar it hums. At 15 bar it leaks."),
        ("The pump leaks … sometimes", "The pump leaks; sometimes not at all. How often? Sometimes."),
    ],
)
def test_words_may_be_left_out_between_parts_that_still_say_the_same(quote: str, content: str) -> None:
    assert occurs_on(quote, content)


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("Alpha … beta … delta", "Alpha, the beta gamma, delta."),
        ("Alpha … gamma", "Alpha, the beta gamma. Delta rules"),
        ("Alpha … gamma delta", "Alpha beta, gamma delta"),
        ("The pump … It is red", "The pump runs fast. It is red."),
        ("It costs 48 euros … profit is high", "It costs 48 euros. The profit is high."),
        ("It runs, today. The pump rests", "It runs, at night, today. In winter. The pump rests."),
        ("The pump runs … It hums", "The pump runs, but not at night. It hums."),
        ("The rule is this … pumps leak", "The rule is this: it is not the case that pumps leak."),
        (
            "The rule is this … pumps. Leak tests pass",
            "The rule is this: it is not true of pumps. Leak tests pass.",
        ),
        (
            "Two findings … numbers are missing",
            "Two findings: the tester was not calibrated, lot numbers are missing",
        ),
        ("from 40 million … in 2023", "It grew from 40 million in 2022 to 48 million in 2023"),
        ("The price is 40 euros … in spring", "The price is 40 euros for all 3 pumps in spring"),
        ("In 2022 … in spring", "In 2022 we sold 3 pumps in spring"),
    ],
)
def test_words_may_not_be_left_out_where_the_rest_says_something_else(quote: str, content: str) -> None:
    assert not occurs_on(quote, content)


def test_a_quotation_has_at_most_twelve_parts() -> None:
    sentences = [f"Item {number} works." for number in range(1, 14)]
    content = " Skip this. ".join(sentences)
    assert occurs_on(" ".join(sentences[:12]), content)
    assert not occurs_on(" ".join(sentences), content)


@pytest.mark.parametrize(
    ("quote", "content", "fragment"),
    [
        ("see the valve (type V2", "see the valve (type V2) open", "see the valve (type V2)"),
        ("valve type V2", "the (valve type V2) opens", "valve type V2"),
        ("as described in point d)", "as described in point d).", "as described in point d)."),
        ("described in point d", "(as described in point d) below", "described in point d"),
        ("described in point d", "a) is (as described in point d) below", "described in point d"),
        ("(d) The tenant pays.", "(c) Rent\n(d) The tenant pays.", "(d) The tenant pays."),
        ("d) The tenant pays.", "(d) The tenant pays.", "(d) The tenant pays."),
        ("d) The tenant pays.", "c) Rent\nd) The tenant pays.", "d) The tenant pays."),
        ("(EU) 2016/679 applies", "Regulation (EU) 2016/679 applies", "(EU) 2016/679 applies"),
        ("the study of Meyer [12]", "the study of Meyer [12], which", "the study of Meyer [12]"),
        ("see the valve (type (a))", "see the valve (type (a))", "see the valve (type (a))"),
        ("valve type (a)", "the (valve type (a)) opens", "valve type (a)"),
        ("valve type d", "(a) (b) valve type d) opens", "valve type d)"),
    ],
)
def test_a_fragment_is_shown_with_the_brackets_that_belong_to_it(
    quote: str, content: str, fragment: str
) -> None:
    alignment = align(quote, BlockText(content))
    assert alignment is not None
    assert (alignment.fragments, content.find(fragment)) == ((fragment,), alignment.start)


MODELS = """| Model | Mass | Pieces |
|---|---|---|
| X1 | 7 kg | 12 |
| X2 | 8 kg | 13 |
| X3 | 9 kg | 14 |
| X4 | 10 kg | 15 |
| X5 | 11 kg | 16 |
Order early now."""
HEADER = "| Model | Mass | Pieces |"


@pytest.mark.parametrize(
    ("quote", "content", "expected"),
    [
        ("X2 | 8 kg", MODELS, f"{HEADER}\n| X2 | 8 kg | 13 |"),
        ("Model: X2", MODELS, f"{HEADER}\n| X2 | 8 kg | 13 |"),
        ("Mass: 8 kg; Pieces: 13", MODELS, f"{HEADER}\n| X2 | 8 kg | 13 |"),
        ("Model Mass Pieces X2 8 kg 13", MODELS, f"{HEADER}\n| X2 | 8 kg | 13 |"),
        ("| Model | Mass | Pieces | | X2 | … | 13 |", MODELS, f"{HEADER}\n| X2 | 8 kg | 13 |"),
        (
            "X1 | 7 kg | 12 … X3 | 9 kg | 14 … X5 | 11 kg | 16",
            MODELS,
            f"{HEADER}\n| X1 | 7 kg | 12 |\n| X3 | 9 kg | 14 |\n| X5 | 11 kg | 16 |",
        ),
        (
            "| X2 | 8 kg | 13 |\n| X3 | 9 kg | 14 |",
            MODELS,
            f"{HEADER}\n| X2 | 8 kg | 13 |\n| X3 | 9 kg | 14 |",
        ),
        (
            f"{HEADER}\n|---|---|---|\n| X1 | 7 kg | 12 |\n| X2 | 8 kg | 13 |",
            MODELS,
            f"{HEADER}\n| X1 | 7 kg | 12 |\n| X2 | 8 kg | 13 |",
        ),
        (
            "X1 … 12 … X2 | 8 kg | 13\nX3 | 9 kg | 14\nX5 | 11 kg | 16",
            MODELS,
            f"{HEADER}\n| X1 | 7 kg | 12 |\n| X2 | 8 kg | 13 |\n| X3 | 9 kg | 14 |\n| X5 | 11 kg | 16 |",
        ),
        ("X2 … 13 … Order early now", MODELS, f"{HEADER}\n| X2 | 8 kg | 13 | … Order early now."),
        ("Pump | 12 | Order early now", "| Pump | 12 |\nOrder early now", "| Pump | 12 |\nOrder early now"),
        ("Listed here | Pump | 12", "Listed here\n| Pump | 12 |", "Listed here\n| Pump | 12 |"),
        ("steel casing", "| Pump | steel casing | 12 |", "| Pump | steel casing | 12 |"),
        ("Pump … 12", "Listed:\n| Pump | steel | 12 |", "| Pump | steel | 12 |"),
        ("Listed. … Kit | 1", "Listed. See here\n| Kit | 1 |", "Listed.\n| Kit | 1 |"),
        ("Pump 1 500", "| Pump | 1 | 500 |", "| Pump | 1 | 500 |"),
        ("1 500 2 600", "| 1 | 500 | 2 | 600 |", "| 1 | 500 | 2 | 600 |"),
    ],
)
def test_rows_are_shown_whole_and_once(quote: str, content: str, expected: str) -> None:
    alignment = align(quote, BlockText(content))
    assert alignment is not None
    assert alignment.quote == expected


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("X1 | 7 kg | 12 … X3 | 9 kg", MODELS),
        ("7 kg | 12 … X3 | 9 kg | 14", MODELS),
        ("X1 | 7 kg | 12\nX2 | 8 kg", MODELS),
        ("7 kg | 12\nX2 | 8 kg | 13", MODELS),
        ("X2 Pieces 13", MODELS),
        ("They are listed … Kit, small", "They are listed.\n\n| No | Part |\n|---|---|\n| K2 | Kit, small |"),
        ("They are listed … 12", "They are listed\n| Seal kit | 1 | 12 |"),
    ],
)
def test_parts_of_rows_are_not_put_together_with_others(quote: str, content: str) -> None:
    assert not occurs_on(quote, content)


def test_a_place_where_nothing_is_left_out_takes_precedence() -> None:
    quote = "Answer: Yes. The turnover of clause 3.1"
    content = f"Answer: Yes. It is old. The turnover of clause 3.1 counts.\n\n{quote}"
    alignment = align(quote, BlockText(content))
    assert alignment is not None
    assert alignment.fragments == (quote,)
    assert alignment.start == content.rindex("Answer")


@pytest.mark.parametrize(
    "other",
    [
        "Not here, no pump runs. It hums at 15",
        "The pump runs. It hums at 15 bar",
        "The pump runs. It hums at 15 pieces not",
        "| The | pump runs |\n| It hums at 15 | x |",
    ],
)
def test_a_place_that_says_something_else_does_not_take_precedence(other: str) -> None:
    content = f"The pump runs. It is old. It hums at 15.\n\n{other}"
    alignment = align("pump runs. It hums at 15", BlockText(content))
    assert alignment is not None
    assert alignment.quote == "pump runs. … It hums at 15."


VISITS = "| Test | Day 1 | Week 8 |\n|---|---|---|\n| ECG | X | – |\n| MRI | – | – |\n| | 5 | |"


def test_a_whole_row_of_short_cells_is_a_proof() -> None:
    alignment = align("| ECG | X | – |", BlockText(VISITS))
    assert alignment is not None
    assert alignment.quote == "| Test | Day 1 | Week 8 |\n| ECG | X | – |"


@pytest.mark.parametrize(
    ("quote", "content", "why"),
    [
        ("| ECG |", VISITS, "a cell"),
        ("| MRI | – | – |", VISITS, "one cell with words"),
        ("| | 5 | |", VISITS, "a lone number"),
        ("| ECG | X | – |", VISITS.replace("|---|---|---|\n", ""), "without a header"),
        ("| ECG | X | X |", VISITS, "another row"),
    ],
)
def test_short_cells_that_are_no_row_under_a_header_prove_nothing(quote: str, content: str, why: str) -> None:
    assert not occurs_on(quote, content), why


def test_whole_words_in_sequence_are_held() -> None:
    assert holds_words("It opens at 15 bar.", "AT 15 bar")
    assert not holds_words("It opens at 15 bar.", "5 bar")
    assert not holds_words("It opens at 15 bar.", "bar of")
    assert not holds_words("It opens.", "")


FAQ = """Question 1: Is the site visit of the Nordbad mandatory?

Answer: No.

Question 2: May bidders form a group?

Answer: Yes. The turnover of clause 3.1 may then be reached jointly."""
SECTIONS = """# Pump A-200

It is red.

## Flow

It delivers 10 bar.

# Pump B-300

It delivers 16 bar.

# Pump C-400

It hums."""
CARDS = """Model: A-200
Pressure: 10 bar

Approved: no

Model: B-300
Mass: 80 kg
Pressure: 16 bar

Approved: yes"""


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("Question 1: Is the site visit of the Nordbad mandatory? Answer: Yes.", FAQ),
        ("Question 1: Is the site visit of the Nordbad mandatory? … Answer: Yes.", FAQ),
        ("Question 1: Is the site visit of the Nordbad mandatory? … The turnover of clause 3.1", FAQ),
        ("Did the pump leak? … 漏れた、はい。", "Did the pump leak？ いいえ。\n\n漏れた、はい。"),
        ("Model: A-200\nPressure: 16 bar", CARDS),
        ("Pump A-200 … It delivers 16 bar", SECTIONS),
        ("Pump A-200 … Flow … It delivers 16 bar", SECTIONS),
        ("Pump B-300 … It hums", SECTIONS),
        ("Pump A-200 … It is red … It delivers 16 bar", SECTIONS),
        ("Model: A-200 … Pressure: 16 bar", CARDS),
        ("Model: A-200 … Mass: 80 kg", CARDS),
        ("A-200 … 16 bar", CARDS),
        ("A-200 … yes", CARDS),
        ("A-200 … Pressure: 16 bar", CARDS),
        ("Model: A-200 … 80 kg", CARDS),
        ("10 bar … yes", CARDS),
        ("Old pumps … 16 bar", f"Old pumps\n\n{CARDS}"),
        ("Model: A-200 … Pressure: 16 bar", CARDS.replace(": ", "：")),
        ("A-200 … 16 bar", CARDS.replace(": ", "：")),
        ("Model: A-200. Pressure: 10 bar. Approved: yes", CARDS),
        ("Model: A-200 … Pressure: 10 bar … Approved: yes", CARDS),
        ("Model: A-200 … Approved: no … Mass: 80 kg", CARDS),
        ("Model: A-200 … Pressure: 16 bar", CARDS.replace("\n\n", "\n")),
        ("Model: A-200. Pressure: 16 bar", CARDS.replace("\n", ". ")),
        ("The valve leaks. The hall is dry.", "The valve leaks.\n\nIt was mended.\n\nThe hall is dry."),
        ("The valve leaks. The hall is dry.", "The valve leaks. It is mended.\n\nThe hall is dry."),
        ("The valve leaks. The hall is dry.", "The valve leaks.\n\nMended.\n\nThe hall is dry."),
        (
            "Name: A-200 … 2. Pressure: 16 bar",
            "1. Name: A-200\n2. Pressure: 10 bar\n\n1. Model: B-300\n2. Pressure: 16 bar",
        ),
        (
            "Model: A-200 … Pressure: 10 bar … Pressure: 12 bar … Colour: red",
            "Model: A-200\nPressure: 10 bar\nMass: 5 kg\nPressure: 12 bar\n\nModel: B-300\nColour: red",
        ),
    ],
)
def test_parts_of_different_entries_are_not_put_together(quote: str, content: str) -> None:
    assert not occurs_on(quote, content)


@pytest.mark.parametrize(
    ("quote", "content"),
    [
        ("Question 2: May bidders form a group? Answer: Yes.", FAQ),
        ("Question 1: Is the site visit of the Nordbad mandatory? Answer: No.", FAQ),
        ("Model: B-300. Pressure: 16 bar", CARDS),
        ("Model: B-300 … Pressure: 16 bar … Approved: yes", CARDS),
        ("A-200 … 10 bar", CARDS),
        ("Pump A-200 … It delivers 10 bar", SECTIONS),
        ("Pump A-200 … Pump C-400 … It hums", SECTIONS),
        ("Pump A-200 … It is red … Pump C-400", SECTIONS),
        ("It is red … It hums", SECTIONS),
        ("A-200 … 10 bar … no", CARDS),
        ("B-300 … 16 bar", CARDS),
        ("Model：B-300 … Pressure：16 bar", CARDS.replace(": ", "：")),
        (
            "See https://a.b for it. … It is 5 m.",
            "See https://a.b for it.\n\nSee https://c.d too.\n\nIt is 5 m.",
        ),
        ("Note: it hums. … It leaks.", "Note: it hums.\n\nIt is red.\n\nIt leaks."),
        ("Model: A-200 … Pressure: 10 bar … Model: B-300 … Approved: yes", CARDS),
        ("Step 1: Open it … Step 3: Close it", "Step 1: Open it\n\nStep 2: Vent it\n\nStep 3: Close it"),
        ("The valve leaks. … The hall is dry.", "The valve leaks.\n\nIt was mended.\n\nThe hall is dry."),
        ("The valve leaks. Mended", "The valve leaks. Soon. Mended\n\nNext"),
        (
            "Model: A-200. Pressure: 10 bar … Model: C-400. Pressure: 9 bar",
            f"{CARDS}\n\nModel: C-400\nPressure: 9 bar",
        ),
        ("Starting. Vent the casing", "Starting\n\nOpen the valve. Vent the casing"),
        ("Open the valve. Vent the casing", "1. Open the valve\n2. Vent the casing"),
    ],
)
def test_parts_of_one_entry_and_whole_entries_are_put_together(quote: str, content: str) -> None:
    assert occurs_on(quote, content)


def test_labels_are_found_where_lines_and_sentences_begin() -> None:
    block = BlockText(
        "Step 1: Open it. Its colour (lid): red\n3: yes; Note: A list of seven or more words: x"
    )
    assert block.labels((0, len(block.words))) == ["step", "its colour lid", "note"]
    assert block.labels((1, 4)) == []


def test_a_label_belongs_to_the_words_behind_it_in_the_same_line_and_sentence() -> None:
    block = BlockText("Size: it is big; now. Old\nMass: 5 kg\n\nIt\nSize：3\nRed")
    starts = [block.label_start(place) for place in range(len(block.words))]
    assert starts == [0, 0, 0, 0, 0, 5, 6, 6, 6, 9, 10, 10, 12]


@pytest.mark.parametrize(
    ("quote", "content", "expected"),
    [
        (
            "each further operator costs 350",
            "> each further\n> operator costs 350",
            "each further\noperator costs 350",
        ),
        (
            "further operator costs 350",
            "> > each further\n> > operator costs 350",
            "further\noperator costs 350",
        ),
        (
            "further operator costs 350",
            "> each further\n> > operator costs 350",
            "further\n> operator costs 350",
        ),
        (
            "each further operator costs",
            "each further\n> operator costs 350",
            "each further\n> operator costs",
        ),
        ("further of us operator", "> further\nof us\n> operator", "further\nof us\n> operator"),
        ("is > 5 bar and", "> it is > 5 bar\n> and more", "is > 5 bar\nand"),
        ("def f: return all of it", "def f:\n    return all\n\tof it", "def f:\n    return all\n\tof it"),
        ("def f: return all of it", "> def f:\n>     return all\n> of it", "def f:\n    return all\nof it"),
    ],
)
def test_quotation_marks_of_e_mails_are_not_shown(quote: str, content: str, expected: str) -> None:
    alignment = align(quote, BlockText(content))
    assert alignment is not None
    assert alignment.quote == expected
    assert alignment.fragments[0] in content


@pytest.mark.parametrize(
    ("quote", "content", "expected"),
    [
        (
            "Cc: Helena Braun <h.b@varder.example>",
            "Cc: Helena Braun <h.b@varder.example>\nHi",
            "Cc: Helena Braun <h.b@varder.example>",
        ),
        (
            "we asked Helena <h.b@varder.example>.",
            "> we\n> asked Helena <h.b@varder.example>.",
            "we\nasked Helena <h.b@varder.example>.",
        ),
        ("the mail of Helena", "the mail of Helena> is", "the mail of Helena"),
        ("write to h.b@varder.example", "write to h.b@varder.example> is", "write to h.b@varder.example"),
    ],
)
def test_an_address_is_shown_with_both_brackets(quote: str, content: str, expected: str) -> None:
    alignment = align(quote, BlockText(content))
    assert alignment is not None
    assert alignment.quote == expected


def test_several_entries_are_quoted_in_more_than_two_parts() -> None:
    text = "Model: A-200\n\nColour: red\n\nSize: 3 m\n\nPressure: 25 bar\n\nModel: B-300\n\nPressure: 16 bar"
    alignment = align("Model: A-200 … Size: 3 m … Model: B-300", BlockText(text))
    assert alignment is not None
    assert alignment.quote == "Model: A-200 … Size: 3 m … Model: B-300"


def test_a_contrast_restricts_only_with_the_words_behind_it() -> None:
    restricted = BlockText("The pump runs, but not, as agreed, at night.")
    assert align("The pump runs.", restricted) is None
    own_clause = align("It pumps water only.", BlockText("It pumps water only, but it does so well."))
    assert own_clause is not None
    assert own_clause.quote == "It pumps water only"


def test_a_word_before_a_heading_is_no_heading() -> None:
    text = "# Alpha\n\nOne thing is here.\n\n# Beta\n\nSlow.\n\n# Gamma\n\nThree things are here."
    block = BlockText(text)
    assert align("# Alpha\n\nOne thing is here. … # Gamma\n\nThree things are here.", block)
    assert align("# Alpha\n\nOne thing is here. … Slow.\n\n# Gamma\n\nThree things are here.", block) is None
