"""The agent's loop as a reducer: `next_action(state)` decides, `observe(state, observation)` learns.

Pure, and small enough to be stored: the durable and the inline driver run the same loop, and a stored state
goes on where it stopped. Adding a step: a new Action and Observation; the type checker lists what is missing.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, assert_never

from shared.answering.steps import (
    Action,
    AnswerArrived,
    AnswerTaken,
    AnswerTimedOut,
    AnswerWritten,
    AskUser,
    AwaitAnswer,
    CommitAnswer,
    DelegationDeferred,
    DocumentsResolved,
    EndRun,
    EvidenceFound,
    FindDocuments,
    MakePlan,
    Observation,
    PlanMade,
    RefineEvidence,
    ReportFailure,
    ResolveDocuments,
    RetrieveBlocks,
    RunClosed,
    RunSubagents,
    StepFailed,
    SubagentsChosen,
    SubagentsEnded,
    TakeAnswer,
    UserAsked,
    WriteAnswer,
)
from shared.platform.models import Model
from shared.runs.deadline import has_time_for_retry
from shared.runs.plan import QueryIntent, QueryType, TodoItem, closed, evidence_found, started, tried_again
from shared.subagents.models import SubagentEnd, SubagentStart

Phase = Literal[
    "plan",
    "resolve",
    "ask",
    "await",
    "take",
    "gather",
    "refine",
    "write",
    "delegate",
    "commit",
    "fail",
    "end",
]


class LoopState(Model):
    """Where a run stands.

    Attributes:
        step: the next action's number; counts from 1 and names its place in working memory.
        tries: tries of the current step so far.
        delay_s: how long to wait before the next one.
        attempt, max_attempts: at finding evidence; from the second on wherever there may be some.
        plan_step, evidence_step, answer_step: which step's result is to be used; 0 = none yet.
        refines: whether evidence that is not sure is put in order by a model.
        gathered_step: the evidence as it was found, before that.
        todo_changed: the todo list is not as it was shown last.
        is_choice: a person chose the documents.
        delegation_step: the step that chose sub-agents for the attempt's answer; 0 = none did.
        children, children_until: these, while they are at work.
        tokens: that all models have read and written for the run so far, its sub-agents included.
    """

    phase: Phase = "plan"
    step: int = 1
    tries: int = 0
    delay_s: float = 0.0
    query_type: QueryType = "CONTENT_SEARCH"
    intent: QueryIntent = "fact_lookup"
    todo: tuple[TodoItem, ...] = ()
    todo_changed: bool = False
    plan_step: int = 0
    ask_step: int = 0
    ask_timeout_s: float = 0.0
    timed_out: bool = False
    is_choice: bool = False
    attempt: int = 1
    max_attempts: int = 1
    refines: bool = False
    gathered_step: int = 0
    evidence_step: int = 0
    evidence: EvidenceFound | None = None
    widened: bool = False
    delegation_step: int = 0
    children: tuple[SubagentStart, ...] = ()
    children_until: datetime | None = None
    answer_step: int = 0
    abstained: bool = False
    failure: StepFailed | None = None
    tokens: int = 0


def advance(state: LoopState, phase: Phase, **changes: object) -> LoopState:
    """The next step, in `phase`, tried for the first time."""
    return state.model_copy(
        update={"phase": phase, "step": state.step + 1, "tries": 0, "delay_s": 0.0, **changes}
    )


MAX_TRIES = 2  # of one step: a service that failed twice within its own retries will fail again

# Of storing the end, or a person's choice: the work is done, a storage that is away for minutes comes back.
MAX_PATIENT_TRIES = 8
WEAK_SCORE = 0.5  # below it a search within the documents named found nothing to the point; unmeasured

# contracts.md, section 4: low_retrieval_confidence_top_score, low_score_spread_ambiguity, candidate_count.
LOW_SCORE, LOW_SPREAD, MANY_HITS = 0.62, 0.08, 6
CLEARLY_BETTER = 0.15  # high_score_spread_clarity of contracts.md, section 4
_PATIENT: frozenset[Phase] = frozenset({"take", "commit", "fail"})
_FIRST_DELAY_S = 2.0
_LONGEST_DELAY_S = 60.0


def judge_evidence(state: LoopState, found: EvidenceFound) -> LoopState:
    """Write from it, put it in order first, or look elsewhere."""
    if state.phase == "refine":
        return advance(state, "write", evidence=found, evidence_step=state.step)
    if state.attempt > 1:
        return _judge_second_evidence(state, found)
    best = {"evidence": found, "evidence_step": state.step, "gathered_step": state.step}
    if found.narrowed and not state.widened and not state.is_choice and _is_weak(state, found):
        # A search narrowed to the documents that the question seems to name may have named the wrong ones.
        kept = best if found.hit_count else {}
        return advance(state, "gather", widened=True, **kept)
    named = state.evidence
    if named is not None and found.top_score < named.top_score + CLEARLY_BETTER:
        # Elsewhere nothing is clearly better: what was named is what was meant.
        return _enough(state)
    if found.hit_count == 0 and _may_try_again(state) and not found.hurried:
        return _try_again(state)
    return _enough(state.model_copy(update=best))


def _judge_second_evidence(state: LoopState, found: EvidenceFound) -> LoopState:
    if state.answer_step and not found.new_count:
        return advance(state, "commit")  # the same passages would give the same answer
    latest = {"evidence": found, "evidence_step": state.step, "gathered_step": state.step}
    return _enough(state.model_copy(update=latest))


def _enough(state: LoopState) -> LoopState:
    """Evidence is gathered: it is written from, after a model has put it in order if it is not sure."""
    if state.evidence is None or state.evidence.hit_count == 0:
        return advance(state, "write")
    # A summary or a comparison needs its passages whole: nothing is sorted out there.
    may_refine = state.refines and state.query_type == "CONTENT_SEARCH" and not state.evidence.hurried
    is_refined = may_refine and _is_unsure(state.evidence)
    return advance(state, "refine" if is_refined else "write", todo=evidence_found(state.todo))


def _is_unsure(found: EvidenceFound) -> bool:
    """The positive triggers of contracts.md, section 4, that speak of retrieval."""
    is_close = found.score_spread < LOW_SPREAD and found.hit_count >= MANY_HITS
    return found.top_score < LOW_SCORE or is_close


def _is_weak(state: LoopState, found: EvidenceFound) -> bool:
    if found.hit_count == 0:
        return True
    # A summary or a comparison is of the documents named, however little they resemble the question's words.
    may_lie_elsewhere = state.query_type == "CONTENT_SEARCH" and state.max_attempts > 1
    return may_lie_elsewhere and found.top_score < WEAK_SCORE


def judge_answer(state: LoopState, written: AnswerWritten) -> LoopState:
    """Commit it, or look further when it says that there is nothing."""
    answered = state.model_copy(update={"answer_step": state.step, "abstained": written.abstained})
    if written.abstained and _may_try_again(state) and not written.hurried:
        return _try_again(answered)
    return advance(answered, "commit")


def _may_try_again(state: LoopState) -> bool:
    return state.attempt < state.max_attempts


def _try_again(state: LoopState) -> LoopState:
    return advance(
        state,
        "gather",
        attempt=state.attempt + 1,
        widened=not state.is_choice,
        delegation_step=0,  # the next answer may be delegated, too: of what was spent the policy knows
        todo=tried_again(state.todo),
    )


def after_failure(state: LoopState, failed: StepFailed) -> LoopState:
    """Try the step again, go on with what there is, or report."""
    delay_s = retry_delay_s(state.phase, state.tries, failed)
    if delay_s is not None:
        return state.model_copy(
            update={
                "step": state.step + 1,
                "tries": state.tries + 1,
                "delay_s": delay_s,
                "todo": tried_again(state.todo),
            }
        )
    if state.phase == "fail":
        # Nothing more can be said to anybody; readers are told by whoever finds the run without an end.
        return advance(state, "end")
    if state.phase in ("gather", "write") and state.answer_step:
        return advance(state, "commit")  # the first attempt's answer, that there is none, still holds
    if state.phase == "gather" and state.evidence is not None:
        return advance(state, "write", todo=evidence_found(state.todo))
    if state.phase == "refine":
        return advance(state, "write")
    return advance(state, "fail", failure=failed)


def retry_delay_s(phase: Phase, tries: int, failed: StepFailed) -> float | None:
    """Seconds after which a step that failed is tried again; None = it is not.

    Args:
        tries: that failed before this one.
    """
    if not failed.retryable:
        return None
    delay_s = _delay_s(phase, tries, failed)
    if phase in _PATIENT:
        return delay_s if tries + 1 < MAX_PATIENT_TRIES else None
    has_time = has_time_for_retry(phase, delay_s, failed.remaining_s)
    return delay_s if tries + 1 < MAX_TRIES and has_time else None


def _delay_s(phase: Phase, tries: int, failed: StepFailed) -> float:
    doubled: float = _FIRST_DELAY_S * 2.0**tries
    return min(max(doubled, failed.retry_after_s or 0.0), _LONGEST_DELAY_S)


def start() -> LoopState:
    """The state of a run that has done nothing yet."""
    return LoopState()


def next_action(state: LoopState) -> Action:
    """What to do now. Equal states give equal actions."""
    match state.phase:
        case "plan" | "resolve":
            return _prepare(state)
        case "ask" | "await" | "take":
            return _clarify(state)
        case "gather" | "refine":
            return _gather(state)
        case "write" | "delegate":
            return _write(state)
        case "commit" | "fail":
            return _close(state)
        case "end":
            return EndRun(outcome="failed" if state.failure else "completed")
        case _:
            assert_never(state.phase)


def observe(state: LoopState, observation: Observation, tokens: int = 0) -> LoopState:
    """The state after the last action brought `observation`, for so many tokens."""
    after = _learn(state, observation)
    is_shown = isinstance(observation, PlanMade) or after.todo == state.todo
    return after.model_copy(update={"todo_changed": not is_shown, "tokens": after.tokens + tokens})


def _learn(state: LoopState, observation: Observation) -> LoopState:
    match observation:
        case PlanMade():
            return _planned(state, observation)
        case DocumentsResolved() | UserAsked() | AnswerArrived() | AnswerTimedOut() | AnswerTaken():
            return _clarified(state, observation)
        case EvidenceFound():
            return judge_evidence(state, observation)
        case SubagentsChosen() | DelegationDeferred() | SubagentsEnded():
            return _delegated(state, observation)
        case AnswerWritten():
            return judge_answer(state, observation)
        case RunClosed() | StepFailed():
            return _ended(state, observation)
        case _:
            assert_never(observation)


def _ended(state: LoopState, observation: RunClosed | StepFailed) -> LoopState:
    if isinstance(observation, StepFailed):
        return after_failure(state, observation)
    succeeded = not state.abstained and state.failure is None
    return advance(state, "end", todo=closed(state.todo, succeeded=succeeded))


def _clarified(
    state: LoopState,
    observation: DocumentsResolved | UserAsked | AnswerArrived | AnswerTimedOut | AnswerTaken,
) -> LoopState:
    match observation:
        case DocumentsResolved():
            return advance(state, "ask" if observation.is_ambiguous else "gather", plan_step=state.step)
        case UserAsked():
            return advance(state, "await", ask_step=state.step, ask_timeout_s=observation.timeout_s)
        case AnswerArrived() | AnswerTimedOut():
            return advance(state, "take", timed_out=isinstance(observation, AnswerTimedOut))
        case AnswerTaken():
            return advance(state, "gather", plan_step=state.step, is_choice=observation.is_choice)
        case _:
            assert_never(observation)


def _prepare(state: LoopState) -> Action:
    if state.phase == "plan":
        return MakePlan(step=state.step, delay_s=state.delay_s, tries=state.tries)
    return ResolveDocuments(step=state.step, delay_s=state.delay_s, plan_step=state.plan_step)


def _clarify(state: LoopState) -> Action:
    if state.phase == "ask":
        return AskUser(step=state.step, delay_s=state.delay_s, plan_step=state.plan_step)
    if state.phase == "await":
        return AwaitAnswer(ask_step=state.ask_step, timeout_s=state.ask_timeout_s)
    return TakeAnswer(
        step=state.step,
        delay_s=state.delay_s,
        plan_step=state.plan_step,
        ask_step=state.ask_step,
        timed_out=state.timed_out,
    )


def _gather(state: LoopState) -> Action:
    if state.phase == "refine":
        return RefineEvidence(
            step=state.step,
            delay_s=state.delay_s,
            todo=_shown(state),
            plan_step=state.plan_step,
            evidence_step=state.evidence_step,
        )
    # What the descriptions of documents do not tell, their content may: only a first attempt lists them.
    if state.query_type in ("LISTING", "METADATA_SEARCH") and state.attempt == 1:
        return FindDocuments(
            step=state.step, delay_s=state.delay_s, todo=_shown(state), plan_step=state.plan_step
        )
    return RetrieveBlocks(
        step=state.step,
        delay_s=state.delay_s,
        todo=_shown(state),
        plan_step=state.plan_step,
        widened=state.widened,
        attempt=state.attempt,
        seen_step=state.gathered_step if state.attempt > 1 else 0,
    )


def _write(state: LoopState) -> Action:
    if state.phase == "delegate" and state.children_until is not None:
        return RunSubagents(children=state.children, until=state.children_until)
    return WriteAnswer(
        step=state.step,
        delay_s=state.delay_s,
        todo=_shown(state),
        plan_step=state.plan_step,
        evidence_step=state.evidence_step,
        replaces=state.answer_step,
        delegation_step=state.delegation_step,
        tries=state.tries,
    )


def _close(state: LoopState) -> Action:
    if state.phase == "commit":
        return CommitAnswer(
            step=state.step,
            delay_s=state.delay_s,
            answer_step=state.answer_step,
            todo=closed(state.todo, succeeded=not state.abstained),
        )
    failure = state.failure or StepFailed(
        error_type="InternalError", message="The run stopped for no known reason.", retryable=False
    )
    return ReportFailure(
        step=state.step,
        delay_s=state.delay_s,
        todo=closed(state.todo, succeeded=False),
        error_type=failure.error_type,
        message=failure.message,
        hints=failure.hints,
    )


def _delegated(
    state: LoopState, observation: SubagentsChosen | DelegationDeferred | SubagentsEnded
) -> LoopState:
    match observation:
        case SubagentsChosen():
            return advance(
                state,
                "delegate",
                delegation_step=state.step,
                children=observation.children,
                children_until=observation.until,
            )
        case DelegationDeferred():
            # Not a failure: tries are counted on, and the policy ends it as time runs out.
            return state.model_copy(update={"step": state.step + 1, "delay_s": observation.delay_s})
        case SubagentsEnded():
            tokens = state.tokens + _used(state.children, observation.ends)
            return advance(state, "write", children=(), children_until=None, tokens=tokens)
        case _:
            assert_never(observation)


def _used(children: Sequence[SubagentStart], ends: Sequence[SubagentEnd]) -> int:
    """Tokens of sub-agents; one of which nothing is known may have used all that it was allowed."""
    told = {end.child_id: end.tokens for end in ends}
    return sum(told.get(child.child_id) or child.max_tokens for child in children)


def _planned(state: LoopState, plan: PlanMade) -> LoopState:
    return advance(
        state,
        "resolve" if plan.names_documents else "gather",
        query_type=plan.query_type,
        intent=plan.intent,
        todo=started(plan.todo),
        max_attempts=plan.max_attempts,
        refines=plan.refines,
        plan_step=state.step,
    )


def _shown(state: LoopState) -> tuple[TodoItem, ...]:
    return state.todo if state.todo_changed else ()
