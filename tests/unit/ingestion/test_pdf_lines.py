"""The rules behind the PDF parser, each on lines made by hand."""

import pytest

from shared.ingestion.parsers.pdf_lines import (
    HYPHEN_MARK,
    HyphenRule,
    Line,
    ParagraphRule,
    is_row,
    paragraph_text,
    split_groups,
)


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
    assert HyphenRule([elsewhere, broken]).mend(broken) == mended


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
