"""What a step's result looks like to the loop, and to readers. Counts and scores, never content."""

from typing import Any

from shared.agents.planning import todo_items
from shared.core.confidence import score_spread, top_score
from shared.core.todo import started
from shared.models.events import EventName
from shared.models.plan import QuestionPlan
from shared.models.runs import RunAnswer
from shared.models.steps import AnswerWritten, EvidenceFound
from shared.models.working import Evidence

Events = list[tuple[EventName, dict[str, Any]]]


def plan_events(kind: str, plan: QuestionPlan) -> Events:
    """The classification, and the todo list with what is begun."""
    todo = [item.model_dump(mode="json") for item in started(todo_items(plan))]
    return [
        ("ACTION", {"kind": kind, "query_type": plan.query_type, "intent": plan.intent}),
        ("STATUS", {"state": "done", "todo": todo}),
    ]


def tool_result(tool: str, found: EvidenceFound) -> Events:
    """How much a tool found."""
    counts = {"result_count": found.hit_count, "top_score": found.top_score}
    return [("TOOL_RESULT", {"tool": tool, "success": True, **counts})]


def evidence_found(evidence: Evidence, seen: Evidence | None = None) -> EvidenceFound:
    """How much there is, how sure it is, and how much of it `seen` did not have."""
    scores = [hit.score for hit in evidence.hits]
    known = {hit.block_id for hit in seen.hits} if seen is not None else set()
    return EvidenceFound(
        hit_count=len(evidence.hits) or len(evidence.records),
        document_count=len({hit.doc_id for hit in evidence.hits}) or len(evidence.records),
        top_score=round(top_score(scores), 4),
        score_spread=round(score_spread(scores), 4),
        narrowed=evidence.narrowed,
        new_count=None if seen is None else len({hit.block_id for hit in evidence.hits} - known),
    )


def answer_written(answer: RunAnswer) -> AnswerWritten:
    """How the answer came out."""
    return AnswerWritten(
        abstained=answer.abstained,
        citation_count=len(answer.citations),
        unsupported_claims=answer.unsupported_claims,
    )


def writing_thought(evidence: Evidence) -> str:
    """What is about to be written from."""
    if evidence.hits:
        documents = len({hit.doc_id for hit in evidence.hits})
        return f"Writing the answer from {len(evidence.hits)} passages of {documents} documents."
    if evidence.records:
        return f"Writing the answer from the descriptions of {len(evidence.records)} documents."
    return "Nothing was found; saying so."
