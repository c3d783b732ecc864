"""Tests for the layout rules of the PDF parser, using lines constructed by hand."""

from contextlib import closing
from pathlib import Path

import pypdfium2
import pytest
from fpdf import FPDF

from shared.documents.models import Element
from shared.ingestion.parsers.pdf import parse_pdf
from shared.ingestion.parsers.pdf_content import HYPHEN_MARK, TextLine, Word
from shared.ingestion.parsers.pdf_lines import (
    HyphenRule,
    Line,
    ParagraphRule,
    in_columns,
    is_row,
    line_of,
    page_lines,
    paragraph_element,
    paragraph_text,
    split_groups,
)
from shared.ingestion.parsers.pdfium_text import text_lines


@pytest.mark.parametrize(
    ("elsewhere", "broken", "mended"),
    [
        ("a program runs", f"the pro{HYPHEN_MARK}gram", "the program"),
        ("cutting-edge work", f"cutting{HYPHEN_MARK}edge", "cutting-edge"),
        ("the cutting of an edge", f"cutting{HYPHEN_MARK}edge", "cutting-edge"),
        ("nothing of it", f"requi{HYPHEN_MARK}res", "requires"),
        ("nothing of it", f"Regulation S{HYPHEN_MARK}T", "Regulation S-T"),
        ("nothing of it", f"pages 3{HYPHEN_MARK}5", "pages 3-5"),
    ],
)
def test_the_documents_own_words_decide_on_a_hyphen(elsewhere: str, broken: str, mended: str) -> None:
    assert HyphenRule([elsewhere, broken]).resolve_marks(broken) == mended


def line(text: str, top: float, *, left: float = 50, right: float = 500, size: float = 10) -> Line:
    return Line(text, 1, size, bold=False, left=left, right=right, top=top, bottom=top - size)


def groups(*lines: Line) -> list[str]:
    rule = ParagraphRule(lines)
    return [paragraph_text(group, rule) for group in split_groups(lines, rule)]


def test_a_gap_parts_paragraphs_and_line_spacing_does_not() -> None:
    lines = [line("one", 700), line("two", 688), line("three", 676), line("Four", 650), line("five", 638)]
    assert groups(*lines) == ["one two three", "Four five"]


def test_a_sentence_goes_on_in_the_next_column() -> None:
    lines = [
        line("The valve is opened", 100, right=250),
        line("by hand.", 700, left=300),
        line("Then", 800, left=550),
    ]
    assert groups(*lines) == ["The valve is opened by hand.", "Then"]


def test_a_line_end_stays_where_the_next_word_would_have_fitted() -> None:
    lines = [
        line("Groundwork Limited", 700, right=150),
        line("Harbour Street 7", 688, right=140),
        line("a long line that fills the column from one end to the other", 676),
    ]
    assert groups(*lines) == [
        "Groundwork Limited\nHarbour Street 7 a long line that fills the column from one end to the other"
    ]


def test_cells_on_one_base_line_are_one_row() -> None:
    cells = [line("Pressure", 700, right=100), line("16 bar", 700, left=200, right=240)]
    assert groups(*cells) == ["Pressure 16 bar"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Net sales $ 1,234 $ (567) 8.9 %", True),
        ("Total 3 4", True),
        ("In 2018 sales rose by 3 percent to 1.2 million, more than in any year before that one", False),
        ("Chapter 3", False),
    ],
)
def test_rows_of_numbers_are_told_from_prose(text: str, expected: bool) -> None:
    assert is_row(text) is expected


def test_words_bullets_of_symbol_fonts_begin_items_of_a_list() -> None:
    lines = [line("\uf0b7 Wear gloves", 700), line("\uf0a7 Close the valve", 688)]
    assert [paragraph_element(text, 1) for text in groups(*lines)] == [
        Element(kind="list_item", text="- Wear gloves", page_number=1),
        Element(kind="list_item", text="- Close the valve", page_number=1),
    ]


