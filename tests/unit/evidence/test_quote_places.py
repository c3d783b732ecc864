"""Where a quotation stands among the texts of a page, and which rectangles it covers."""

import pytest

from shared.evidence.models import PageArea, PageWord
from shared.evidence.quote_places import quote_areas, quote_places


def marked(texts: list[str], quote: str, context: str = "") -> list[str]:
    return [texts[place.index][place.start : place.end] for place in quote_places(texts, quote, context)]


@pytest.mark.parametrize(
    ("texts", "quote", "found"),
    [
        (["The pump runs at 15 bar."], "runs at 15 bar", ["runs at 15 bar"]),
        (["The pump runs", "at 15 bar."], "runs at 15 bar.", ["runs", "at 15 bar."]),
        (["a main-", "tenance plan"], "maintenance plan", ["main", "tenance plan"]),
        (["the  oﬃce\nin Köln"], "office in Köln", ["oﬃce\nin Köln"]),
        (["Ko\u0308ln is closed"], "Köln is closed", ["Ko\u0308ln is closed"]),
        (["It costs 115 bar"], "15 bar", []),
        (["runs at 15 bars"], "15 bar", []),
        (["nothing of it"], "something else", []),
        (["text"], "", []),
        ([], "text", []),
        (["“Stop!”, he said"], '"Stop!", he said', ["Stop!”, he said"]),
    ],
)
def test_letters_and_digits_decide(texts: list[str], quote: str, found: list[str]) -> None:
    assert marked(texts, quote) == found


def test_of_several_places_the_one_that_fits_the_block_is_marked() -> None:
    texts = ["Valve V1 opens at 15 bar.", "Valve V2 opens at 15 bar.", "Valve V3 opens at 15 bar."]
    (place,) = quote_places(texts, "opens at 15 bar", "Valve V2 opens at 15 bar. Valve V3")
    assert place.index == 1
    assert quote_places(texts, "opens at 15 bar")[0].index == 0


def test_a_table_is_found_row_by_row_where_its_header_is_repeated() -> None:
    texts = ["Model", "Weight", "P1", "10 kg", "P2", "20 kg"]
    quote = "| Model | Weight |\n| --- | --- |\n| P2 | 20 kg |"
    assert marked(texts, quote) == ["Model", "Weight", "P2", "20 kg"]


def test_a_cell_is_marked_alone_only_where_it_stands_once() -> None:
    texts = ["Centrifugal pump", "by the harbour", "total", "total"]
    assert marked(texts, "| Centrifugal pump | total |") == ["Centrifugal pump"]


def word(text: str, left: float, top: float) -> PageWord:
    area = PageArea(left=left, top=top, right=left + 0.05, bottom=top + 0.02)
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


def test_words_of_two_columns_are_two_rectangles() -> None:
    words = [word("pump", 0.1, 0.1), word("runs", 0.6, 0.1)]
    assert len(quote_areas(words, "pump runs")) == 2
    assert quote_areas(words, "nowhere") == ()


def test_each_fragment_of_a_quotation_is_found() -> None:
    texts = ["Two findings were recorded: the tester is old, and lots are missing."]
    places = quote_places(texts, "Two findings were recorded … lots are missing.")
    assert [texts[0][place.start : place.end] for place in places] == [
        "Two findings were recorded",
        "lots are missing",
    ]
