"""What counts as a word of the reference, and what share of them was found."""

import pytest

from evals.word_recall import word_recall


@pytest.mark.parametrize(
    ("reference", "text", "recall"),
    [
        ("the red pump", "The pump, red.", 1.0),
        ("one two three four", "one two", 0.5),
        ("yes yes yes yes", "yes", 0.25),
        ("", "anything", 1.0),
        ("<!-- image -->", "", 1.0),
        ("**bold** and `code`", "bold and code", 1.0),
        ("[the manual](https://example.org/a_(b)) ![a pump](pump.png)", "the manual a pump", 1.0),
        ("R&amp;D in my\\_file", "R&D in my_file", 1.0),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", "a b 1 2", 1.0),
        ("- [x] done", "done", 1.0),
    ],
)
def test_recall_counts_the_words_a_reader_sees(reference: str, text: str, recall: float) -> None:
    assert word_recall(reference, text) == recall
