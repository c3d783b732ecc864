"""The steps of a run: the actions that a script requests, and the observations that they return.

Both cross durable boundaries, so they contain only counts and step numbers. The contents are stored in the
run's journal under these numbers.
"""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.answering.subagent_models import (
    ReadTask,
    SubagentEnd,
    SubagentPlace,
    SubagentStart,
    TakeSubagentTurn,
    TaskRead,
    TurnResult,
)
from shared.answering.summary_models import DocumentAction, SummaryObservation
from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.models import Model
from shared.runs.plan import QueryIntent, QueryType, TodoItem


class StepFields(Model):
    """Fields that the actions of all steps share.

    Attributes:
        step: its number, counted from 1.
        todo: the todo list to send when the step begins; empty if readers have it.
        tries: number of earlier failed attempts at the step.
    """

    step: int
    todo: tuple[TodoItem, ...] = ()
    tries: int = 0


class Prepare(StepFields):
    """Action that plans the question and searches for it, or asks for clarification if a named document is
    ambiguous.
    """

    kind: Literal["prepare"] = "prepare"


class TakeAnswer(StepFields):
    """Action that searches the document chosen in a clarification, or all options after a timeout."""

    kind: Literal["take_answer"] = "take_answer"
    ask_step: int
    timed_out: bool = False


class TakeTurn(StepFields):
    """Action that executes the previous turn's tool calls, then has the model take its next turn.

    Attributes:
        prepared_step: the step whose plan and evidence are used.
        earlier: steps of the previous turns, in order.
        delegation_step: the step that chose the sub-agents whose findings are used; 0 = none.
        may_call: whether the model may call tools. False = it must answer.
        may_look: whether to search for gaps that the model names.
    """

    kind: Literal["turn"] = "turn"
    prepared_step: int
    earlier: tuple[int, ...] = ()
    delegation_step: int = 0
    may_call: bool = True
    may_look: bool = True


class CommitAnswer(StepFields):
    """Action that stores the answer and sends COMPLETE.

    Attributes:
        todo: the final todo list.
    """

    kind: Literal["commit_answer"] = "commit_answer"
    answer_step: int


class ReportFailure(StepFields):
    """Action that stores the failure of the run and sends ERROR."""

    kind: Literal["report_failure"] = "report_failure"
    error_type: str
    message: str
    hints: tuple[str, ...] = ()


class OpenSummary(StepFields):
    """Action that chooses the documents to summarise."""

    kind: Literal["open_summary"] = "open_summary"


class MergeSummary(StepFields):
    """Action that stops the children of a summary and merges their results."""

    kind: Literal["merge_summary"] = "merge_summary"


class CommitSummary(StepFields):
    """Action that sends COMPLETE or ERROR for a summary. If the user has lost access to a document since the
    merge, it sends nothing.
    """

    kind: Literal["commit_summary"] = "commit_summary"
    merge_step: int


StepAction = Annotated[
    Prepare
    | TakeAnswer
    | TakeTurn
    | CommitAnswer
    | ReportFailure
    | OpenSummary
    | MergeSummary
    | CommitSummary,
    Field(discriminator="kind"),
]
"""An action of the agent that answers the question or summarises documents."""

SubagentAction = ReadTask | TakeSubagentTurn
"""An action of a sub-agent."""


class StepObservation(Model):
    """Base of the observations that steps return.

    Attributes:
        is_last: whether no turn follows, so that the run can be closed.
    """

    is_last: ClassVar[bool] = False


class Prepared(StepObservation):
    """Observation after the plan and the first search were completed.

    Attributes:
        found_count: number of passages, or of documents in a listing.
        max_looks: maximum number of searches including the first; the others are for gaps that the model
            names.
        max_turns: maximum number of model turns.
    """

    kind: Literal["prepared"] = "prepared"
    query_type: QueryType
    intent: QueryIntent
    todo: tuple[TodoItem, ...]
    found_count: int
    max_looks: int = 1
    max_turns: int = 1


