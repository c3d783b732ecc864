"""Counts how often questions were taken for what they are. Pure: outcomes to numbers, shares from 0 to 1."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from evals.routing.asking import Clarified, Routed

Outcome = TypeVar("Outcome", Routed, Clarified)


def routing_measures(outcomes: Sequence[Routed]) -> dict[str, float]:
    """Accuracy of type and intent together, of each, and by label, language, tag and half."""
    measures = {
        "questions": float(len(outcomes)),
        "failed": float(sum(bool(outcome.error) for outcome in outcomes)),
        "routing_accuracy": _share(outcome.is_right for outcome in outcomes),
        "type_accuracy": _share(outcome.query_type == outcome.question.query_type for outcome in outcomes),
        "intent_accuracy": _share(outcome.intent == outcome.question.intent for outcome in outcomes),
    }
    for groups in (
        _grouped(outcomes, lambda outcome: [outcome.question.half]),
        _grouped(outcomes, lambda outcome: [outcome.question.query_type]),
        _grouped(outcomes, lambda outcome: [outcome.question.intent]),
        _grouped(outcomes, lambda outcome: [outcome.question.language, *sorted(outcome.question.tags)]),
    ):
        for name, members in groups.items():
            measures[f"routing_accuracy.{name}"] = _share(outcome.is_right for outcome in members)
    return measures


def clarification_measures(outcomes: Sequence[Clarified]) -> dict[str, float]:
    """Accuracy of asking, precision and recall of being asked, and whether the right files were offered.

    A run that failed is wrong, and counts as one that did not ask.
    """
    asked = [outcome for outcome in outcomes if outcome.asked]
    ambiguous = [outcome for outcome in outcomes if outcome.question.ambiguous]
    measures = {
        "questions": float(len(outcomes)),
        "ambiguous": float(len(ambiguous)),
        "failed": float(sum(bool(outcome.error) for outcome in outcomes)),
        "clarification_accuracy": _share(outcome.is_right for outcome in outcomes),
        "clarification_precision": _share(outcome.question.ambiguous for outcome in asked),
        "clarification_recall": _share(bool(outcome.asked) for outcome in ambiguous),
        "options_accuracy": _share(
            outcome.offers_the_right_ones for outcome in asked if outcome.question.ambiguous
        ),
    }
    for groups in (
        _grouped(outcomes, lambda outcome: [outcome.question.half]),
        _grouped(outcomes, lambda outcome: [outcome.question.kind]),
        _grouped(outcomes, lambda outcome: [outcome.question.language, *sorted(outcome.question.tags)]),
    ):
        for name, members in groups.items():
            measures[f"clarification_accuracy.{name}"] = _share(outcome.is_right for outcome in members)
    return measures


def confusion(pairs: Iterable[tuple[str, str]]) -> dict[str, Counter[str]]:
    """label -> what questions of it were taken for, and how often."""
    table: dict[str, Counter[str]] = {}
    for label, taken_for in pairs:
        table.setdefault(label, Counter())[taken_for or "(nothing)"] += 1
    return table


def _grouped(
    outcomes: Iterable[Outcome], names: Callable[[Outcome], Iterable[str]]
) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        for name in names(outcome):
            groups.setdefault(name, []).append(outcome)
    return dict(sorted(groups.items()))


def _share(hits: Iterable[bool]) -> float:
    """1.0 of nothing: no question was got wrong."""
    counted = list(hits)
    return round(sum(counted) / len(counted), 4) if counted else 1.0
