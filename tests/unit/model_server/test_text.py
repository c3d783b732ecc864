"""Tests for pure text functions of the model server: words, sentences, tables, languages and scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.model_server.text.passages import split_sentences, table_rows
from local.model_server.text.words import detect_language


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It opens at 270 bar. It closes later.", ["It opens at 270 bar.", "It closes later."]),
        ("See Dr. Miller, e.g. on Monday. Then go.", ["See Dr. Miller, e.g. on Monday.", "Then go."]),
        ("Am 3. Mai beginnt es. Danach nicht mehr.", ["Am 3. Mai beginnt es.", "Danach nicht mehr."]),
        ("A line that\nruns on here. Next.", ["A line that\nruns on here.", "Next."]),
        ("Bring:\n- a helmet\n- gloves", ["Bring:", "- a helmet", "- gloves"]),
        ("# Heading\nText under it.", ["# Heading", "Text under it."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(alphabet="aB1 .!?\n-#|•:", max_size=80))
def test_every_sentence_stands_verbatim_in_the_text_and_in_order(text: str) -> None:
    at = 0
    for sentence in split_sentences(text):
        assert sentence
        at = text.index(sentence, at) + len(sentence)


def test_table_rows_read_with_their_header() -> None:
    text = "Prices\n| Model | Price |\n|---|---:|\n| X200 | 1,200 EUR |\n| X300 |  |\n"
    assert table_rows(text) == [
        ("| X200 | 1,200 EUR |", "Model X200: Price 1,200 EUR"),
        ("| X300 |  |", "Model X300"),
    ]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The pressure of the valve is checked by the operator.", "en"),
        ("Der Druck des Ventils wird von der Bedienung geprüft.", "de"),
        ("La pression de la soupape est contrôlée par les opérateurs.", "fr"),
        ("12345", "en"),
    ],
)
def test_language_is_told_by_stop_words(text: str, language: str) -> None:
    assert detect_language(text) == language