class UserAsked(StepObservation):
    """Observation after the plan was completed and the user was asked which document is meant.

    Attributes:
        expires_at: time with zone until which to wait for the reply.
    """

    kind: Literal["user_asked"] = "user_asked"
    query_type: QueryType
    intent: QueryIntent
    todo: tuple[TodoItem, ...]
    expires_at: datetime


class AnswerArrived(StepObservation):
    """Observation after the user replied in time. The reply is stored in the journal."""

    kind: Literal["answer_arrived"] = "answer_arrived"


class AnswerTimedOut(StepObservation):
    """Observation after the user did not reply in time."""

    kind: Literal["answer_timed_out"] = "answer_timed_out"


class LooksFurther(StepObservation):
    """Observation after a turn that called tools or named gaps, so that another turn follows.

    Attributes:
        gaps: number of gaps to search for.
        expires_at: time with zone until which to wait for the user's reply; None = the user was not asked.
    """

    kind: Literal["looks_further"] = "looks_further"
    calls: int
    gaps: int
    expires_at: datetime | None = None


class SubagentsChosen(StepObservation):
    """Observation after a step chose and stored tasks for sub-agents, which must now run.

    Attributes:
        by_model: whether a model's call chose them and ended its turn; otherwise the policy did, before the
            first turn.
    """

    kind: Literal["subagents_chosen"] = "subagents_chosen"
    children: tuple[SubagentStart, ...]
    until: datetime
    by_model: bool = False


class DelegationDeferred(StepObservation):
    """Observation after a delegation decision was postponed because too many sub-agents wait. It is repeated
    after `delay_s` seconds.
    """

    kind: Literal["delegation_deferred"] = "delegation_deferred"
    delay_s: float


class FilesUnread(StepObservation):
    """Observation after a preparation was postponed because attached files are still being ingested. It is
    repeated after `delay_s` seconds.
    """

    kind: Literal["files_unread"] = "files_unread"
    delay_s: float


class SubagentsEnded(StepObservation):
    """Observation after all sub-agents have ended. `ends` is in the order of the children."""

    kind: Literal["subagents_ended"] = "subagents_ended"
    ends: tuple[SubagentEnd, ...]


class AnswerWritten(StepObservation):
    """Observation after a turn stored a complete answer.

    Attributes:
        abstained: whether the documents don't contain the answer.
    """

    is_last = True
    kind: Literal["answer_written"] = "answer_written"
    abstained: bool


class RunClosed(StepObservation):
    """Observation after the last event of the run was written, by this step or by another writer."""

    is_last = True
    kind: Literal["run_closed"] = "run_closed"


class StepFailed(StepObservation):
    """Observation after a step failed with an expected error.

    Attributes:
        remaining_s: seconds left of the run's time; None = unknown.
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
    | FilesUnread
    | SubagentsEnded
    | AnswerWritten
    | RunClosed
    | StepFailed
    | TaskRead
    | TurnResult
    | SummaryObservation,
    Field(discriminator="kind"),
]


class StepInput(Model):
    """Input of the `perform_step` activity.

    Attributes:
        path: the child that takes the step, as in `SubagentPlace`; empty = the run itself.
        tokens: used by the run before this step.
    """

    run_id: str
    path: str = ""
    action: StepAction | SubagentAction | DocumentAction = Field(discriminator="kind")
    tokens: int = 0

    @property
    def place(self) -> SubagentPlace:
        """The child that performs the step. Only valid if `path` is not empty."""
        return SubagentPlace(run_id=self.run_id, path=self.path)


class StepResult(Model):
    """Output of the `perform_step` activity. Expected errors are also returned as observations.

    Attributes:
        tokens: used by this step; 0 for a sub-agent's, whose observations have its total.
    """

    observation: Observation
    tokens: int = 0


def step_failed(error: GroundworkError, remaining_s: float | None) -> StepFailed:
    """Convert an expected error to an observation, with the seconds left of the run's time."""
    return StepFailed(
        error_type=error.code,
        message=error.detail,
        hints=error.hints,
        # A retry after a timeout would probably time out as well.
        retryable=error.retryable and not isinstance(error, CallTimeoutError),
        retry_after_s=error.retry_after_s,
        remaining_s=None if remaining_s is None else round(remaining_s, 1),
    )
