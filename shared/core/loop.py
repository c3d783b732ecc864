"""The agent's loop as a reducer: `next_action(state)` decides, `observe(state, observation)` learns.

Pure, and small enough to be stored: the durable and the inline driver run the same loop, and a stored state
goes on where it stopped. Adding a step: a new Action and Observation; the type checker lists what is missing.
"""

from collections.abc import Sequence
from typing import assert_never

from shared.core.judging import after_failure, judge_answer, judge_evidence
from shared.core.loop_state import LoopState, advance
from shared.core.todo import closed, started
from shared.models.delegation_steps import DelegationDeferred, RunSubagents, SubagentsChosen, SubagentsEnded
from shared.models.plan import TodoItem
from shared.models.steps import (
    Action,
    AnswerArrived,
    AnswerTaken,
    AnswerTimedOut,
    AnswerWritten,
    AskUser,
    AwaitAnswer,
    CommitAnswer,
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
    StepFailed,
    TakeAnswer,
    UserAsked,
    WriteAnswer,
)
from shared.models.subagents import SubagentEnd, SubagentStart


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
