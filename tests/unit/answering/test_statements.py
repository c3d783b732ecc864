"""Tests for splitting the text of a turn into the statements of its answer."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.answering.statements import Statement, parse_answer, split_turn
from shared.evidence.tags import CiteTag, FigureTag

PARTS = (
    "<answer>",
    "</answer>",
    "<ans",
    "```markdown\n",
    "```\n",
    "```",
    "~~~",
    "\n",
    "<cite ",
    "x",
    " ",
    "python",
)


def read(text: str, size: int) -> str:
    """Parse a text that arrives in pieces of `size` characters."""
    previous = ""
    for end in range(size, len(text) + size, size):
        _, answer = split_turn(text[:end], is_answer=True)
        assert answer is not None
        assert answer.startswith(previous)
        previous = answer
    _, answer = split_turn(text, is_answer=True, at_end=True)
    assert answer is not None
    assert answer.startswith(previous)
    return answer


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("```markdown\n# A\n\n```python\nx\n```\nB\n```\n", "# A\n\n```python\nx\n```\nB\n"),
        ("<answer>\n```md\n| a |\n```", "| a |\n"),
        ("~~~markdown\nA\n~~~\nafter", "A\nafter"),
        ("```markdown\nnever closed", "never closed"),
        ("```python\nx\n```\n", "```python\nx\n```\n"),
        ("A\n```markdown\nx\n```", "A\n```markdown\nx\n```"),
        ("``` x", "``` x"),
    ],
)
def test_a_fence_around_the_whole_answer_is_removed(text: str, answer: str, size: int) -> None:
    assert read(text, size) == answer


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("Looking. <answer>It is 5.", "Looking. ", "It is 5."),
        ("Looking.", "Looking.", None),
        ('It is 5. <cite doc_id="d" quote="5"/>', "", 'It is 5. <cite doc_id="d" quote="5"/>'),
        ("A <cited> text.", "A <cited> text.", None),
        ("<ANSWER>A</ANSWER>", "", "A"),
    ],
)
def test_an_answer_begins_at_its_tag_or_with_a_citation(text: str, thought: str, answer: str | None) -> None:
    assert split_turn(text, is_answer=False, at_end=True) == (thought, answer)


@given(st.lists(st.sampled_from(PARTS), max_size=20).map("".join))
def test_the_answer_of_a_longer_text_begins_with_that_of_a_shorter_one(text: str) -> None:
    for is_answer in (False, True):
        previous = ""
        for end in range(len(text) + 1):
            _, answer = split_turn(text[:end], is_answer=is_answer)
            assert (answer or "").startswith(previous)
            previous = answer or ""
        _, answer = split_turn(text, is_answer=is_answer, at_end=True)
        assert (answer or "").startswith(previous)


TAGS = ('<cite result="q1"/>', "<gap/>", '<gap missing="x"/>', '<figure block_id="f"/>')
TEXTS = ("\0", "\1", "It is 5. ", " ", "\n")
CITE = CiteTag(result="q1")


@given(st.lists(st.sampled_from((*PARTS, *TAGS, *TEXTS)), max_size=20).map("".join))
def test_the_parts_of_a_longer_text_begin_with_those_of_a_shorter_one(text: str) -> None:
    whole = parse_answer(text, at_end=True)
    for end in range(len(text)):
        answer = parse_answer(text[:end], at_end=False)
        assert whole.text.startswith(answer.text)
        assert whole.tags[: len(answer.tags)] == answer.tags
        assert answer.before_numbers <= len(answer.text)
        assert min(answer.first_gap, len(answer.text)) <= whole.first_gap


@given(st.lists(st.sampled_from((*PARTS, *TAGS, *TEXTS)), max_size=20).map("".join), st.integers(0, 50))
def test_parts_have_all_text_and_tags_wherever_they_are_split(text: str, cut: int) -> None:
    answer = parse_answer(text, at_end=True)
    cut = min(cut, len(answer.text))
    parts = [*answer.parts(0, cut), *answer.parts(cut, len(answer.text))]
    statements = [part for part in parts if isinstance(part, Statement)]
    assert "".join(part.text for part in statements) == re.sub("[\0\1]", "", answer.text)
    tags: list[object] = []
    for part in parts:
        tags += part.cites if isinstance(part, Statement) else [part]
    assert tuple(tags) == answer.tags


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It grew. It made 5", "It grew."),
        ("It grew", ""),
        ("It made 5. It grew. Then", ""),
        ("Both grew. Two fell. All", "Both grew."),
        ("It made 5.\nIt grew. It", "It made 5.\nIt grew."),
        ('<figure block_id="f"/>It', "\1"),
    ],
)
def test_a_line_is_held_back_from_its_first_sentence_with_a_number(text: str, expected: str) -> None:
    answer = parse_answer(f'{text}<cite result="q1"/>', at_end=False)
    assert answer.text[: answer.before_numbers] == expected


def test_a_line_break_or_a_figure_ends_a_statement() -> None:
    answer = parse_answer('It made 5<cite result="q1"/>.\nIt<figure block_id="f"/>', at_end=False)
    assert list(answer.parts(0, len(answer.text))) == [
        Statement("It made 5", (CITE,), begins_line=True),
        Statement(".\n"),
        Statement("It", begins_line=True),
        FigureTag("f"),
    ]


@pytest.mark.parametrize("space", ["", " ", "  ", "\t", "\u00a0"])
def test_citations_separated_by_spaces_follow_one_statement(space: str) -> None:
    answer = parse_answer(f'It made 5. <cite result="q1"/>{space}<cite result="q1"/> It', at_end=True)
    assert list(answer.parts(0, len(answer.text))) == [
        Statement("It made 5. ", (CITE, CITE), begins_line=True),
        Statement(" It"),
    ]


def test_citations_on_separate_lines_follow_separate_statements() -> None:
    answer = parse_answer('- 5 <cite result="q1"/> \n<cite result="q1"/>', at_end=True)
    assert [part.cites for part in answer.parts(0, len(answer.text)) if isinstance(part, Statement)] == [
        (CITE,),
        (),
        (CITE,),
    ]
