"""Tests for the words and table rows of a block."""

import pytest

from shared.evidence.block_text import BlockText

TABLE = BlockText("Before.\n\n| Part | Length |\n|---|---|\n| Bolt | 12 mm |\n\nAfter it.")


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("| a | b |\n| c | d |", ["/a,b", "/c,d"]),
        ("| a | b |\n|---|---|\n| c | d |", ["/a,b", "a,b/c,d"]),
        ("| a | b |\n|---|---|\n| c |d\n| | e |", ["/a,b", "a,b/c,d", "a,b/,e"]),
        ("| a | b |\n|---|---|\n| c d | |\n| | |", ["/a,b", "a,b/c d,"]),
        ("| a | b |\n|---|---|\n| c | d | e |", ["/a,b", "/c,d,e"]),
        ("| a | b |\n|---|---|\n\n| c | d |", ["/a,b", "/c,d"]),
        ("no row", []),
    ],
)
def test_rows_of_a_table_have_its_header(content: str, rows: list[str]) -> None:
    block = BlockText(content)

    def texts(cells: tuple[tuple[int, int], ...]) -> str:
        return ",".join(" ".join(word.key for word in block.words[slice(*cell)]) for cell in cells)

    assert [f"{texts(row.header)}/{texts(row.cells)}" for row in block.rows] == rows


def place_of(key: str) -> int:
    return TABLE.places[key][0]


def test_the_row_of_a_word_is_that_of_its_cell() -> None:
    row = TABLE.row_at(place_of("12"))
    assert row is not None
    assert row is TABLE.row_at(place_of("bolt"))
    assert TABLE.line(row.run) == "| Bolt | 12 mm |"
    assert TABLE.row_at(place_of("after")) is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("It opens at 15 bar. Close it.", "It opens at 15 bar."),
        ("It opens (at 15 bar). Close it.", "It opens (at 15 bar)."),
        ("It opens at 15 bar, then", "It opens at 15 bar"),
    ],
)
def test_words_are_shown_with_the_closing_punctuation_after_them(content: str, expected: str) -> None:
    assert BlockText(content).shown((0, 5)) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Write to <a@b.example> or <c@d.example>, please.", "Write to <a@b.example> or <c@d.example>"),
        ("Write a > b or <c@d.example> too> then", "Write a > b or <c@d.example> too"),
    ],
)
def test_addresses_keep_their_brackets(content: str, expected: str) -> None:
    block = BlockText(content)
    last = next(place for place, word in enumerate(block.words) if word.end >= len(expected) - 1)
    assert block.shown((0, last + 1)) == expected


def test_only_marks_before_a_line_show_how_often_it_was_quoted() -> None:
    block = BlockText("> At that time x > y, five and so\n> it is for all.")
    first = block.places["five"][0]
    assert block.unquoted((first, len(block.words))) == "five and so\nit is for all."


def test_clauses_and_their_negations_are_found() -> None:
    block = BlockText("The pump, if not old, runs well. It hums")
    assert [block.clause_start(place) for place in range(9)] == [0, 0, 2, 2, 2, 5, 5, 7, 7]
    assert [block.clause_end(place) for place in range(10)] == [0, 2, 2, 5, 5, 5, 7, 7, 9, 9]
    assert block.has_negation((2, 4))
    assert block.has_negation((3, 5))
    assert not block.has_negation((2, 3))
    assert not block.has_negation((4, 9))
    assert not block.has_negation((3, 3))


def test_headings_are_found_with_their_levels() -> None:
    block = BlockText("# One\n\n#tag\n\n## Two # no\n\nText\n\n####### no")
    assert block.heading_levels((0, len(block.words))) == [1, 2]
    assert block.heading_levels((1, 2)) == []
    assert block.heading_levels((2, 3)) == [2]
