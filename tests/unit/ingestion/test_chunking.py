"""Tests for packing elements into blocks: grouping, splitting, the size limit, and no loss of text."""

import tracemalloc
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.documents.models import Chunk, Element, ElementKind
from shared.ingestion.chunking import chunk_elements, embedded_text
from shared.platform.tokens import estimate_tokens

MAX_TOKENS = 30
SPECIAL = 2


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def heading(text: str, level: int = 1, page: int | None = 1) -> Element:
    return Element(kind="heading", text=text, level=level, page_number=page)


def paragraph(text: str, page: int | None = 1) -> Element:
    return Element(kind="paragraph", text=text, page_number=page)


def chunks(*elements: Element, max_tokens: int = MAX_TOKENS) -> list[Chunk]:
    return chunk_elements(elements, max_tokens, count_words)


def sentence(number: int, words: int = 6) -> str:
    return f"Sentence {number} " + "word " * (words - 3) + "end."


def test_text_under_one_heading_is_packed_together() -> None:
    (chunk,) = chunks(heading("Safety"), paragraph("Open the valve."), paragraph("Close the drain."))
    assert chunk.text == "Safety\n\nOpen the valve.\n\nClose the drain."
    assert (chunk.heading_path, chunk.page_number) == ("Safety", 1)
    assert embedded_text(chunk).startswith("Safety\nSafety")


def test_blocks_end_at_high_headings_and_pages() -> None:
    blocks = chunks(
        heading("One"), paragraph("a a"), heading("Two", 2), paragraph("b b"), paragraph("c c", page=2)
    )
    assert [(c.text, c.heading_path, c.page_number) for c in blocks] == [
        ("One\n\na a", "One", 1),
        ("Two\n\nb b", "One > Two", 1),
        ("c c", "One > Two", 2),
    ]


def test_short_deep_sections_share_a_block_under_their_common_path() -> None:
    (chunk,) = chunks(
        heading("One"), paragraph("a"), heading("x", 3), paragraph("b"), heading("y", 3), paragraph("c")
    )
    assert chunk.heading_path == "One"
    assert chunk.text == "One\n\na\n\nx\n\nb\n\ny\n\nc"


def test_a_title_without_text_goes_with_what_follows_it() -> None:
    (chunk,) = chunks(heading("Report"), heading("Summary", 2), paragraph("Sales rose."))
    assert chunk.text == "Report\n\nSummary\n\nSales rose."
    assert chunk.heading_path == "Report > Summary"


def test_sentences_are_never_cut_and_one_is_repeated() -> None:
    text = " ".join(sentence(number) for number in range(12))
    blocks = chunks(paragraph(text))
    assert len(blocks) > 2
    for before, after in pairwise(blocks):
        assert before.text.endswith("end.")
        assert after.text.startswith(before.text[before.text.rindex("Sentence") :])


def test_a_sentence_over_the_limit_is_cut_at_words() -> None:
    blocks = chunks(paragraph("word " * 100))
    assert all(count_words([c.text])[0] <= MAX_TOKENS - SPECIAL for c in blocks)
    assert sum(count_words([c.text])[0] for c in blocks) == 100


def test_a_table_is_a_separate_block_with_what_introduces_it() -> None:
    table = Element(kind="table", text="| a | b |\n| --- | --- |\n| 1 | 2 |", page_number=1)
    blocks = chunks(heading("Prices"), paragraph("They are net."), table, paragraph("End."))
    assert [(c.kind, c.text) for c in blocks] == [
        ("text", "Prices\n\nThey are net."),
        ("table", f"They are net.\n\n{table.text}"),
        ("text", "End."),
    ]


@pytest.mark.parametrize("lead_in", ["(in millions)", "Prices were as follows:"])
def test_what_only_introduces_a_table_is_no_separate_block(lead_in: str) -> None:
    table = Element(kind="table", text="| a | b |\n| --- | --- |\n| 1 | 2 |", page_number=1)
    blocks = chunks(heading("Prices"), paragraph(lead_in), table, paragraph("End."))
    assert [(c.kind, c.text) for c in blocks] == [
        ("table", f"{lead_in}\n\n{table.text}"),
        ("text", "End."),
    ]


def test_a_paragraph_too_long_to_introduce_a_table_is_a_separate_block() -> None:
    table = Element(kind="table", text="| a | b |\n| --- | --- |\n| 1 | 2 |", page_number=1)
    blocks = chunks(heading("Prices"), paragraph(" ".join(map(sentence, range(2)))), table)
    assert [c.kind for c in blocks] == ["text", "table"]
    assert blocks[1].text == table.text


def test_a_heading_right_above_a_table_is_in_its_path_and_no_separate_block() -> None:
    table = Element(kind="table", text="| a |\n| --- |\n| 1 |", page_number=1)
    (chunk,) = chunks(heading("Prices"), table)
    assert (chunk.kind, chunk.heading_path) == ("table", "Prices")


def test_a_long_table_is_split_by_rows_under_its_header() -> None:
    rows = [f"| item {number} | {number} |" for number in range(20)]
    table = Element(kind="table", text="\n".join(["| item | price |", "| --- | --- |", *rows]))
    blocks = chunks(table, max_tokens=40)
    assert len(blocks) > 1
    assert all(c.text.startswith("| item | price |\n| --- | --- |\n") for c in blocks)
    assert [line for c in blocks for line in c.text.splitlines()[2:]] == rows


