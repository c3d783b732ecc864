"""Pictures stand behind the paragraph they belong to; documents that differ are set side by side."""

import re

import pytest

from local.model_server.embedding.service import EmbeddingService
from tests.unit.model_server.conftest import block, document
from tests.unit.model_server.test_answers import answer, quotes

FIGURE = re.compile(r'^<figure block_id="([^"]*)"/>$', re.MULTILINE)
TEXT = block("The maximum pressure of the pump is 250 bar. It is shown in the pump curve.", page="3")
CURVE = block("Figure 2: Pressure of the pump over its speed", type="image", page="3", block_id="curve")
LOBBY = block("Two people shake hands in the lobby", type="image", page="3", block_id="lobby")
QUESTION = "What is the maximum pressure of the pump?"


def test_a_picture_of_the_cited_page_stands_behind_its_paragraph(embedder: EmbeddingService) -> None:
    given = answer(embedder, QUESTION, "CONTENT_SEARCH", document("m", TEXT, CURVE, LOBBY))
    assert FIGURE.findall(given) == ["curve"]
    assert given.index("<cite") < given.index("\n\n<figure")


def test_a_picture_that_has_nothing_to_do_with_the_question_is_left_out(embedder: EmbeddingService) -> None:
    assert not FIGURE.search(answer(embedder, QUESTION, "CONTENT_SEARCH", document("m", TEXT, LOBBY)))


def test_a_picture_goes_below_a_table(embedder: EmbeddingService) -> None:
    old = document("old", block("The maximum pressure of the pump is 200 bar.", page="3"), CURVE, title="Old")
    new = document("new", TEXT, title="New")
    given = answer(embedder, "Compare the maximum pressure of the pump", "COMPARISON", old, new)
    rows = [place for place, line in enumerate(given.split("\n")) if line.startswith("|")]
    assert rows == list(range(rows[0], rows[-1] + 1))
    assert FIGURE.findall(given) == ["curve"]


@pytest.mark.parametrize(
    ("question", "words", "version"),
    [
        (QUESTION, "**The documents differ:**", "version 2"),
        ("Wie hoch ist der maximale Druck der Pumpe?", "**Die Dokumente unterscheiden sich:**", "Version 2"),
    ],
)
def test_documents_that_differ_are_named_with_their_dates(
    embedder: EmbeddingService, question: str, words: str, version: str
) -> None:
    text = "The maximum pressure of the pump is {} bar." if words.startswith("**The") else ""
    text = text or "Der maximale Druck der Pumpe ist {} bar."
    old = document(
        "old", block(text.format(200)), title="Manual A", filename="a.pdf", upload_date="2023-05-01"
    )
    new = document(
        "new",
        block(text.format(250)),
        title="Manual B",
        filename="b.pdf",
        upload_date="2024-05-01",
        version="2",
    )
    given = answer(embedder, question, "CONTENT_SEARCH", old, new)
    (line,) = (line for line in given.split("\n") if line.startswith(words))
    assert {doc_id for doc_id, _ in quotes(line)} == {"old", "new"}
    assert "Manual A (a.pdf), 2023-05-01: " in line
    assert f"Manual B (b.pdf), {version}, 2024-05-01: " in line


@pytest.mark.parametrize(
    "other",
    [
        "The maximum pressure of the pump is 250 bar.",
        "In 2019 the maximum pressure of the pump was 200 bar.",
        "The maximum pressure of the X200 pump is 200 bar.",
        "The pump weighs 40 kg.",
    ],
)
def test_other_years_products_and_equal_numbers_are_no_disagreement(
    embedder: EmbeddingService, other: str
) -> None:
    one = document("one", block("The maximum pressure of the pump is 250 bar."))
    given = answer(embedder, QUESTION, "CONTENT_SEARCH", one, document("two", block(other)))
    assert "differ" not in given
