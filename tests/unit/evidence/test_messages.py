"""The language of our own sentences."""

import pytest

from shared.evidence.messages import ENGLISH, GERMAN, messages_for


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is the maximum pressure?", ENGLISH),
        ("Wie hoch ist der maximale Druck?", GERMAN),
        ("Vergleiche die Handbücher und nenne den Unterschied", GERMAN),
        ("X200 pressure", ENGLISH),
        ("", ENGLISH),
    ],
)
def test_we_speak_the_language_of_the_question(question: str, words: object) -> None:
    assert messages_for(question) is words