FULL = "Dieser Vertrag wurde zwischen den Parteien geschlossen am"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (line(FULL, 700), line("14. März 2024 in Kassel.", 688), 1),
        (line(f"2. {FULL}", 700), line("14. März 2024 in Kassel.", 688, left=85), 1),
        (line("Zutaten", 700, right=120), line("14. März 2024 in Kassel.", 688), 2),
        (line(f"{FULL}:", 700), line("14. März 2024 in Kassel.", 688), 2),
        (line(f"13. {FULL}", 700), line("14. März 2024 in Kassel.", 688), 2),
        (line(FULL, 700, left=85), line("14. März 2024 in Kassel.", 688), 2),
        (line(FULL, 700), line("a) eine Frist", 688), 2),
    ],
)
def test_a_date_that_is_wrapped_is_no_list_item(before: Line, after: Line, expected: int) -> None:
    assert len(groups(before, after)) == expected


def in_turns(count: int, gap: float = 30) -> list[Line]:
    """Return lines of two columns in the order of a program that writes row by row."""
    lines = []
    for row in range(count):
        top = 700 - 12 * row
        lines.append(line(f"left column line {row}", top, right=250))
        lines.append(line(f"right column line {row}", top, left=250 + gap))
    return lines


def test_columns_that_were_written_in_turns_come_one_after_the_other() -> None:
    texts = [one.text for one in in_columns(in_turns(3))]
    assert texts == [f"{side} column line {row}" for side in ("left", "right") for row in range(3)]


def crossing_line(top: float) -> Line:
    """Return eight words, four on either side of a gap from 240 to 270."""
    lefts = [80, 120, 160, 200, 270, 310, 350, 390]
    texts = "left prose goes on right prose goes on".split()
    words = [Word(text, left, top - 10, left + 40, top) for text, left in zip(texts, lefts, strict=True)]
    return line_of(TextLine(tuple(words), 10, is_bold=False), 1)


def test_a_line_that_runs_over_two_columns_is_cut() -> None:
    heading = line("A heading over both of the columns", 730)
    crossing = [crossing_line(700 - 12 * row) for row in range(4)]
    ordered = in_columns([heading, *crossing, line("Below all of it", 600)])
    sides = ["left prose goes on"] * 4 + ["right prose goes on"] * 4
    assert [one.text for one in ordered] == [heading.text, *sides, "Below all of it"]
    assert (ordered[1].right, ordered[5].left) == (240, 270)


@pytest.mark.parametrize(
    "lines",
    [
        in_turns(2),
        in_turns(4, gap=3),
        [*in_turns(4), line("a line of text that runs over the strip", 688)],
        [
            line(f"{side} {row}", 700 - 12 * row, left=left)
            for row in range(4)
            for side, left in (("Sales", 50), ("1,234", 300))
        ],
    ],
    ids=["too few lines", "no free strip", "something over the strip", "cells of a table"],
)
def test_anything_else_stays_as_it_was_written(lines: list[Line]) -> None:
    assert in_columns(lines) == lines


def test_labels_of_a_chart_are_not_read_as_one_text() -> None:
    steps = [line("Order placed", 700, right=120), line("Goods sent", 690, left=160, right=220)]
    assert groups(*steps, line("Paid", 680, left=260, right=290)) == ["Order placed", "Goods sent", "Paid"]


def test_boxes_of_prose_side_by_side_are_no_row() -> None:
    boxes = [
        line("A sentence in a box", 700, right=150),
        line("and one in the next", 700, left=300, right=400),
    ]
    assert groups(*boxes) == ["A sentence in a box", "and one in the next"]


def test_columns_reach_as_far_as_their_strip_is_free() -> None:
    lines = [
        line("2 May 2026", 740, left=400),
        line("The left column is longer and its", 728, right=250),
        *in_turns(3),
        line("words", 664, right=80),
        line("and the end", 664, left=280, right=350),
        line("Next heading", 640, right=140),
        line("A paragraph below both of the columns, which is as wide as the page", 628),
    ]
    assert [one.text for one in in_columns(lines)] == [
        "2 May 2026",
        "The left column is longer and its",
        *(f"left column line {row}" for row in range(3)),
        "words",
        *(f"right column line {row}" for row in range(3)),
        "and the end",
        "Next heading",
        "A paragraph below both of the columns, which is as wide as the page",
    ]


