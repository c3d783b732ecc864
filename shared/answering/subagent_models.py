"""Models of delegation: the tasks, turns, states and findings of sub-agents."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from shared.access.models import UserContext
from shared.answering.policy_models import BudgetAllocation, DelegationPolicyOutput
from shared.platform.language_models.models import Message
from shared.platform.models import Model
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.models import ChildStatus, Count, ProfileName, SubagentTool, ToolUse
from shared.runs.provenance import Provenance
from shared.tools.models import WebHit
from shared.tools.tool_calls import PlannedCall

WarningCode = Literal[
    "TIME_OUT",
    "TOKENS_SPENT",
    "COST_SPENT",
    "TOOL_FAILED",
    "MODEL_FAILED",
    "REPORT_UNREADABLE",
    "PROFILE_REDUCED",
    "PROOF_MISSING",
    "NOTHING_FOUND",
    "CRASHED",
]


TurnStatus = Literal["go_on", "done", "partial", "failed"]


class SubagentPlace(Model):
    """Identity of a sub-agent or of another child of a run. Input of the children's orchestrations.

    Attributes:
        path: the step that delegated and the sub-agent's position among that step's tasks, such as "s007c0".
    """

    run_id: str
    path: str = Field(pattern=r"^s\d+c\d+$")

    @property
    def child_id(self) -> str:
        """The instance id of the child's orchestration, such as "RUN:s007c0"."""
        return f"{self.run_id}:{self.path}"

    @property
    def step(self) -> int:
        """Number of the step that started the child."""
        return int(self.path[1:].partition("c")[0])

    @property
    def index(self) -> int:
        """Position of the child among those of its step, from 0."""
        return int(self.path.partition("c")[2])


class SubagentTask(Model):
    """The task of one sub-agent. It contains all that the sub-agent knows about the conversation.

    Attributes:
        child_id: its orchestration's id, such as "RUN:s007c0", derived from run, step and index.
        step, index: the step that decided to start it, and its position among that step's sub-agents.
        question: the task in words.
        phrasings: additional search queries.
        known_blocks: ids of passages already found, best first; read again with the user's permissions.
        doc_ids: documents to work on; empty = not limited.
        tools: all tools that it may use.
        deadline: time with zone after which no call continues.
    """

    child_id: str
    run_id: str
    step: Count
    index: Count
    profile: ProfileName
    question: str
    phrasings: tuple[str, ...] = ()
    known_blocks: tuple[str, ...] = ()
    doc_ids: tuple[str, ...] = ()
    project_id: str | None = None
    tools: tuple[SubagentTool, ...]
    budget: BudgetAllocation
    deadline: datetime

    @property
    def place(self) -> SubagentPlace:
        """The identity of the sub-agent that has this task."""
        return SubagentPlace(run_id=self.run_id, path=f"s{self.step:03d}c{self.index}")


class Delegation(Model):
    """A decision to delegate, with its tasks. It is stored together with the completion of the deciding step.

    Attributes:
        asker: user whose permissions apply if the run has waited; None = the request's user.
        language: the answer's language, ISO 639-1.
    """

    step: Count
    decided: DelegationPolicyOutput
    tasks: tuple[SubagentTask, ...]
    language: str
    decided_at: datetime
    asker: UserContext | None = None


class SubagentStart(SubagentPlace):
    """A sub-agent to start, with its profile and its token limit."""

    profile: ProfileName
    max_tokens: Count = 0


class ReadTask(Model):
    """Action that reads a sub-agent's task and returns its limits."""

    kind: Literal["read_task"] = "read_task"


class TaskRead(Model):
    """Observation after a sub-agent's task was read: its limits and its profiles.

    Attributes:
        retry_count, retry_backoff_ms: retries of a failed turn before a smaller profile takes over.
        profiles: the profile to begin with, then its successive replacements.
    """

    is_last: ClassVar[bool] = False
    kind: Literal["task_read"] = "task_read"
    deadline: datetime
    max_turns: Count
    retry_count: Count
    retry_backoff_ms: Count
    profiles: tuple[ProfileName, ...]


