"""The labelled sets of `make eval-routing` are well formed, and its measures count right."""

from collections import Counter
from collections.abc import Sequence

import pytest

from evals.evaluation.report import Origin
from evals.routing.asking import Clarified, Routed
from evals.routing.labels import (
    NamingQuestion,
    RoutingQuestion,
    read_documents,
    read_naming,
    read_routing,
)
from evals.routing.measures import clarification_measures, confusion, routing_measures
from evals.routing.report import as_markdown

ROUTING = read_routing()
NAMING = read_naming()
Questions = Sequence[RoutingQuestion] | Sequence[NamingQuestion]


@pytest.mark.parametrize("questions", [ROUTING, NAMING])
def test_no_question_and_no_id_is_there_twice(questions: Questions) -> None:
    assert len({question.query_id for question in questions}) == len(questions)
    asked = {(question.text.casefold(), getattr(question, "after", None)) for question in questions}
    assert len(asked) == len(questions)


def test_ambiguous_questions_name_their_options_and_no_other_does() -> None:
    documents = {document.filename for document in read_documents()}
    for question in NAMING:
        assert bool(question.options) == question.ambiguous
        assert len(question.options) != 1
        assert question.options <= documents


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
