"""Tests for plans derived from explicit wording: question type, named documents and context."""

import pytest

from local.model_server.embedding.service import EmbeddingService
from local.model_server.plans import plan_question, references_of, rewrite_query, standalone
from shared.answering.plan_reply import PlanReply
from shared.runs.plan import QuestionPlan
from tests.unit.model_server.conftest import request


def plan(embedder: EmbeddingService, question: str) -> QuestionPlan:
    reply = plan_question(request(f"<question>{question}</question>"), embedder)
    return PlanReply.model_validate(reply).to_plan()


@pytest.mark.parametrize(
    ("question", "query_type"),
    [
        ("At which pressure does the valve open?", "CONTENT_SEARCH"),
        ("Compare the price in the annual report 2023 and the annual report 2024.", "COMPARISON"),
        ("Summarise the press manual.", "DOCUMENT_SUMMARY"),
        ("What are the main points of “The cider”?", "DOCUMENT_SUMMARY"),
        ("Which documents were written by Jane Miller?", "METADATA_SEARCH"),
        ("List all documents.", "LISTING"),
        ("Hello!", "CONVERSATION"),
    ],
)
def test_plain_words_tell_the_type(embedder: EmbeddingService, question: str, query_type: str) -> None:
    assert plan(embedder, question).query_type == query_type


def test_a_fact_has_one_search_and_no_list(embedder: EmbeddingService) -> None:
    fact = plan(embedder, "Wie hoch ist der Druck der Presse?")
    assert (fact.language, fact.search_queries, fact.todo) == ("de", ("hoch druck presse",), ())
    assert fact.standalone_question == ""


def test_small_talk_is_answered_and_searched_for_nowhere(embedder: EmbeddingService) -> None:
    talk = plan(embedder, "Guten Tag!")
    assert (talk.language, talk.reply[:5], talk.search_queries) == ("de", "Hallo", ())


def test_a_comparison_has_an_item_for_each_document(embedder: EmbeddingService) -> None:
    todo = plan(embedder, "Compare the annual report 2023 and the annual report 2024.").todo
    assert [item.dependencies for item in todo] == [(), (), (1, 2)]


@pytest.mark.parametrize(
    ("question", "references"),
    [
        ("What was the revenue according to the annual report?", ["annual report"]),
        (
            "Compare the annual report 2023 and the annual report 2024.",
            ["annual report 2023", "annual report 2024"],
        ),
        ("Was steht im Wartungsplan?", ["Wartungsplan"]),
        ('What does notes.md say, and "Moby Dick"?', ["notes.md", "Moby Dick"]),
        ("How thick is the foundation?", []),
    ],
)
def test_documents_are_named_as_the_question_words_them(question: str, references: list[str]) -> None:
    assert references_of(question) == references


@pytest.mark.parametrize(
    ("before", "question", "alone"),
    [
        (
            "What was the revenue in the annual report 2023?",
            "Who wrote it?",
            "Who wrote it (annual report 2023)?",
        ),
        ("What was the revenue in 2023?", "And 2024?", "What was the revenue in 2024?"),
        ("How strong is the Heron 400?", "And what is its weight?", "And what is its weight (Heron 400)?"),
        ("How strong is the Heron 400?", "Who painted the Mona Lisa?", "Who painted the Mona Lisa?"),
    ],
)
def test_a_follow_up_takes_the_names_of_the_question_before(before: str, question: str, alone: str) -> None:
    assert standalone(question, [before]) == alone


def test_a_follow_up_is_searched_for_in_its_own_words_and_bare(embedder: EmbeddingService) -> None:
    turns = '<conversation><turn role="user">What does the X200 weigh?</turn></conversation>'
    query_plan = rewrite_query(request(f"{turns}<question>And what is its speed?</question>"), embedder)
    assert query_plan["search_queries"] == ["And what is its speed (X200)?", "speed x200"]
