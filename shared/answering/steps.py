"""The loop's vocabulary: actions that are decided, observations of what they brought.

Both cross durable boundaries, so they hold counts, scores and names of steps, never content: what a step
produced lies in the run's working memory, in the blob that its step names.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.platform.errors import CallTimeoutError, GroundworkError
from shared.platform.models import Model
from shared.runs.plan import QueryIntent, QueryType, TodoItem
from shared.subagents.models import SubagentEnd, SubagentStart


class RunSubagents(Model):
    """Run sub-agents side by side; the driver does it, not an activity.

    Attributes:
        until: an instant with zone; who has not ended by then is ended.
    """

    kind: Literal["run_subagents"] = "run_subagents"
    children: tuple[SubagentStart, ...]
    until: datetime


class SubagentsChosen(Model):
    """Sub-agents are to work on the question before its answer is written; their tasks are stored."""

    kind: Literal["subagents_chosen"] = "subagents_chosen"
    children: tuple[SubagentStart, ...]
    until: datetime


class DelegationDeferred(Model):
    """Too many sub-agents wait for their turn: it is decided anew after `delay_s` seconds."""

    kind: Literal["delegation_deferred"] = "delegation_deferred"
    delay_s: float


class SubagentsEnded(Model):
    """No sub-agent is at work any more; `ends` are in the order of the children."""

    kind: Literal["subagents_ended"] = "subagents_ended"
    ends: tuple[SubagentEnd, ...]


class Step(Model):
    """What every step has.

    Attributes:
        step: its number, counted from 1; names its place in working memory.
        delay_s: seconds to wait before it is performed, when an earlier try failed.
        todo: the todo list to show when the step begins; empty when it is as it was shown last.
    """

    step: int
    delay_s: float = 0.0
    todo: tuple[TodoItem, ...] = ()


class MakePlan(Step):
    """Classify the question and write the todo list.

    Attributes:
        tries: tries of it that failed before.
    """

    kind: Literal["make_plan"] = "make_plan"
    tries: int = 0


class ResolveDocuments(Step):
    """Find out which documents the plan's references mean."""

    kind: Literal["resolve_documents"] = "resolve_documents"
    plan_step: int


class AskUser(Step):
    """Show the options among which the person has to choose."""

    kind: Literal["ask_user"] = "ask_user"
    plan_step: int


class AwaitAnswer(Model):
    """Wait for the person's answer; the driver does it, not an activity.

    Attributes:
        ask_step: the question's step; names the event that is waited for.
        timeout_s: how long at most.
    """

    kind: Literal["await_answer"] = "await_answer"
    ask_step: int
    timeout_s: float


class TakeAnswer(Step):
    """Go on with what the person chose, or with all options when no answer came."""

    kind: Literal["take_answer"] = "take_answer"
    plan_step: int
    ask_step: int
    timed_out: bool = False


class FindDocuments(Step):
    """Look for documents by their metadata (listing and metadata questions)."""

    kind: Literal["find_documents"] = "find_documents"
    plan_step: int


class RetrieveBlocks(Step):
    """Search blocks.

    Attributes:
        widened: drop what the plan narrowed the search to.
        attempt: from the second on, other phrasings and more blocks.
        seen_step: evidence of the attempt before, by which what is new is counted; 0 = none.
    """

    kind: Literal["retrieve_blocks"] = "retrieve_blocks"
    plan_step: int
    widened: bool = False
    attempt: int = 1
    seen_step: int = 0


class RefineEvidence(Step):
    """Let a model put the evidence of `evidence_step` in order and sort out what does not help."""

    kind: Literal["refine_evidence"] = "refine_evidence"
    plan_step: int
    evidence_step: int


class WriteAnswer(Step):
    """Write the answer from the evidence of `evidence_step`, streaming it into the run log.

    Attributes:
        replaces: step of an answer that readers are to forget; 0 = none.
        delegation_step: the step that chose sub-agents, which have ended; 0 = none did.
        tries: tries of it that failed before.
    """

    kind: Literal["write_answer"] = "write_answer"
    plan_step: int
    evidence_step: int
    replaces: int = 0
    delegation_step: int = 0
    tries: int = 0


