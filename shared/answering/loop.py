"""The agent's loop as a reducer: `next_action(state)` decides, `observe(state, observation)` learns.

The steps of a question: prepare (plan and search) -> turn -> turn ... -> commit. Between them a person may
be asked what they mean, and sub-agents may work. In a turn the model answers, or calls tools and names gaps
for the next turn.

Pure, and small enough to be stored: the durable and the inline driver run the same loop, and a stored state
resumes where it stopped. To add a step, add an Action and an Observation; mypy lists what is missing.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, assert_never

from shared.answering.steps import (
    Action,
    AnswerArrived,
    AnswerTimedOut,
    AnswerWritten,
    AwaitAnswer,
    CommitAnswer,
    DelegationDeferred,
    EndRun,
    LooksFurther,
    Observation,
    Prepare,
    Prepared,
    ReportFailure,
    RunClosed,
    RunSubagents,
    StepFailed,
    SubagentsChosen,
    SubagentsEnded,
    TakeAnswer,
    TakeTurn,
    UserAsked,
)
from shared.platform.models import Model
from shared.runs.plan import QueryIntent, QueryType, TodoItem, closed, evidence_found, started, tried_again
from shared.subagents.models import SubagentEnd, SubagentStart

Phase = Literal["prepare", "await", "take", "turn", "delegate", "commit", "fail", "end"]

MAX_TRIES = 2  # of one step: a service that failed twice within its own retries will fail again

# Of storing the end, or a person's choice: the work is done, a storage that is away for minutes comes back.
MAX_PATIENT_TRIES = 8
_PATIENT: frozenset[Phase] = frozenset({"take", "commit", "fail"})
_FIRST_DELAY_S = 2.0
_LONGEST_DELAY_S = 60.0

# Seconds that a further try of a step must have, with all that follows it; else the run continues without.
_NEEDED_S: dict[str, float] = {"prepare": 8.0, "turn": 3.0}
_NEEDED_OTHERWISE_S = 2.0


class LoopState(Model):
    """Where a run stands.

    Attributes:
        step: the next action's number; counts from 1 and names its place in working memory.
        tries: tries of the current step so far.
        delay_s: how long to wait before the next one.
        todo_changed: the todo list is not as it was shown last.
        prepared_step, answer_step: which step's result is to be used; 0 = none yet.
        turns: steps of the model's turns so far that looked further.
        looks: searches so far, the first included; gaps are searched for while there are fewer than
            `max_looks`.
        delegation_step: the step that chose sub-agents before the first turn; 0 = none did.
        children, children_until: these, while they are running.
        tokens: that all models have read and written for the run so far, its sub-agents included.
    """

    phase: Phase = "prepare"
    step: int = 1
    tries: int = 0
    delay_s: float = 0.0
    query_type: QueryType = "CONTENT_SEARCH"
    intent: QueryIntent = "fact_lookup"
    todo: tuple[TodoItem, ...] = ()
    todo_changed: bool = False
    ask_step: int = 0
    ask_timeout_s: float = 0.0
    timed_out: bool = False
    prepared_step: int = 0
    turns: tuple[int, ...] = ()
    max_turns: int = 1
    looks: int = 1
    max_looks: int = 1
    delegation_step: int = 0
    children: tuple[SubagentStart, ...] = ()
    children_until: datetime | None = None
    answer_step: int = 0
    abstained: bool = False
    failure: StepFailed | None = None
    tokens: int = 0


def start() -> LoopState:
    """The state of a run that has done nothing yet."""
    return LoopState()


def next_action(state: LoopState) -> Action:
    """What to do now. Equal states give equal actions."""
    todo = state.todo if state.todo_changed else ()
    match state.phase:
        case "prepare":
            return Prepare(step=state.step, delay_s=state.delay_s, tries=state.tries)
        case "await" | "take":
            return _clarify(state)
        case "turn":
            return TakeTurn(
                step=state.step,
                delay_s=state.delay_s,
                tries=state.tries,
                todo=todo,
                prepared_step=state.prepared_step,
                earlier=state.turns,
                delegation_step=state.delegation_step,
                may_call=len(state.turns) + 1 < state.max_turns,
                may_look=len(state.turns) + 1 < state.max_turns and state.looks < state.max_looks,
            )
        case "delegate":
            assert state.children_until is not None  # noqa: S101  # set with the phase
            return RunSubagents(children=state.children, until=state.children_until)
        case "commit" | "fail":
            return _close(state)
        case "end":
            return EndRun(outcome="failed" if state.failure else "completed")
        case _:
            assert_never(state.phase)


def _clarify(state: LoopState) -> Action:
    if state.phase == "await":
        return AwaitAnswer(ask_step=state.ask_step, timeout_s=state.ask_timeout_s)
    return TakeAnswer(
        step=state.step,
        delay_s=state.delay_s,
        tries=state.tries,
        ask_step=state.ask_step,
        timed_out=state.timed_out,
    )


def observe(state: LoopState, observation: Observation, tokens: int = 0) -> LoopState:
    """The state after the last action brought `observation`, for so many tokens."""
    after = _learn(state, observation)
    is_shown = isinstance(observation, Prepared | UserAsked) or after.todo == state.todo
    return after.model_copy(update={"todo_changed": not is_shown, "tokens": after.tokens + tokens})


def retry_delay_s(phase: Phase, tries: int, failed: StepFailed) -> float | None:
    """Seconds after which a step that failed is tried again; None = it is not.

    Args:
        tries: that failed before this one.
    """
    if not failed.retryable:
        return None
    doubled: float = _FIRST_DELAY_S * 2.0**tries
    delay_s = min(max(doubled, failed.retry_after_s or 0.0), _LONGEST_DELAY_S)
    if phase in _PATIENT:
        return delay_s if tries + 1 < MAX_PATIENT_TRIES else None
    left_s = failed.remaining_s
    has_time = left_s is None or left_s - delay_s >= _NEEDED_S.get(phase, _NEEDED_OTHERWISE_S)
    return delay_s if tries + 1 < MAX_TRIES and has_time else None


def _learn(state: LoopState, observation: Observation) -> LoopState:
    match observation:
        case Prepared():
            return _prepared(state, observation)
        case UserAsked() | AnswerArrived() | AnswerTimedOut():
            return _asked(state, observation)
        case LooksFurther():
            return _looks_further(state, observation)
        case SubagentsChosen() | DelegationDeferred() | SubagentsEnded():
            return _delegated(state, observation)
        case AnswerWritten():
            return _advance(state, "commit", answer_step=state.step, abstained=observation.abstained)
        case RunClosed() | StepFailed():
            return _ended(state, observation)
        case _:
            assert_never(observation)


def _ended(state: LoopState, observation: RunClosed | StepFailed) -> LoopState:
    if isinstance(observation, StepFailed):
        return _after_failure(state, observation)
    succeeded = not state.abstained and state.failure is None
    return _advance(state, "end", todo=closed(state.todo, succeeded=succeeded))


def _advance(state: LoopState, phase: Phase, **changes: object) -> LoopState:
    """The next step, in `phase`, tried for the first time."""
    return state.model_copy(
        update={"phase": phase, "step": state.step + 1, "tries": 0, "delay_s": 0.0, **changes}
    )


def _prepared(state: LoopState, prepared: Prepared) -> LoopState:
    todo = started(prepared.todo)
    return _advance(
        state,
        "turn",
        query_type=prepared.query_type,
        intent=prepared.intent,
        todo=evidence_found(todo) if prepared.found_count else todo,
        prepared_step=state.step,
        max_looks=prepared.max_looks,
        max_turns=prepared.max_turns,
    )


def _asked(state: LoopState, observation: UserAsked | AnswerArrived | AnswerTimedOut) -> LoopState:
    match observation:
        case UserAsked():
            return _advance(
                state,
                "await",
                query_type=observation.query_type,
                intent=observation.intent,
                todo=started(observation.todo),
                ask_step=state.step,
                ask_timeout_s=observation.timeout_s,
            )
        case AnswerArrived() | AnswerTimedOut():
            asked_by_model = state.ask_step in state.turns
            timed_out = isinstance(observation, AnswerTimedOut)
            return _advance(state, "turn" if asked_by_model else "take", timed_out=timed_out)
        case _:
            assert_never(observation)


def _looks_further(state: LoopState, observation: LooksFurther) -> LoopState:
    """The next turn; before it the person's answer, if the model asked."""
    waits_s = observation.answer_timeout_s
    asked = {} if waits_s is None else {"ask_step": state.step, "ask_timeout_s": waits_s}
    return _advance(
        state,
        "turn" if waits_s is None else "await",
        turns=(*state.turns, state.step),
        looks=state.looks + bool(observation.gaps),
        todo=tried_again(state.todo) if observation.gaps else state.todo,
        **asked,
    )


