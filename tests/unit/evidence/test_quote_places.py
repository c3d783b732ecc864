"""Tests for locating a quotation in the text of a page and for its rectangles."""

import pytest

from shared.evidence.models import PageArea, PageWord
from shared.evidence.quote_places import Place, quote_areas, quote_places, row_places


def excerpts_at(texts: list[str], places: list[Place]) -> list[str]:
    return [texts[place.index][place.start : place.end] for place in places]


def marked(texts: list[str], quote: str) -> list[str]:
    return excerpts_at(texts, quote_places(texts, quote))


@pytest.mark.parametrize(
    ("texts", "quote", "expected"),
    [
        (["The pump runs at 15 bar."], "runs at 15 bar", ["runs at 15 bar"]),
        (["The pump runs", "at 15 bar."], "runs at 15 bar.", ["runs", "at 15 bar."]),
        (["as Plan", "B says"], "Plan B", ["Plan", "B"]),
        (["a main-", "tenance plan"], "maintenance plan", ["main", "tenance plan"]),
        (["the  oﬃce\nin Köln"], "office in Köln", ["oﬃce\nin Köln"]),
        (["Ko\u0308ln is closed"], "Köln is closed", ["Ko\u0308ln is closed"]),
        (["The pump runs at 15 bar."], "The pump runs at 15 bar.", ["The pump runs at 15 bar."]),
        (["at 15 bar, then at 20"], "at 15 bar.", ["at 15 bar"]),
        (["It costs 115 bar"], "15 bar", []),
        (["115 bar"], "15 bar", []),
        (["runs at 15 bars"], "15 bar", []),
        (["15 bars"], "15 bar", []),
        (["nothing of it"], "something else", []),
        (["text"], "", []),
        ([], "text", []),
        (["“Stop!”, he said"], '"Stop!", he said', ["Stop!”, he said"]),
    ],
)
def test_letters_and_digits_decide(texts: list[str], quote: str, expected: list[str]) -> None:
    assert marked(texts, quote) == expected


VALVES = ["Valve 1a opens at 15 bar.", "Valve 2a opens at 15 bar.", "Valve 3a opens at 15 bar."]


@pytest.mark.parametrize(
    ("texts", "quote", "context", "index"),
    [
        (VALVES, "opens at 15 bar", "Valve 2a opens at 15 bar. Valve 3a", 1),
        (VALVES, "opens at 15 bar", "Valve 2a opens at 15 bar.", 1),
        (VALVES, "opens at 15 bar", "2a opens at 15 bar.", 1),
        (VALVES, "Valve", "Valve 3a opens", 2),
        (VALVES, "opens at 15 bar", "", 0),
        (VALVES, "opens at 15 bar", "See Valve 3a", 0),
        (VALVES, "opens at 15 bar", "Valve 1a opens at 15 bar. Valve 2a opens at 15 bar.", 0),
        (["Closed. Opens late", "Closed! Opens early"], "closed", "closed: opens early", 1),
        (["A opens 1", "B opens 2"], "opens", "B opens 3", 1),
        (["A opens 1", "B opens 2"], "opens", "A opens 2", 0),
    ],
)
def test_of_several_places_the_one_that_fits_the_block_is_marked(
    texts: list[str], quote: str, context: str, index: int
) -> None:
    (place,) = quote_places(texts, quote, context)
    assert place.index == index


def test_repeated_words_are_told_apart_though_they_overlap() -> None:
    (place,) = quote_places(["0 0 0 1"], "0 0", "0 0 1")
    assert (place.start, place.end) == (2, 5)


def test_a_table_is_found_row_by_row_where_its_header_is_repeated() -> None:
    texts = ["Model", "Weight", "P1", "10 kg", "P2", "20 kg"]
    quote = "| Model | Weight |\n| --- | --- |\n| P2 | 20 kg |"
    assert marked(texts, quote) == ["Model", "Weight", "P2", "20 kg"]


def test_a_cell_is_marked_alone_only_where_it_stands_once() -> None:
    texts = ["by the harbour", "Ledger", "total", "Summary", "Summary", "Centrifugal pump"]
    quote = "| Ledger | total | Summary | Centrifugal pump |"
    assert marked(texts, quote) == ["Ledger", "Centrifugal pump"]


def test_rows_of_a_table_are_found_by_their_cells() -> None:
    texts = ["P2 20 kg", "| Model | Weight |\n| --- | --- |\n| P1 | 10 kg |\n| **P2** | 20 kg |\nP2 20 kg"]
    assert excerpts_at(texts, row_places(texts, [("p2", "20 kg"), ("", "")])) == ["| **P2** | 20 kg |"]
    assert excerpts_at(texts, row_places(texts, [("Model", "Weight"), ("P3", "30 kg")])) == [
        "| Model | Weight |"
    ]
    assert row_places(texts, [("", "")]) == []


def word(text: str, left: float, top: float, width: float = 0.05, height: float = 0.02) -> PageWord:
    area = PageArea(left=left, top=top, right=left + width, bottom=top + height)
    return PageWord(text=text, area=area)


def test_words_of_a_line_are_one_rectangle_and_lines_are_several() -> None:
    words = [
        word("The", 0.1, 0.1),
        word("pump", 0.16, 0.1),
        word("runs", 0.1, 0.13),
        word("well.", 0.16, 0.13),
    ]
    first, second = quote_areas(words, "pump runs well")
    assert (first.left, first.top) == (0.16, 0.1)
    assert first.right == pytest.approx(0.21)
    assert (second.left, second.top) == (0.1, 0.13)
    assert second.right == pytest.approx(0.21)


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ((0.1, 0.1, 0.05, 0.02), (0.6, 0.1, 0.05, 0.02), 2),  # two columns
        ((0, 0, 0.125, 0.125), (0.4375, 0, 0.125, 0.125), 1),  # two and a half heights apart
        ((0, 0, 0.125, 0.125), (0.5, 0, 0.125, 0.125), 2),
        ((0, 0, 0.125, 0.5), (0.125, 0.25, 0.125, 0.5), 1),  # half the height in common
        ((0, 0, 0.125, 0.5), (0.125, 0.3, 0.125, 0.5), 2),
        ((0, 0, 0.125, 0.5), (0.125, 0.4375, 0.125, 0.125), 1),  # half the smaller height, as for an exponent
        ((0, 0.4375, 0.125, 0.125), (0.125, 0, 0.125, 0.5), 1),
    ],
)
def test_words_near_each_other_on_a_line_are_one_rectangle(
    first: tuple[float, ...], second: tuple[float, ...], count: int
) -> None:
    areas = quote_areas([word("pump", *first), word("runs", *second)], "pump runs")
    assert len(areas) == count
    assert areas[0].left == first[0]
    assert areas[-1].right == second[0] + second[2]


def test_a_passage_between_others_has_its_own_rectangles() -> None:
    words = [word(text, 0.1 * place, 0.1) for place, text in enumerate("one pump runs now".split())]
    (area,) = quote_areas(words, "pump runs")
    assert area.left == pytest.approx(0.1)
    assert area.right == pytest.approx(0.25)
    assert quote_areas(words, "nowhere") == ()


def test_each_fragment_of_a_quotation_is_found() -> None:
    texts = ["Two findings were recorded: the tester is old, and lots are missing."]
    places = quote_places(texts, "Two findings were recorded … lots are missing.")
    assert [texts[0][place.start : place.end] for place in places] == [
        "Two findings were recorded",
        "lots are missing",
    ]
