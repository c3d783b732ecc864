"""ComparatorReport: what documents have in common, where they differ, where they contradict each other.

Every document that was given has a side in each contrast: with a quotation, or saying that it is silent.
"""

from itertools import combinations, pairwise

from pydantic import JsonValue

from local.model_server.answers.comparison import aspect_of
from local.model_server.answers.disagreement import are_editions, disagrees
from local.model_server.answers.markup import statement
from local.model_server.answers.rows import SAME_PATTERN, Row, compare, likeness, numbers_of
from local.model_server.reports.assignment import Assignment
from local.model_server.reports.doc_reader import claim_of
from local.model_server.reports.gaps import find_gaps
from local.model_server.reports.wording import wording_for
from local.model_server.text.asked import asked_of
from local.model_server.text.passages import Passage


def write_comparison(assignment: Assignment) -> dict[str, JsonValue]:
    """{"similarities", "differences", "conflicts", "open_dimensions"}."""
    similarities: list[JsonValue] = []
    differences: list[JsonValue] = []
    conflicts: list[JsonValue] = []
    documents = assignment.read
    rows = compare(asked_of(assignment.question), documents, assignment.embedder).rows if documents else ()
    for row in rows:
        passages = list(row.cells.values())
        if len(passages) > 1 and _is_agreement(passages):
            similarities.append(claim_of(passages[0], *passages[1:]))
        elif _is_conflict(passages):
            conflicts.append(_contrast(row, assignment))
        else:
            differences.append(_contrast(row, assignment))
    return {
        "similarities": similarities,
        "differences": differences,
        "conflicts": conflicts,
        "open_dimensions": list(find_gaps(assignment).open_aspects),
    }


def _is_agreement(passages: list[Passage]) -> bool:
    """Whether all say the same, with the same numbers."""
    return all(
        likeness(one, other) >= SAME_PATTERN and numbers_of(one) == numbers_of(other)
        for one, other in pairwise(passages)
    )


def _is_conflict(passages: list[Passage]) -> bool:
    return any(
        disagrees(one, other) and not are_editions(one, other) for one, other in combinations(passages, 2)
    )


def _contrast(row: Row, assignment: Assignment) -> JsonValue:
    return {
        "dimension": aspect_of(row),
        "sides": [
            _side(document.doc_id, row.cells.get(document.doc_id), assignment)
            for document in assignment.documents
        ],
    }


def _side(doc_id: str, passage: Passage | None, assignment: Assignment) -> JsonValue:
    if passage is None:
        silent = wording_for(assignment.question).says_nothing
        return {"doc_id": doc_id, "statement": silent, "quote": ""}
    return {"doc_id": doc_id, "statement": statement(passage), "quote": passage.quote}
