"""The agent's loop as a reducer: `next_action(state)` decides, `observe(state, observation)` learns.

Pure, and small enough to be stored: the durable and the inline driver run the same loop, and a stored state
goes on where it stopped. Adding a step: a new Action and Observation; the type checker lists what is missing.
"""

from typing import Literal, assert_never

from shared.models.base import Model
from shared.models.plan import QueryIntent, QueryType, TodoItem, TodoStatus
from shared.models.steps import (
    Action,
    AnswerWritten,
    CommitAnswer,
    EndRun,
    EvidenceFound,
    FindDocuments,
    MakePlan,
    Observation,
    PlanMade,
    ReportFailure,
    RetrieveBlocks,
    RunClosed,
    StepFailed,
    WriteAnswer,
)

MAX_ATTEMPTS = 2  # of one step: a service that failed twice within its own retries will fail again
MAX_CLOSING_ATTEMPTS = (
    8  # of storing the end: an answer is there, a storage that is away for minutes comes back
)
_FIRST_DELAY_S = 2.0
_LONGEST_DELAY_S = 60.0

Phase = Literal["plan", "gather", "write", "commit", "fail", "end"]


class LoopState(Model):
    """Where a run stands.

    Attributes:
        step: the next action's number; counts from 1 and names its place in working memory.
        attempts: tries of the current phase so far.
        delay_s: how long to wait before the next one.
        plan_step, evidence_step, answer_step: which step's result is to be used; 0 = none yet.
    """

    phase: Phase = "plan"
    step: int = 1
    attempts: int = 0
    delay_s: float = 0.0
    query_type: QueryType = "CONTENT_SEARCH"
    intent: QueryIntent = "fact_lookup"
    todo: tuple[TodoItem, ...] = ()
    plan_step: int = 0
    evidence_step: int = 0
    evidence: EvidenceFound | None = None
    widened: bool = False
    answer_step: int = 0
    abstained: bool = False
    failure: StepFailed | None = None


def start() -> LoopState:
    """The state of a run that has done nothing yet."""
    return LoopState()


def next_action(state: LoopState) -> Action:
    """What to do now. Equal states give equal actions."""
    match state.phase:
        case "plan":
            return MakePlan(step=state.step, delay_s=state.delay_s)
        case "gather":
            return _gather(state)
        case "write":
            return WriteAnswer(step=state.step, plan_step=state.plan_step, evidence_step=state.evidence_step)
        case "commit":
            return CommitAnswer(
                step=state.step,
                delay_s=state.delay_s,
                answer_step=state.answer_step,
                todo=_closed(state.todo, state.abstained),
            )
        case "fail":
            return _report(state)
        case "end":
            return EndRun(outcome="failed" if state.failure else "completed")
        case _:
            assert_never(state.phase)


def observe(state: LoopState, observation: Observation) -> LoopState:
    """The state after the last action brought `observation`."""
    match observation:
        case PlanMade():
            return _advance(
                state,
                "gather",
                query_type=observation.query_type,
                intent=observation.intent,
                todo=_started(observation.todo),
                plan_step=state.step,
            )
        case EvidenceFound():
            return _judge_evidence(state, observation)
        case AnswerWritten():
            return _advance(state, "commit", answer_step=state.step, abstained=observation.abstained)
        case RunClosed():
            return _advance(
                state, "end", todo=_closed(state.todo, state.abstained or state.failure is not None)
            )
        case StepFailed():
            return _after_failure(state, observation)
        case _:
            assert_never(observation)


def _gather(state: LoopState) -> Action:
    if state.query_type in ("LISTING", "METADATA_SEARCH"):
        return FindDocuments(step=state.step, delay_s=state.delay_s, plan_step=state.plan_step)
    return RetrieveBlocks(
        step=state.step, delay_s=state.delay_s, plan_step=state.plan_step, widened=state.widened
    )


def _report(state: LoopState) -> ReportFailure:
    failure = state.failure or StepFailed(
        error_type="InternalError", message="The run stopped for no known reason.", retryable=False
    )
    return ReportFailure(
        step=state.step,
        delay_s=state.delay_s,
        error_type=failure.error_type,
        message=failure.message,
        hints=failure.hints,
    )


def _judge_evidence(state: LoopState, found: EvidenceFound) -> LoopState:
    # A search narrowed to the documents that the question seems to name may have named the wrong ones.
    if found.hit_count == 0 and found.narrowed and not state.widened:
        return state.model_copy(
            update={"step": state.step + 1, "widened": True, "attempts": 0, "delay_s": 0.0}
        )
    return _advance(state, "write", evidence=found, evidence_step=state.step)


def _after_failure(state: LoopState, failed: StepFailed) -> LoopState:
    closing = state.phase in ("commit", "fail")
    if failed.retryable and state.attempts + 1 < (MAX_CLOSING_ATTEMPTS if closing else MAX_ATTEMPTS):
        return state.model_copy(
            update={
                "step": state.step + 1,
                "attempts": state.attempts + 1,
                "delay_s": _delay_s(state.attempts, failed),
                "todo": _tried_again(state.todo),
            }
        )
    if state.phase == "fail":
        # Nothing more can be said to anybody; readers are told by whoever finds the run without an end.
        return _advance(state, "end")
    return _advance(state, "fail", failure=failed)


def _delay_s(attempts: int, failed: StepFailed) -> float:
    doubled: float = _FIRST_DELAY_S * 2.0**attempts
    return min(max(doubled, failed.retry_after_s or 0.0), _LONGEST_DELAY_S)


def _advance(state: LoopState, phase: Phase, **changes: object) -> LoopState:
    return state.model_copy(
        update={"phase": phase, "step": state.step + 1, "attempts": 0, "delay_s": 0.0, **changes}
    )


def _started(todo: tuple[TodoItem, ...]) -> tuple[TodoItem, ...]:
    return tuple(
        item.model_copy(update={"status": "in_progress", "attempts": 1}) if not item.dependencies else item
        for item in todo
    )


def _tried_again(todo: tuple[TodoItem, ...]) -> tuple[TodoItem, ...]:
    return tuple(
        item.model_copy(update={"attempts": item.attempts + 1}) if item.status == "in_progress" else item
        for item in todo
    )


def _closed(todo: tuple[TodoItem, ...], abstained: bool) -> tuple[TodoItem, ...]:
    status: TodoStatus = "failed" if abstained else "done"
    return tuple(
        item.model_copy(update={"status": status, "attempts": max(item.attempts, 1)}) for item in todo
    )
