"""Tests for parsing an answer that arrives in pieces of any size."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.evidence.tags import CiteTag, FigureTag, FollowUpTag, GapTag, Piece, Text, read_tags

ANSWER = (
    'It runs at 15 bar <cite doc_id="d1" quote="runs at 15 bar"/>. If a < b, see '
    '<cite doc_id="d2" quote="a &quot;b&quot; &lt; c"></cite>; done <citation>.'
)


def parse(text: str, cuts: list[int]) -> list[Piece]:
    pieces: list[Piece] = []
    rest, position = "", 0
    for cut in [*sorted(cuts), len(text)]:
        read, rest = read_tags(rest + text[position:cut], at_end=False)
        pieces += read
        position = max(position, cut)
    return [*pieces, *read_tags(rest, at_end=True)[0]]


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def parse_joined(text: str, cuts: list[int]) -> list[Piece]:
    """Return the parsed pieces with adjacent texts joined."""
    joined: list[Piece] = []
    for piece in parse(text, cuts):
        if isinstance(piece, Text) and joined and isinstance(joined[-1], Text):
            joined[-1] = Text(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


@given(st.lists(st.integers(min_value=0, max_value=len(ANSWER)), max_size=30))
def test_cuts_anywhere_change_nothing(cuts: list[int]) -> None:
    pieces = parse(ANSWER, cuts)
    assert text_of(pieces) == "It runs at 15 bar . If a < b, see ; done <citation>."
    assert [piece for piece in pieces if isinstance(piece, CiteTag)] == [
        CiteTag("d1", "runs at 15 bar"),
        CiteTag("d2", 'a "b" < c'),
    ]


def test_text_is_given_as_soon_as_it_is_certain() -> None:
    assert read_tags("Hello ", at_end=False) == ([Text("Hello ")], "")
    assert read_tags("<ci", at_end=False) == ([], "<ci")
    assert read_tags("<circle>", at_end=False) == ([Text("<circle>")], "")


def test_a_quotation_mark_inside_the_quotation_is_forgiven() -> None:
    assert parse('<cite doc_id="d" quote="the "safe" limit"/>', []) == [CiteTag("d", 'the "safe" limit')]


@pytest.mark.parametrize(
    "tag",
    [
        "<cite doc_id='d' quote='it \"runs\" at > 15'/>",
        '<cite doc_id="d" quote="it "runs" at > 15" / >',
        '<cite doc_id=“d” quote=“it "runs" at > 15”/>',
        '<Cite DOC_ID="d", Quote="it "runs" at &gt; 15"></CITE>',
        '<cite doc_id=d quote="it "runs" at > 15"/ >',
    ],
)
def test_slips_of_notation_are_forgiven(tag: str) -> None:
    assert parse(f"A {tag} B.", []) == [Text("A "), CiteTag("d", 'it "runs" at > 15'), Text(" B.")]


def test_a_missing_quotation_mark_costs_neither_text_nor_the_next_quotation() -> None:
    text = 'One <cite doc_id="a" quote="first words/> two <cite doc_id="b" quote="second words"/> three.'
    assert parse(text, []) == [
        Text("One "),
        CiteTag("a", "first words"),
        Text(" two "),
        CiteTag("b", "second words"),
        Text(" three."),
    ]


def test_a_missing_quotation_mark_in_the_last_tag_costs_no_text() -> None:
    assert parse('One <cite doc_id="a" quote="first/> two.', [20]) == [
        Text("One "),
        CiteTag("a", "first"),
        Text(" two."),
    ]


def test_an_open_tag_ends_where_an_abstention_begins() -> None:
    assert parse('A <cite doc_id="a" quote="x <gap missing="m" next_step="n"/>', []) == [
        Text("A "),
        CiteTag("a", "x"),
        GapTag("m", "n"),
    ]


@pytest.mark.parametrize(
    ("raw_quote", "quote"),
    [
        ("?a=1&copy=2", "?a=1&copy=2"),
        ("&quot;x&quot; &#233;&#xe9;", '"x" éé'),
        ("&copyright; &amp;amp;", "&copyright; &amp;"),
    ],
)
def test_only_entities_with_a_semicolon_are_decoded(raw_quote: str, quote: str) -> None:
    assert parse(f'<cite doc_id="d" quote="{raw_quote}"/>', []) == [CiteTag("d", quote)]


@pytest.mark.parametrize("text", ["<" * 300_000, "<cite " * 20_000, '<cite a="' + "<x" * 150_000])
def test_long_rubbish_takes_no_quadratic_time(text: str) -> None:
    started = time.process_time()
    parse(text, [])
    assert time.process_time() - started < 5  # a guard against hanging


def test_attributes_come_in_any_order() -> None:
    assert parse('<cite quote="q 1" doc_id="d" />', []) == [CiteTag("d", "q 1")]


def test_tags_that_meet_are_two_tags() -> None:
    text = '<cite doc_id="d" quote="at > 15"/><cite doc_id="e" quote="x"/>'
    assert parse(text, []) == [CiteTag("d", "at > 15"), CiteTag("e", "x")]


def test_a_value_without_quotation_marks_may_end_with_the_tag() -> None:
    assert parse("<cite doc_id=/d/>", []) == [CiteTag("/d", "")]


@pytest.mark.parametrize("end", ['"/>', "", "/>"])
def test_figures_and_gaps_are_read_also_without_their_end(end: str) -> None:
    assert parse(f'<figure block_id="b1{end}', []) == [FigureTag("b1")]
    assert parse(f'<Gap missing="m{end}', []) == [GapTag("m", "")]


def test_a_next_question_is_read_only_if_it_is_whole() -> None:
    assert parse('<FOLLOW_UP question="And why?"/>', []) == [FollowUpTag("And why?")]
    assert parse('<Follow_up question="And wh', []) == [FollowUpTag("")]


def test_a_tag_without_attributes_proves_nothing() -> None:
    assert parse("<cite>x</cite>", []) == [CiteTag("", ""), Text("x")]


def test_a_tag_may_follow_a_bracket() -> None:
    assert parse('<<cite doc_id="d" quote="q"/>', []) == [Text("<"), CiteTag("d", "q")]


def test_texts_around_a_closing_tag_are_one_piece() -> None:
    assert read_tags("a</cite>b ", at_end=False) == ([Text("ab ")], "")


def test_abstention_is_read() -> None:
    assert parse('<gap missing="the price" next_step="ask sales"/>', []) == [GapTag("the price", "ask sales")]


@pytest.mark.parametrize("cut_off", ['done <cite doc_id="d" quo', "done <cite"])
def test_a_tag_that_never_closes_is_not_shown(cut_off: str) -> None:
    assert text_of(parse(cut_off, [])) == "done "


def test_a_lone_bracket_at_the_end_is_shown() -> None:
    assert text_of(parse("a <", [])) == "a <"


@pytest.mark.parametrize("chars", [4000, 4001, 5000])
@pytest.mark.parametrize("before", ["", "So: "])
def test_an_endless_tag_is_given_up_as_text(before: str, chars: int) -> None:
    text = before + '<cite doc_id="'.ljust(chars, "x")
    assert parse_joined(text, [10]) == [Text(text)]


def test_an_endless_tag_ends_at_its_first_bracket() -> None:
    text = f'<cite doc_id="a" quote="x> and > {"y" * 5000}'
    assert parse_joined(text, []) == [CiteTag("a", "x"), Text(f" and > {'y' * 5000}")]


@given(
    st.lists(
        st.sampled_from(
            ["<cite", "<gap", "</cite", " quote=", " doc_id=", '"', "'", "“", "”", ">", "/", " ", "a"]
        ),
        max_size=30,
    ),
    st.lists(st.integers(0, 120), max_size=12),
)
def test_broken_tags_are_read_the_same_however_they_are_cut(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert parse_joined(text, [min(cut, len(text)) for cut in cuts]) == parse_joined(text, [])


@given(st.text(alphabet="<>/cite abstn=\"'dq", max_size=80), st.lists(st.integers(0, 80), max_size=8))
def test_rubbish_is_read_the_same_however_it_is_cut(text: str, cuts: list[int]) -> None:
    assert text_of(parse(text, [min(cut, len(text)) for cut in cuts])) == text_of(parse(text, []))