class TakeSubagentTurn(Model):
    """Action that takes a turn of a sub-agent: execute the previous turn's calls, then call tools or write
    the report.

    Attributes:
        turn: counted from 1; a completed turn is not taken again.
        attempt: number of the attempt at this turn, counted from 0.
        closing: whether the report is due, because no further turn follows.
    """

    kind: Literal["sub_agent_turn"] = "sub_agent_turn"
    turn: Count
    attempt: Count
    profile: ProfileName
    closing: bool


class TurnResult(Model):
    """Observation after a turn of a sub-agent.

    Attributes:
        status: `go_on` = another turn follows; `done`, `partial` = the report is stored; `failed` = this turn
            had no result, and the previous state remains valid.
        retryable: whether a retry of the same turn may succeed.
        tokens: total tokens of the sub-agent; None if the turn ended before it could count them.
        cost_usd: total cost of the sub-agent.
        findings: total number of findings.
        lost_s: seconds lost when a worker died, which postpone the deadline; at most `budget.CRASH_GRACE`.
    """

    is_last: ClassVar[bool] = False  # only `SubagentEnd` is the last observation of a sub-agent
    kind: Literal["turn_result"] = "turn_result"
    status: TurnStatus
    retryable: bool = False
    warnings: tuple[WarningCode, ...] = ()
    tokens: Count | None = None
    cost_usd: float = 0.0
    findings: Count = 0
    lost_s: float = 0.0


CRASHED = TurnResult(status="failed", retryable=True, warnings=("CRASHED",))
"""The result that the script assumes for a turn that raised an exception. A retry may succeed."""


class SubagentEnd(Model):
    """Outcome of a sub-agent. The parent creates one if the child's orchestration returned none.

    Attributes:
        tokens: used by the sub-agent; None if unknown, because it was late or its worker died.
    """

    is_last: ClassVar[bool] = True
    child_id: str
    status: ChildStatus
    turns: Count = 0
    tokens: Count | None = None
    cost_usd: float = 0.0


class Finding(Model):
    """One statement of a sub-agent's report, with its verified quotations.

    Attributes:
        kind: the part of the report that it comes from.
        dimension: dimension of a comparison; otherwise the heading, or empty.
        proofs: verified quotations only.
    """

    kind: Literal["section", "claim", "similarity", "difference", "conflict", "web"]
    text: str
    dimension: str = ""
    confidence: float | None = None
    proofs: tuple["FoundProof", ...] = ()


class FoundProof(Model):
    """A verified quotation, from a block or from the web page `url`."""

    quote: str
    doc_id: str = ""
    block_id: str = ""
    url: str = ""
    title: str = ""


class ReportedFindings(Model):
    """The part of a sub-agent's state that is stored repeatedly while its report is streamed.

    Attributes:
        tokens, cost_usd: total usage of the sub-agent, including the report.
    """

    findings: tuple[Finding, ...]
    uncertainty: tuple[str, ...]
    tokens: Count
    cost_usd: float


class SubagentState(Model):
    """State of a sub-agent. Each turn stores it in the journal, and the last stored state is valid.

    Attributes:
        turns_ended: number of completed turns included in this state.
        started_at, ended_at: None = not yet.
        hits, records: passages found with the user's permissions, and their documents.
        uncertainty: open questions, one sentence each.
        is_opened: whether the initial search is done; its first `opening_count` hits are in the task's
            message.
        is_covered: whether `hits` contains all of its documents, so that further searches are useless.
        messages: tool calls and their results, in order, after the system prompt and the task.
        planned: calls of the newest turn, to be made by the next one.
        made: signatures of all calls made.
        listed: documents whose metadata was returned by tools.
        pages: web pages, in the order found.
        provenance: all documents that it used; None before the first.
    """

    child_id: str
    profile: ProfileName
    status: ChildStatus = "running"
    turns_ended: Count = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    tokens: Count = 0
    cost_usd: float = 0.0
    tool_uses: tuple[ToolUse, ...] = ()
    hits: tuple[Hit, ...] = ()
    records: tuple[DocumentRecord, ...] = ()
    findings: tuple[Finding, ...] = ()
    uncertainty: tuple[str, ...] = ()
    warnings: tuple[WarningCode, ...] = ()
    is_opened: bool = False
    opening_count: int = 0
    is_covered: bool = False
    messages: tuple[Message, ...] = ()
    planned: tuple[PlannedCall, ...] = ()
    made: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    pages: tuple[WebHit, ...] = ()
    provenance: Provenance | None = None
