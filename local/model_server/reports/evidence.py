"""EvidenceReport: the statements that the task wants proof of, each with its proofs or marked unsupported."""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from local.model_server.answers.markup import statement
from local.model_server.answers.rows import SAME_PATTERN, likeness, names_of_documents, numbers_of
from local.model_server.answers.support import judge_support
from local.model_server.reports.assignment import Assignment
from local.model_server.reports.doc_reader import proof_of, says_the_same
from local.model_server.text.aspects import aspects_of
from local.model_server.text.held import is_held
from local.model_server.text.passages import Passage
from local.model_server.text.ranking import Ranked, rank_passages
from local.model_server.text.words import topic_words

MAX_CLAIMS_OF_ASPECT = 3
MAX_PROOFS = 4
CLOSE_TO_BEST = 0.85  # share of the best score that a further claim needs; unmeasured
FEWEST_WORDS_TO_JUDGE = 3
_THAT = re.compile(r"\b(?:that|dass)\s+(.{3,})", re.IGNORECASE | re.DOTALL)
UNSUPPORTED = 0.1  # most confidence in a statement without proof


def write_evidence(assignment: Assignment) -> dict[str, JsonValue]:
    """{"claims": [{"text", "confidence", "proofs"}]}; a statement of two documents has a proof from each."""
    aspects = aspects_of(assignment.question, names_of_documents(assignment.documents))
    claims: list[JsonValue] = []
    told: list[Passage] = []
    for aspect in aspects or [assignment.question]:
        ranked = rank_passages(aspect, assignment.passages, assignment.embedder)
        support = judge_support(aspect, ranked, assignment.passages, assignment.embedder)
        if not support.is_enough and not (len(aspects) > 1 and _is_short_and_held(aspect, assignment)):
            confidence = min(UNSUPPORTED, round(support.score, 2))
            claims.append({"text": _claimed(aspect), "confidence": confidence, "proofs": []})
            continue
        for item in _claims(ranked, told):
            told.append(item.passage)
            claims.append(_backed(item, ranked[0], support.score, assignment.passages))
    return {"claims": claims}


def _is_short_and_held(aspect: str, assignment: Assignment) -> bool:
    """One of several things asked about, too short for the judgement of whole questions."""
    names = names_of_documents(assignment.documents)
    is_short = len(topic_words(aspect)) < FEWEST_WORDS_TO_JUDGE
    return is_short and is_held(aspect, assignment.passages, names, assignment.embedder)


def _claimed(aspect: str) -> str:
    """The statement inside "where does it say that …"; else what was asked."""
    found = _THAT.search(aspect)
    claimed = (found[1] if found else aspect).strip(" ?.")
    return claimed[:1].upper() + claimed[1:]


def _claims(ranked: Sequence[Ranked], told: Sequence[Passage]) -> list[Ranked]:
    chosen: list[Ranked] = []
    for item in ranked:
        if item.score < CLOSE_TO_BEST * ranked[0].score or len(chosen) == MAX_CLAIMS_OF_ASPECT:
            break
        if not any(says_the_same(item.passage, other) for other in [*told, *(one.passage for one in chosen)]):
            chosen.append(item)
    return chosen


def _backed(item: Ranked, best: Ranked, support: float, passages: Sequence[Passage]) -> JsonValue:
    """Confidence falls with the distance from the best passage, and rises with each document that agrees."""
    agreeing = _agreeing(item.passage, passages)
    confidence = support * item.score / max(best.score, 1e-9)
    confidence = 1 - (1 - confidence) / (1 + len(agreeing))
    return {
        "text": statement(item.passage),
        "confidence": round(min(max(confidence, 0.0), 1.0), 2),
        "proofs": [proof_of(one) for one in (item.passage, *agreeing)],
    }


def _agreeing(passage: Passage, passages: Sequence[Passage]) -> list[Passage]:
    """What other documents say in the same words and numbers, one passage of each."""
    found: dict[str, Passage] = {}
    for other in passages:
        is_other = other.document.doc_id != passage.document.doc_id
        if is_other and numbers_of(other) == numbers_of(passage) and likeness(passage, other) >= SAME_PATTERN:
            found.setdefault(other.document.doc_id, other)
    return list(found.values())[: MAX_PROOFS - 1]