def test_rows_whose_cells_are_names_are_no_columns() -> None:
    rows = [
        line(text, 700 - 12 * row, left=left, right=left + 150)
        for row in range(4)
        for text, left in ((f"Kestrel Imports Limited {row}", 50.0), ("Mexico Federal District", 300.0))
    ]
    assert in_columns(rows) == rows


def test_a_sentence_goes_on_at_the_top_of_a_column_alone() -> None:
    first = line("However, four of those", 500, right=250)
    above, inside = line("small towns are on the verge of", 524, left=300), line("ruin.", 512, left=300)
    assert groups(above, first, inside) == [above.text, first.text, inside.text]


def test_a_line_that_leaps_back_to_the_other_column_is_two(tmp_path: Path) -> None:
    document = FPDF(unit="pt")
    document.add_page()
    document.set_font("Helvetica", size=10)
    document.text(300, 100, "1888).")
    document.text(50, 102, "town planning, Main Street often began at")
    (tmp_path / "a.pdf").write_bytes(bytes(document.output()))
    with closing(pypdfium2.PdfDocument(tmp_path / "a.pdf")) as opened:
        lines = page_lines(text_lines(opened[0]), 1)
    assert [(one.text, round(one.left)) for one in lines] == [
        ("1888).", 300),
        ("town planning, Main Street often began at", 50),
    ]


def test_a_line_far_to_the_left_of_a_cell_is_no_part_of_it() -> None:
    cells = [
        line("Mexico, Federal District", 700, left=400),
        line("Hong Kong Limited Hong Kong", 688, left=80),
    ]
    assert groups(*cells) == [cell.text for cell in cells]
    title = [line("KESTREL", 700, left=240, right=310), line("a title that is centred below it", 688)]
    assert groups(*title) == ["KESTREL a title that is centred below it"]


def test_wider_text_elsewhere_on_the_page_breaks_no_prose() -> None:
    prose = [
        line("Of every thousand parcels,", 100, right=185),
        line("962 came on time, three fewer", 88, right=200),
        line("than a year ago; complaints", 76, right=185),
        line("rose by a tenth.", 64, right=120),
    ]
    wide = line("Below runs a line over the whole page, from the left to the right.", 20, right=500)
    rule = ParagraphRule([*prose, wide])
    assert "\n" not in paragraph_text(prose, rule)


def test_small_capitals_in_the_middle_of_a_line_part_no_paragraph(tmp_path: Path) -> None:
    pdf = FPDF(unit="pt")
    pdf.add_page()
    pdf.set_font("Times", size=10)
    pdf.text(50, 100, "In this paper we present Program-Guided Fact Checking and a")
    pdf.text(50, 112, "model that we call P")
    left = 50 + pdf.get_string_width("model that we call P")
    pdf.set_font("Times", size=8)
    pdf.text(left, 112, "ROGRAM FACT CHECKING WITH CAPITALS")
    left += pdf.get_string_width("ROGRAM FACT CHECKING WITH CAPITALS ")
    pdf.set_font("Times", size=10)
    pdf.text(left, 112, "in all of the")
    pdf.text(50, 124, "sections that follow.")
    pdf.output(str(tmp_path / "a.pdf"))
    assert len(parse_pdf(tmp_path / "a.pdf").elements) == 1


def test_a_raised_number_parts_no_line() -> None:
    texts = [("systems.", 50, 90, 100, 86), ("6", 91, 94, 99, 92), ("It also updates", 96, 180, 100, 86)]
    lines = [
        TextLine((Word(text, left, bottom, right, top),), float(top - bottom), is_bold=False)
        for text, left, right, top, bottom in texts
    ]
    assert [one.text for one in page_lines(lines, 1)] == ["systems. 6 It also updates"]


def test_text_that_is_turned_on_its_head_is_a_paragraph_as_well() -> None:
    turned = [line(text, 100 + 12 * number, left=500, right=50) for number, text in enumerate("Abcde")]
    assert paragraph_text(turned, ParagraphRule(turned)).split() == list("Abcde")
