"""The steps of a run: the actions that the script decides on, and the observations that they return.

Both cross durable boundaries, so they hold counts and step numbers, never content: that is in the run's
journal, where steps keep it under their numbers.
"""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.answering.subagent_models import SubagentEnd, SubagentStart
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.models import Model
from shared.runs.plan import QueryIntent, QueryType, TodoItem


class StepFields(Model):
    """The fields of every step.

    Attributes:
        step: its number, counted from 1.
        todo: the todo list to send when the step begins; empty if readers have it.
        tries: failed tries of the step before this one.
    """

    step: int
    todo: tuple[TodoItem, ...] = ()
    tries: int = 0


class Prepare(StepFields):
    """Plan the question and search for it; ask back if a document that it names is ambiguous."""

    kind: Literal["prepare"] = "prepare"


class TakeAnswer(StepFields):
    """Go on with what the person chose, or with all options when no answer came, and search for it."""

    kind: Literal["take_answer"] = "take_answer"
    ask_step: int
    timed_out: bool = False


class TakeTurn(StepFields):
    """Make the tool calls of the turn before, then let the model take its next turn.

    Attributes:
        prepared_step: the step whose plan and evidence it works from.
        earlier: steps of the turns before, in order.
        delegation_step: the step that chose sub-agents, whose findings it works from; 0 = none did.
        may_call: whether the model may call tools. False = it must answer.
        may_look: whether gaps that it names are searched for.
    """

    kind: Literal["turn"] = "turn"
    prepared_step: int
    earlier: tuple[int, ...] = ()
    delegation_step: int = 0
    may_call: bool = True
    may_look: bool = True


class CommitAnswer(StepFields):
    """Store the answer and tell the reader that it is complete.

    Attributes:
        todo: the list as it stands at the end.
    """

    kind: Literal["commit_answer"] = "commit_answer"
    answer_step: int


class ReportFailure(StepFields):
    """Store the failure and tell the reader."""

    kind: Literal["report_failure"] = "report_failure"
    error_type: str
    message: str
    hints: tuple[str, ...] = ()


StepAction = Annotated[
    Prepare | TakeAnswer | TakeTurn | CommitAnswer | ReportFailure, Field(discriminator="kind")
]
"""What an activity performs."""


class StepObservation(Model):
    """What a step returns.

    Attributes:
        is_last: whether no turn follows, so that the run can be closed.
    """

    is_last: ClassVar[bool] = False


class Prepared(StepObservation):
    """The question is planned, and searched for.

    Attributes:
        found_count: passages, or documents of a listing.
        max_looks: searches in all, that one included: the others are for gaps that the model names.
        max_turns: of the model.
    """

    kind: Literal["prepared"] = "prepared"
    query_type: QueryType
    intent: QueryIntent
    todo: tuple[TodoItem, ...]
    found_count: int
    max_looks: int = 1
    max_turns: int = 1


class UserAsked(StepObservation):
    """The question back is shown; the plan stands.

    Attributes:
        answer_timeout_s: how long its answer is waited for.
    """

    kind: Literal["user_asked"] = "user_asked"
    query_type: QueryType
    intent: QueryIntent
    todo: tuple[TodoItem, ...]
    answer_timeout_s: float


class AnswerArrived(StepObservation):
    """The person answered; the answer is in the journal."""

    kind: Literal["answer_arrived"] = "answer_arrived"


class AnswerTimedOut(StepObservation):
    """Nobody answered in time."""

    kind: Literal["answer_timed_out"] = "answer_timed_out"


class LooksFurther(StepObservation):
    """The model called tools, or named gaps: another turn follows.

    Attributes:
        gaps: gaps that are searched for.
        answer_timeout_s: the person was asked, and so long their answer is waited for; None = nobody was.
    """

    kind: Literal["looks_further"] = "looks_further"
    calls: int
    gaps: int
    answer_timeout_s: float | None = None


class SubagentsChosen(StepObservation):
    """Sub-agents are to work on the question before the model's next turn; their tasks are stored.

    Attributes:
        by_model: a call of the model chose them, and ended its turn; else the policy did before the first.
    """

    kind: Literal["subagents_chosen"] = "subagents_chosen"
    children: tuple[SubagentStart, ...]
    until: datetime
    by_model: bool = False


class DelegationDeferred(StepObservation):
    """Too many sub-agents are waiting: the decision is repeated after `delay_s` seconds."""

    kind: Literal["delegation_deferred"] = "delegation_deferred"
    delay_s: float


class SubagentsEnded(StepObservation):
    """No sub-agent is running any more; `ends` are in the order of the children."""

    kind: Literal["subagents_ended"] = "subagents_ended"
    ends: tuple[SubagentEnd, ...]


class AnswerWritten(StepObservation):
    """The answer is stored under its step.

    Attributes:
        abstained: the documents do not hold the answer.
    """

    is_last = True
    kind: Literal["answer_written"] = "answer_written"
    abstained: bool


class RunClosed(StepObservation):
    """The run has its last event: this step sent it, or another party did."""

    is_last = True
    kind: Literal["run_closed"] = "run_closed"


class StepFailed(StepObservation):
    """The step failed as can be expected of what it uses.

    Attributes:
        remaining_s: of the run's time; None = it was not looked up.
    """

    is_last = True
    kind: Literal["step_failed"] = "step_failed"
    error_type: str
    message: str
    hints: tuple[str, ...] = ()
    retryable: bool
    retry_after_s: float | None = None
    remaining_s: float | None = None


Observation = Annotated[
    Prepared
    | UserAsked
    | AnswerArrived
    | AnswerTimedOut
    | LooksFurther
    | SubagentsChosen
    | DelegationDeferred
    | SubagentsEnded
    | AnswerWritten
    | RunClosed
    | StepFailed,
    Field(discriminator="kind"),
]


class StepInput(Model):
    """Input of the one activity that performs steps. `tokens`: used by the run before it."""

    run_id: str
    action: StepAction
    tokens: int = 0


class StepResult(Model):
    """Its output: an observation, never an exception for what can be expected; `tokens`: of this step."""

    observation: Observation
    tokens: int = 0


def step_failed(failed: GroundworkError, remaining_s: float | None) -> StepFailed:
    """Return an error as an observation."""
    return StepFailed(
        error_type=failed.code,
        message=failed.detail,
        hints=failed.hints,
        # What took too long once would take its whole time again.
        retryable=failed.retryable and not isinstance(failed, CallTimeoutError),
        retry_after_s=failed.retry_after_s,
        remaining_s=None if remaining_s is None else round(remaining_s, 1),
    )
