"""From the text of a turn to the statements of its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.answering.statements import Statement, split_statements, split_turn
from shared.evidence.tags import CiteTag, FigureTag, Text

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
    """Return the answer of a text that arrives in pieces of `size` characters."""
    shown = ""
    for end in range(size, len(text) + size, size):
        _, answer = split_turn(text[:end], is_answer=True)
        assert answer is not None
        assert answer.startswith(shown)
        shown = answer
    _, answer = split_turn(text, is_answer=True, at_end=True)
    assert answer is not None
    assert answer.startswith(shown)
    return answer


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("written", "answer"),
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
def test_a_fence_around_the_whole_answer_is_removed(written: str, answer: str, size: int) -> None:
    assert read(written, size) == answer


@pytest.mark.parametrize(
    ("said", "thought", "answer"),
    [
        ("Looking. <answer>It is 5.", "Looking. ", "It is 5."),
        ("Looking.", "Looking.", None),
        ('It is 5. <cite doc_id="d" quote="5"/>', "", 'It is 5. <cite doc_id="d" quote="5"/>'),
        ("A <cited> text.", "A <cited> text.", None),
        ("<ANSWER>A</ANSWER>", "", "A"),
    ],
)
def test_an_answer_begins_at_its_tag_or_with_a_citation(said: str, thought: str, answer: str | None) -> None:
    assert split_turn(said, is_answer=False, at_end=True) == (thought, answer)


@given(st.lists(st.sampled_from(PARTS), max_size=20).map("".join))
def test_the_answer_of_a_longer_text_begins_with_that_of_a_shorter_one(text: str) -> None:
    for is_answer in (False, True):
        shown = ""
        for end in range(len(text) + 1):
            _, answer = split_turn(text[:end], is_answer=is_answer)
            assert (answer or "").startswith(shown)
            shown = answer or ""
        _, answer = split_turn(text, is_answer=is_answer, at_end=True)
        assert (answer or "").startswith(shown)


CITE = CiteTag(result="q1")


def test_text_is_not_held_back_without_table_results() -> None:
    parts, held = split_statements([Text("It is 5 or ")])
    assert (parts, held) == ([Statement("It is 5 or ", begins_line=True)], [])


@pytest.mark.parametrize(
    ("text", "shown", "held"),
    [
        ("It grew. It made 5", "It grew.", " It made 5"),
        ("It grew", "", "It grew"),
        ("It made 5. It grew. Then", "", "It made 5. It grew. Then"),
        ("Both grew. Two fell. All", "Both grew.", " Two fell. All"),
    ],
)
def test_a_line_is_held_back_from_its_first_sentence_with_a_number(text: str, shown: str, held: str) -> None:
    parts, rest = split_statements([Text(text), CITE], holds_numbers=True)
    assert "".join(part.text for part in parts if isinstance(part, Statement)) == shown
    assert rest == [Text(held), CITE]


def test_a_line_break_or_a_figure_ends_a_statement() -> None:
    parts, held = split_statements(
        [Text("It made 5"), CITE, Text(".\nIt"), FigureTag("f")], holds_numbers=True
    )
    assert parts == [
        Statement("It made 5", (CITE,), begins_line=True),
        Statement(".\n"),
        Statement("It", begins_line=True),
        FigureTag("f"),
    ]
    assert held == []