def _delegated(
    state: LoopState, observation: SubagentsChosen | DelegationDeferred | SubagentsEnded
) -> LoopState:
    match observation:
        case SubagentsChosen():
            return _advance(
                state,
                "delegate",
                delegation_step=state.delegation_step if observation.by_model else state.step,
                turns=(*state.turns, state.step) if observation.by_model else state.turns,
                children=observation.children,
                children_until=observation.until,
            )
        case DelegationDeferred():
            # Not a failure: tries are counted on, and the policy ends it as time runs out.
            return state.model_copy(update={"step": state.step + 1, "delay_s": observation.delay_s})
        case SubagentsEnded():
            tokens = state.tokens + _used(state.children, observation.ends)
            return _advance(state, "turn", children=(), children_until=None, tokens=tokens)
        case _:
            assert_never(observation)


def _used(children: Sequence[SubagentStart], ends: Sequence[SubagentEnd]) -> int:
    """Return the tokens used by sub-agents. One that reported nothing may have used its whole budget."""
    reported = {end.child_id: end.tokens for end in ends if end.tokens is not None}
    return sum(reported.get(child.child_id, child.max_tokens) for child in children)


def _after_failure(state: LoopState, failed: StepFailed) -> LoopState:
    """Try the step again, or report."""
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
        # Nothing more can be written; readers learn of it when the run is found without an end.
        return _advance(state, "end")
    return _advance(state, "fail", failure=failed)


def _close(state: LoopState) -> Action:
    if state.phase == "commit":
        return CommitAnswer(
            step=state.step,
            delay_s=state.delay_s,
            tries=state.tries,
            answer_step=state.answer_step,
            todo=closed(state.todo, succeeded=not state.abstained),
        )
    failure = state.failure or StepFailed(
        error_type="InternalError", message="The run stopped for an unknown reason.", retryable=False
    )
    return ReportFailure(
        step=state.step,
        delay_s=state.delay_s,
        tries=state.tries,
        todo=closed(state.todo, succeeded=False),
        error_type=failure.error_type,
        message=failure.message,
        hints=failure.hints,
    )
