"""The labelled sets of `make eval-routing` are well formed and balanced, and its measures count right."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

import pytest

from evals.evaluation.report import Origin
from evals.routing.asking import Clarified, Routed
from evals.routing.labels import (
    NamingQuestion,
    RoutingQuestion,
    half_of,
    read_documents,
    read_naming,
    read_routing,
)
from evals.routing.measures import clarification_measures, confusion, routing_measures
from evals.routing.report import as_markdown
from shared.runs.plan import QueryIntent, QueryType

ROUTING = read_routing()
NAMING = read_naming()
Questions = Sequence[RoutingQuestion] | Sequence[NamingQuestion]


def test_there_are_enough_questions_of_each_type_and_intent() -> None:
    types = Counter(question.query_type for question in ROUTING)
    intents = Counter(question.intent for question in ROUTING)
    assert len(ROUTING) >= 270
    assert set(types) == set(get_args(QueryType))
    assert min(types.values()) >= 45
    assert set(intents) == set(get_args(QueryIntent))
    assert min(intents.values()) >= 20


@pytest.mark.parametrize("questions", [ROUTING, NAMING])
def test_two_languages_and_misspelt_questions_have_their_share(questions: Questions) -> None:
    languages = Counter(question.language for question in questions)
    assert set(languages) == {"en", "de"}
    assert languages["de"] / len(questions) >= 0.35
    assert sum("typo" in question.tags for question in questions) / len(questions) >= 0.13


@pytest.mark.parametrize("questions", [ROUTING, NAMING])
def test_no_question_and_no_id_is_there_twice(questions: Questions) -> None:
    assert len({question.query_id for question in questions}) == len(questions)
    asked = {(question.text.casefold(), getattr(question, "after", None)) for question in questions}
    assert len(asked) == len(questions)


def test_types_and_intents_fit_each_other() -> None:
    decided = {"DOCUMENT_SUMMARY": "doc_summary", "COMPARISON": "compare_docs"}
    for question in ROUTING:
        if question.query_type != "CONTENT_SEARCH":
            assert question.intent == decided.get(question.query_type, "fact_lookup"), question


def test_ambiguous_questions_name_their_options_and_no_other_does() -> None:
    documents = {document.filename for document in read_documents()}
    assert len(documents) >= 14
    assert len(NAMING) >= 80
    for question in NAMING:
        assert bool(question.options) == question.ambiguous
        assert len(question.options) != 1
        assert question.options <= documents
    assert 0.3 <= sum(question.ambiguous for question in NAMING) / len(NAMING) <= 0.5


def test_the_halves_are_about_equal_and_never_change() -> None:
    halves = Counter(question.half for question in ROUTING)
    assert min(halves.values()) / len(ROUTING) > 0.4
    assert (half_of("listing-001"), half_of("listing-002")) == ("dev", "held_out")


def test_a_question_counts_when_type_and_intent_are_right() -> None:
    first = ROUTING[0]
    outcomes = [
        Routed(first, first.query_type, first.intent),
        Routed(first, first.query_type, "exploratory"),
        Routed(first, error="503"),
    ]
    measures = routing_measures(outcomes)
    assert measures["routing_accuracy"] == pytest.approx(0.3333)
    assert measures["type_accuracy"] == pytest.approx(0.6667)
    assert measures["failed"] == 1


def test_asking_needlessly_costs_precision_and_not_asking_costs_recall() -> None:
    ambiguous = next(question for question in NAMING if question.ambiguous)
    clear = next(question for question in NAMING if not question.ambiguous)
    outcomes = [
        Clarified(ambiguous, asked=True, options=ambiguous.options),
        Clarified(ambiguous, asked=False),
        Clarified(clear, asked=True, options=frozenset({"a.md", "b.md"})),
        Clarified(clear, asked=False),
        Clarified(clear, error="503"),
    ]
    measures = clarification_measures(outcomes)
    assert measures["clarification_accuracy"] == pytest.approx(0.4)
    assert measures["clarification_precision"] == pytest.approx(0.5)
    assert measures["clarification_recall"] == pytest.approx(0.5)
    assert measures["options_accuracy"] == 1


def test_the_report_shows_what_went_wrong_in_the_dev_half_only() -> None:
    dev = next(question for question in ROUTING if question.half == "dev")
    held_out = next(question for question in ROUTING if question.half == "held_out")
    shown = as_markdown([Routed(dev, "X", "y"), Routed(held_out, "X", "y")], [], Origin("m", "c"))
    assert dev.text in shown
    assert held_out.text not in shown
    assert confusion([("A", "B"), ("A", "")]) == {"A": Counter({"B": 1, "(nothing)": 1})}
