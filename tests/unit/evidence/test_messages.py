"""The language of our own sentences."""

import pytest

from shared.evidence.messages import ENGLISH, GERMAN, messages_in


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", ENGLISH), ("de", GERMAN), ("de-AT", GERMAN), ("DE", GERMAN), ("del", ENGLISH), ("", ENGLISH)],
)
def test_we_speak_german_and_to_everyone_else_english(language: str, words: object) -> None:
    assert messages_in(language) is words