class CommitAnswer(Step):
    """Store the answer of `answer_step`, then send COMPLETE."""

    kind: Literal["commit_answer"] = "commit_answer"
    answer_step: int
    todo: tuple[TodoItem, ...]


class ReportFailure(Step):
    """Store that the run failed, then send ERROR."""

    kind: Literal["report_failure"] = "report_failure"
    error_type: str
    message: str
    hints: tuple[str, ...] = ()


class EndRun(Model):
    """Nothing is left to do."""

    kind: Literal["end_run"] = "end_run"
    outcome: Literal["completed", "failed"]


StepAction = Annotated[
    MakePlan
    | ResolveDocuments
    | AskUser
    | TakeAnswer
    | FindDocuments
    | RetrieveBlocks
    | RefineEvidence
    | WriteAnswer
    | CommitAnswer
    | ReportFailure,
    Field(discriminator="kind"),
]

Action = StepAction | AwaitAnswer | RunSubagents | EndRun


class PlanMade(Model):
    """The question is classified.

    Attributes:
        todo: descriptions are cut to what a status can hold.
        names_documents: the question, or what was said before, tells which documents it is about.
        max_attempts: how often evidence is looked for before the answer is that there is none.
        refines: evidence that is not sure is put in order before an answer is written from it.
    """

    kind: Literal["plan_made"] = "plan_made"
    query_type: QueryType
    intent: QueryIntent
    todo: tuple[TodoItem, ...]
    names_documents: bool = False
    max_attempts: int = 1
    refines: bool = False


class DocumentsResolved(Model):
    """Which documents are meant is known, or who asked has to choose among some."""

    kind: Literal["documents_resolved"] = "documents_resolved"
    document_count: int
    is_ambiguous: bool


class UserAsked(Model):
    """The options are shown; an answer may come from now on."""

    kind: Literal["user_asked"] = "user_asked"
    timeout_s: float


class AnswerArrived(Model):
    """The person has answered; what, lies in working memory."""

    kind: Literal["answer_arrived"] = "answer_arrived"


class AnswerTimedOut(Model):
    """Nobody answered in time."""

    kind: Literal["answer_timed_out"] = "answer_timed_out"


class AnswerTaken(Model):
    """The run goes on; `is_choice` when documents were chosen, so that no search may leave them."""

    kind: Literal["answer_taken"] = "answer_taken"
    is_choice: bool


class EvidenceFound(Model):
    """How much was found, and how surely (scores on 0-1).

    Attributes:
        new_count: blocks that the attempt before did not have; None when this was the first.
        hurried: so little of the run's time is left that nothing optional is begun.
    """

    kind: Literal["evidence_found"] = "evidence_found"
    hit_count: int
    document_count: int
    top_score: float = 0.0
    score_spread: float = 0.0
    narrowed: bool = False
    new_count: int | None = None
    hurried: bool = False


class AnswerWritten(Model):
    """An answer lies in working memory; `hurried` as with evidence."""

    kind: Literal["answer_written"] = "answer_written"
    abstained: bool
    citation_count: int
    unsupported_claims: int
    hurried: bool = False


class RunClosed(Model):
    """The answer or the failure is committed, and the last event is sent."""

    kind: Literal["run_closed"] = "run_closed"


class StepFailed(Model):
    """A step did not succeed; its own retries are used up.

    Attributes:
        retryable: the same step may succeed later.
        retry_after_s: how long the service asked us to wait.
        remaining_s: of the run's time; None = unknown: the step failed before it read the request.
    """

    kind: Literal["step_failed"] = "step_failed"
    error_type: str
    message: str
    hints: tuple[str, ...] = ()
    retryable: bool
    retry_after_s: float | None = None
    remaining_s: float | None = None


Observation = Annotated[
    PlanMade
    | DocumentsResolved
    | UserAsked
    | AnswerArrived
    | AnswerTimedOut
    | AnswerTaken
    | EvidenceFound
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
