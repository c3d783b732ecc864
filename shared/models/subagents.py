"""Sub-agents between parent and child: what is stored, what crosses durable boundaries, what people see.

Content lies in working memory (`SubagentTask`, `SubagentState`); what crosses a durable boundary
(`SubagentStart`, `TurnInput`, `TurnResult`) names it and holds none.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.delegation import (
    BudgetAllocation,
    DelegationPolicyOutput,
    ProfileName,
    ReasonCode,
    SubagentTool,
)
from shared.models.documents import DocumentRecord
from shared.models.identity import UserContext
from shared.models.search import Hit

Count = Annotated[int, Field(ge=0)]
ChildStatus = Literal["running", "done", "partial", "failed", "late"]
"""`partial`: its budget ended it with something to show. `late`: the parent ended it at the deadline."""
WarningCode = Literal[
    "TIME_OUT",
    "TOKENS_SPENT",
    "COST_SPENT",
    "TURNS_SPENT",
    "TOOL_FAILED",
    "MODEL_FAILED",
    "REPORT_UNREADABLE",
    "PROFILE_REDUCED",
    "PROOF_MISSING",
    "NOTHING_FOUND",
    "CRASHED",
]


class SubagentTask(Model):
    """What one sub-agent is to do: all that it learns of the conversation. Stored in working memory.

    Attributes:
        child_id: of its orchestration, such as "RUN:s007c0": made from run, step and index, never by chance.
        step, index: the step that decided it, and its place among those of the step.
        question: the task in words.
        doc_ids: documents to work on; empty = those that its searches find.
        tools: all that it may use.
        deadline: an instant with zone: no call goes on after it.
    """

    child_id: str
    run_id: str
    step: Count
    index: Count
    profile: ProfileName
    question: str
    doc_ids: tuple[str, ...] = ()
    project_id: str | None = None
    tools: tuple[SubagentTool, ...]
    budget: BudgetAllocation
    deadline: datetime


class Delegation(Model):
    """A decision to delegate, and what it set going. Stored in working memory under its step.

    Attributes:
        asker: as whom its sub-agents search, if the run has waited; None = whoever asked.
    """

    step: Count
    decided: DelegationPolicyOutput
    tasks: tuple[SubagentTask, ...]
    decided_at: datetime
    asker: UserContext | None = None


class SubagentStart(Model):
    """Input of the child orchestration `run_sub_agent`, whose instance id is `child_id`.

    Attributes:
        retry_count, retry_backoff_ms: of a turn that failed, before the profile is reduced.
        profiles: the one to begin with, then the smaller ones, in order.
    """

    child_id: str
    run_id: str
    step: Count
    index: Count
    deadline: datetime
    max_turns: Count
    max_tokens: Count = 0
    retry_count: Count
    retry_backoff_ms: Count
    profiles: tuple[ProfileName, ...]


class TurnInput(Model):
    """Input of the activity `take_sub_agent_turn`.

    Attributes:
        turn: counted from 1; a turn that was ended already is not taken again.
        attempt: at this turn, counted from 0.
        closing: no further turn follows: the report is due.
    """

    child_id: str
    run_id: str
    step: Count
    index: Count
    turn: Count
    attempt: Count
    profile: ProfileName
    closing: bool


class TurnResult(Model):
    """What a turn brought.

    Attributes:
        status: `go_on` = another turn is wanted; `done`, `partial` = the report stands; `failed` = this turn
            brought nothing, and the one before it still holds.
        retryable: whether the same turn may go better if it is taken again.
        tokens, cost_usd: of the sub-agent so far.
        findings: statements that it has brought so far.
    """

    status: Literal["go_on", "done", "partial", "failed"]
    retryable: bool = False
    warnings: tuple[WarningCode, ...] = ()
    tokens: Count = 0
    cost_usd: float = 0.0
    findings: Count = 0


class TurnReply(Model):
    """Output of the activity `take_sub_agent_turn`."""

    result: TurnResult


class SubagentEnd(Model):
    """How a child ended: the output of `run_sub_agent`, or what its parent makes of silence."""

    child_id: str
    status: ChildStatus
    turns: Count = 0
    tokens: Count = 0
    cost_usd: float = 0.0


class ToolUse(Model):
    """One call of a tool by a sub-agent; never its content."""

    turn: Count
    tool: SubagentTool
    success: bool
    result_count: Count = 0
    duration_ms: Count = 0
    error_type: str | None = None


class Finding(Model):
    """One statement that a sub-agent hands back.

    Attributes:
        kind: which part of the report it is from.
        dimension: of a comparison; else the heading, or empty.
        proofs: verified ones only: ids of blocks with what they say verbatim.
    """

    kind: Literal["section", "claim", "similarity", "difference", "conflict", "web"]
    text: str
    dimension: str = ""
    confidence: float | None = None
    proofs: tuple["FoundProof", ...] = ()


class FoundProof(Model):
    """A quotation that stands verbatim in a block, or on a page of the web (`url`)."""

    quote: str
    doc_id: str = ""
    block_id: str = ""
    url: str = ""
    title: str = ""


class SubagentState(Model):
    """What a sub-agent has brought so far: overwritten as artifacts arise, read by its parent at any time.

    Attributes:
        turns_ended: turns whose result is in it.
        last_result, last_attempt: of the newest turn that came to a result, be it a failure.
        attempt_id: of the attempt at a turn that wrote it; each has another, also one after a crash.
        started_at, ended_at: None = not yet.
        hits, records: passages that it found, with the asker's rights, and their documents.
        uncertainty: what it could not settle, in sentences.
    """

    child_id: str
    profile: ProfileName
    status: ChildStatus = "running"
    turns_ended: Count = 0
    last_result: TurnResult | None = None
    last_attempt: Count = 0
    attempt_id: str = ""
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


class SubagentView(Model):
    """A sub-agent as people see it: in a run's status, and with its answer.

    Attributes:
        badge: its kind, in words.
        reasons, reason_codes: why it was set to work.
        doc_ids: documents that it has read from. Who may not read all of them any more sees no `uncertainty`.
        claims, proved: statements that it brought, and those with a verified proof.
        warnings: in words.
    """

    child_id: str
    profile: ProfileName
    badge: str
    status: ChildStatus
    reason_codes: tuple[ReasonCode, ...] = ()
    reasons: tuple[str, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    turns: Count = 0
    tokens: Count = 0
    cost_usd: float = 0.0
    tool_calls: tuple[ToolUse, ...] = ()
    doc_ids: tuple[str, ...] = ()
    claims: Count = 0
    proved: Count = 0
    uncertainty: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
