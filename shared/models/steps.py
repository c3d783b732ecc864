"""The loop's vocabulary: actions that are decided, observations of what they brought.

Both cross durable boundaries, so they hold counts, scores and names of steps, never content: what a step
produced lies in the run's working memory, in the blob that its step names.
"""

from typing import Annotated, Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.plan import QueryIntent, QueryType, TodoItem


class Step(Model):
    """What every step has.

    Attributes:
        step: its number, counted from 1; names its place in working memory.
        delay_s: seconds to wait before it is performed, when an earlier try failed.
    """

    step: int
    delay_s: float = 0.0


class MakePlan(Step):
    """Classify the question and write the todo list."""

    kind: Literal["make_plan"] = "make_plan"


class FindDocuments(Step):
    """Look for documents by their metadata (listing and metadata questions)."""

    kind: Literal["find_documents"] = "find_documents"
    plan_step: int


class RetrieveBlocks(Step):
    """Search blocks. `widened` drops what the plan narrowed the search to."""

    kind: Literal["retrieve_blocks"] = "retrieve_blocks"
    plan_step: int
    widened: bool = False


class WriteAnswer(Step):
    """Write the answer from the evidence of `evidence_step`, streaming it into the run log."""

    kind: Literal["write_answer"] = "write_answer"
    plan_step: int
    evidence_step: int


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
    MakePlan | FindDocuments | RetrieveBlocks | WriteAnswer | CommitAnswer | ReportFailure,
    Field(discriminator="kind"),
]
Action = StepAction | EndRun


class PlanMade(Model):
    """`todo` descriptions are cut to what a status can hold."""

    kind: Literal["plan_made"] = "plan_made"
    query_type: QueryType
    intent: QueryIntent
    todo: tuple[TodoItem, ...]


class EvidenceFound(Model):
    """How much was found, and how surely (scores on 0-1)."""

    kind: Literal["evidence_found"] = "evidence_found"
    hit_count: int
    document_count: int
    top_score: float = 0.0
    score_spread: float = 0.0
    narrowed: bool = False


class AnswerWritten(Model):
    """An answer lies in working memory."""

    kind: Literal["answer_written"] = "answer_written"
    abstained: bool
    citation_count: int
    unsupported_claims: int


class RunClosed(Model):
    """The answer or the failure is committed, and the last event is sent."""

    kind: Literal["run_closed"] = "run_closed"


class StepFailed(Model):
    """A step did not succeed; its own retries are used up.

    Attributes:
        retryable: the same step may succeed later.
        retry_after_s: how long the service asked us to wait.
    """

    kind: Literal["step_failed"] = "step_failed"
    error_type: str
    message: str
    hints: tuple[str, ...] = ()
    retryable: bool
    retry_after_s: float | None = None


Observation = Annotated[
    PlanMade | EvidenceFound | AnswerWritten | RunClosed | StepFailed, Field(discriminator="kind")
]


class StepInput(Model):
    """Input of the one activity that performs steps."""

    run_id: str
    action: StepAction


class StepResult(Model):
    """Its output: always an observation, never an exception for what can be expected."""

    observation: Observation
