"""What of a turn is the answer."""

import pytest

from shared.answering.turn_reader import TurnReader


def read(text: str, size: int) -> str:
    reader = TurnReader(must_answer=True)
    pieces = [reader.feed(text[start : start + size]) for start in range(0, len(text), size)]
    return "".join([*pieces, reader.finish(is_answer=True)])


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
def test_a_fence_around_the_whole_answer_is_taken_off(written: str, answer: str, size: int) -> None:
    assert read(written, size) == answer
