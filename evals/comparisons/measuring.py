"""What an answer over several documents says of them. Pure: outcomes in, numbers out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.evaluation.answer_measures import percentile
from evals.evaluation.question_set import Question, QuestionSet, name_key

SEVERAL = 2


@dataclass(frozen=True)
class Asked:
    """One question as it was answered; `run` is the run as its owner reads it, None when the call failed."""

    question: Question
    run: Mapping[str, Any] | None
    seconds: float
    error: str = ""

    @property
    def answer(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = (self.run or {}).get("answer") or {}
        return found

    @property
    def is_answered(self) -> bool:
        return bool(self.answer) and not self.answer.get("abstained")

    @property
    def cited(self) -> frozenset[str]:
        return frozenset(name_key(str(one["filename"])) for one in self.answer.get("citations", ()))

    @property
    def named(self) -> frozenset[str]:
        return documents_of(self.question)

    @property
    def share(self) -> float:
        """How many of the documents that the labels name are cited."""
        return len(self.named & self.cited) / len(self.named) if self.is_answered else 0.0

    @property
    def sub_agents(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.answer.get("sub_agents") or ()
        return found


@dataclass(frozen=True)
class Arm:
    """The same questions, asked of one configuration of the app."""

    name: str
    asked: tuple[Asked, ...]
    numbers: Mapping[str, float] = field(default_factory=dict)


def documents_of(question: Question) -> frozenset[str]:
    """The documents that hold the answer, by the labels."""
    return frozenset(filename for filename, _ in question.grades)


def over_several(questions: QuestionSet) -> list[Question]:
    """Those of a set whose labels name SEVERAL documents or more."""
    return [question for question in questions.questions if len(documents_of(question)) >= SEVERAL]


def conclude(name: str, asked: Sequence[Asked]) -> Arm:
    """An arm with its numbers.

    `all_cited` is of the answers; `all_cited_of_questions` counts an abstention as a miss.
    """
    answered = [one for one in asked if one.is_answered]
    whole = [one for one in answered if one.named <= one.cited]
    seconds = [one.seconds for one in asked if one.run is not None]
    numbers = {
        "questions": len(asked),
        "answered": len(answered),
        "abstained": sum(bool(one.answer.get("abstained")) for one in asked),
        "failed": sum(not one.answer for one in asked),
        "all_cited": _share(len(whole), len(answered)),
        "all_cited_of_questions": _share(len(whole), len(asked)),
        "cited_of_named": _share(sum(one.share for one in answered), len(answered)),
        "with_sub_agents": sum(bool(one.sub_agents) for one in asked),
        "sub_agents": sum(len(one.sub_agents) for one in asked),
        "with_warnings": sum(bool(one.answer.get("warnings")) for one in asked),
        "citations": sum(len(one.answer.get("citations", ())) for one in answered),
        "latency_p50_s": round(percentile(seconds, 0.5) or 0.0, 2),
        "latency_p95_s": round(percentile(seconds, 0.95) or 0.0, 2),
    }
    return Arm(name, tuple(asked), numbers)


def as_row(one: Asked) -> dict[str, Any]:
    """Of one question what can be looked into; no text of documents."""
    profiles = Counter(f"{view['profile']} {view['status']}" for view in one.sub_agents)
    return {
        "query_id": one.question.query_id,
        "query": one.question.text,
        "answered": one.is_answered,
        "named": sorted(one.named),
        "missing": sorted(one.named - one.cited),
        "sub_agents": dict(profiles),
        "warnings": list(one.answer.get("warnings") or ()),
        "seconds": round(one.seconds, 2),
        "error": one.error,
    }


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
