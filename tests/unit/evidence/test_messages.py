"""Tests for the language of messages written by the app."""

import pytest

from shared.evidence.messages import ENGLISH, GERMAN, OTHER_LANGUAGE, messages_in


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ENGLISH),
        ("de", GERMAN),
        ("de-AT", GERMAN),
        ("DE", GERMAN),
        ("del", OTHER_LANGUAGE),
        ("fr", OTHER_LANGUAGE),
        ("", ENGLISH),
    ],
)
def test_sentences_are_english_or_german_and_none_in_other_languages(language: str, words: object) -> None:
    assert messages_in(language) is words
