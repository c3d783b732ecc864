"""Tests for follow-up questions of the model server, which concern sections not quoted in the answer."""

import re
from html import unescape

from local.model_server.answers import answer_from_message
from local.model_server.embedding.service import EmbeddingService
from shared.answering.next_questions import worth_asking
from tests.unit.model_server.conftest import block, document, prompt

FOLLOW_UP = re.compile(r'<follow_up question="([^"]*)"/>')
MANUAL = document(
    "manual",
    block("The maximum pressure of the press is 250 bar.", heading="3 Data > 3.1 Limits"),
    block("The filter is replaced every 500 hours by trained staff.", heading="4 Care > 4.1 Filter"),
    block("Oil for the gearbox has the viscosity class VG 46.", heading="4 Care > 4.2 Lubricants"),
    block("The press is delivered on a pallet of wood.", heading="5 Delivery"),
    filename="press.pdf",
    title="Press manual",
)


GERMAN_MANUAL = document(
    "presse",
    block("Der höchste Druck der Presse beträgt 250 bar.", heading="3 Daten"),
    block("Der Filter wird alle 500 Stunden von geschultem Personal gewechselt.", heading="4 Wartung"),
    filename="presse.pdf",
    title="Handbuch der Presse",
)


def follow_ups(
    embedder: EmbeddingService, question: str, query_type: str = "CONTENT_SEARCH", manual: str = MANUAL
) -> list[str]:
    answer = answer_from_message(prompt(question, query_type, manual), embedder)
    return [unescape(text) for text in FOLLOW_UP.findall(answer)]


def test_two_questions_name_sections_that_are_not_quoted(embedder: EmbeddingService) -> None:
    question = "What is the maximum pressure of the press?"
    suggested = follow_ups(embedder, question)
    assert suggested == [
        "What does press.pdf say about “Filter”?",
        "What does press.pdf say about “Lubricants”?",
    ]
    assert (
        list(worth_asking(suggested, question, "The maximum pressure of the press is 250 bar.")) == suggested
    )


def test_they_are_in_the_language_of_the_question(embedder: EmbeddingService) -> None:
    question = "Wie hoch ist der Druck der Presse?"
    assert follow_ups(embedder, question, manual=GERMAN_MANUAL) == ["Was steht in presse.pdf zu „Wartung“?"]


def test_each_is_answered_from_the_section_that_it_names(embedder: EmbeddingService) -> None:
    for suggested in follow_ups(embedder, "What is the maximum pressure of the press?"):
        answer = answer_from_message(prompt(suggested, "CONTENT_SEARCH", MANUAL), embedder)
        assert '<cite doc_id="manual"' in answer
        assert ("filter" if "Filter" in suggested else "gearbox") in answer


def test_there_are_none_below_a_gap_or_a_list(embedder: EmbeddingService) -> None:
    assert follow_ups(embedder, "Who is the chief executive of Contoso?") == []
    assert follow_ups(embedder, "List all documents.", "LISTING") == []
