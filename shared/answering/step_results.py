"""step_results."""

from collections.abc import Iterable

from shared.answering.planning import todo_items
from shared.answering.steps import AnswerWritten, EvidenceFound, StepFailed
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.retrieval.fusion import score_spread, top_score
from shared.runs.events import ActionEvent, RunEvent, TodoListStatus, ToolResultEvent, WarningStatus
from shared.runs.models import RunAnswer
from shared.runs.plan import started
from shared.runs.working_memory import Evidence, StoredPlan


def plan_events(kind: str, stored: StoredPlan) -> list[RunEvent]:
    """The classification, and the todo list with what is begun."""
    plan = stored.plan
    return [
        ActionEvent(kind=kind, query_type=plan.query_type, intent=plan.intent),
        TodoListStatus(state="done", todo=started(todo_items(plan))),
        *warning_events(stored.warnings),
    ]


def warning_events(warnings: Iterable[str]) -> list[WarningStatus]:
    """What did not go as it should, in words."""
    return [WarningStatus(text=warning) for warning in warnings]


def tool_result(tool: str, found: EvidenceFound, *, success: bool = True) -> ToolResultEvent:
    """How much a tool found."""
    return ToolResultEvent(
        tool=tool, success=success, result_count=found.hit_count, top_score=found.top_score
    )


def evidence_found(
    evidence: Evidence, seen: Evidence | None = None, *, hurried: bool = False
) -> EvidenceFound:
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
        hurried=hurried or evidence.unfinished,  # another look would come too late, too
    )


def answer_written(answer: RunAnswer, *, hurried: bool = False) -> AnswerWritten:
    """How the answer came out."""
    return AnswerWritten(
        abstained=answer.abstained,
        citation_count=len(answer.citations),
        unsupported_claims=answer.unsupported_claims,
        hurried=hurried,
    )


def step_failed(failed: GroundworkError, remaining_s: float | None) -> StepFailed:
    """A failure as the loop judges it."""
    return StepFailed(
        error_type=failed.code,
        message=failed.detail,
        hints=failed.hints,
        # What took too long once would take its whole time again.
        retryable=failed.retryable and not isinstance(failed, CallTimeoutError),
        retry_after_s=failed.retry_after_s,
        remaining_s=None if remaining_s is None else round(remaining_s, 1),
    )


def writing_thought(evidence: Evidence) -> str:
    """What is about to be written from."""
    if evidence.hits:
        documents = len({hit.doc_id for hit in evidence.hits})
        return f"Writing the answer from {len(evidence.hits)} passages of {documents} documents."
    if evidence.records:
        return f"Writing the answer from the descriptions of {len(evidence.records)} documents."
    return "Nothing was found; saying so."