@pytest.mark.parametrize("count", range(9, 20))
def test_the_last_row_of_a_table_is_never_alone(count: int) -> None:
    rows = [f"| item {number} | {number} |" for number in range(count)]
    table = Element(kind="table", text="\n".join(["| item | price |", "| --- | --- |", *rows]))
    blocks = chunks(table, max_tokens=27 + SPECIAL)
    parts = [c.text.splitlines()[2:] for c in blocks]
    assert [row for part in parts for row in part] == rows
    assert abs(len(parts[-1]) - len(parts[-2])) <= 1


def test_a_long_last_row_of_a_table_is_not_alone() -> None:
    rows = ["| a | 1 |", "| b | 2 |", "| c | 3 |", f"| total {'of all ' * 5}| 6 |"]
    table = Element(kind="table", text="\n".join(["| item | price |", "| --- | --- |", *rows]))
    blocks = chunks(table, max_tokens=18 + SPECIAL)
    assert [c.text.splitlines()[2:] for c in blocks] == [rows[:2], rows[2:]]


def test_a_table_is_shown_with_its_markup_and_embedded_without() -> None:
    text = "| | 2019 |\n| --- | --- |\n| Net sales | $ 4 |\n| R\\|D | - |"
    (chunk,) = chunks(heading("Results"), Element(kind="table", text=text, page_number=1))
    assert chunk.text == text
    assert embedded_text(chunk) == "Results\n2019\nNet sales $ 4\nR|D -"


def test_markup_takes_no_room_from_a_table() -> None:
    # Each of the eight rows has three words and three borders.
    rows = [f"| item {number} | {number} |" for number in range(8)]
    table = Element(kind="table", text="\n".join(["| item | price |", "| --- | --- |", *rows]))
    (chunk,) = chunks(table, max_tokens=27 + SPECIAL)
    assert chunk.text == table.text


def test_empty_cells_do_not_make_a_table_of_any_length_one_block() -> None:
    rows = ["| x" + " |" * 40 for _ in range(20)]
    table = Element(kind="table", text="\n".join(["| x" + " |" * 40, "| ---" + " | ---" * 39 + " |", *rows]))
    blocks = chunks(table, max_tokens=100)
    assert len(blocks) > 1
    assert all(count_words([c.text])[0] <= 300 for c in blocks)


def test_lines_of_code_stay_lines() -> None:
    (chunk,) = chunks(Element(kind="code", text="run(pump)\n\nstop(pump)"))
    assert chunk.text == "run(pump)\n\nstop(pump)"


def test_a_heading_that_is_too_long_is_cut_in_the_path_only() -> None:
    title = " ".join(f"word{number}" for number in range(20))
    blocks = chunks(heading(title), paragraph("Text."))
    assert title in blocks[0].text
    assert count_words([blocks[0].heading_path])[0] <= MAX_TOKENS // 4


WORDS = st.lists(
    st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=12), min_size=1, max_size=60
)
KINDS: list[ElementKind] = ["heading", "paragraph", "list_item", "table", "code"]


@st.composite
def elements(draw: st.DrawFn) -> list[Element]:
    drawn_elements = []
    for page in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(0, 6))):
            kind = draw(st.sampled_from(KINDS))
            text = draw(st.sampled_from([" ", "\n", ". X"])).join(draw(WORDS))
            level = draw(st.integers(1, 6)) if kind == "heading" else None
            drawn_elements.append(Element(kind=kind, text=text, page_number=page + 1, level=level))
    return drawn_elements


@given(elements(), st.integers(20, 80))
def test_no_block_is_ever_over_the_limit_and_no_word_is_lost(
    given_elements: list[Element], limit: int
) -> None:
    blocks = chunk_elements(given_elements, limit, count_words)
    assert all(count_words([embedded_text(c)])[0] <= limit for c in blocks)
    words = set(" ".join(embedded_text(c) for c in blocks).split())
    for element in given_elements:
        for word in element.text.split():
            assert word[:40] in words


def test_a_title_that_comes_again_below_itself_is_said_once_in_the_path() -> None:
    blocks = chunks(heading("Report"), heading("Report", 2, page=2), paragraph("Text.", page=2))
    assert blocks[-1].heading_path == "Report"


def test_a_chunk_knows_the_element_that_it_begins_with() -> None:
    table = Element(kind="table", text="| a |\n|---|\n| 1 |", page_number=1)
    figure = Element(kind="figure", text="Figure 1", page_number=1)
    blocks = chunks(
        heading("Pumps"),
        paragraph(sentence(1)),
        figure,
        table,
        paragraph(sentence(2, 20)),
        paragraph(sentence(3, 20)),
    )
    assert [(chunk.kind, chunk.place) for chunk in blocks] == [
        ("text", 0),
        ("table", 3),
        ("text", 4),
        ("text", 5),
    ]


@pytest.mark.parametrize("text", ["word " * 200_000, "a b c.\n" * 150_000])
def test_a_long_paragraph_is_split_in_little_memory(text: str) -> None:
    tracemalloc.start()
    packed = chunk_elements([paragraph(text)], 200, estimate_tokens)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(len(chunk.text.split()) for chunk in packed) >= len(text.split())
    assert peak_bytes < 8 * len(text)
