"""Models of delegation: tasks, turns, states and findings of sub-agents."""

from datetime import datetime
from typing import ClassVar, Literal

from shared.access.models import UserContext
from shared.answering.policy_models import BudgetAllocation, DelegationPolicyOutput
from shared.platform.language_models.models import Message
from shared.platform.models import Model
from shared.retrieval.models import DocumentRecord, Hit
from shared.runs.models import ChildStatus, Count, ProfileName, SubagentTool, ToolUse
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
    """Which sub-agent of which run.

    Attributes:
        child_id: of its orchestration, such as "RUN:s007c0": made from run, step and index, never by chance.
        step, index: the step that decided it, and its place among those of the step.
    """

    child_id: str
    run_id: str
    step: Count
    index: Count

    @property
    def place(self) -> dict[str, str | int]:
        """These fields alone, for another model of the same sub-agent."""
        return {name: getattr(self, name) for name in SubagentPlace.model_fields}


class SubagentTask(SubagentPlace):
    """What one sub-agent is to do: all that it learns of the conversation. Kept with its delegation.

    Attributes:
        question: the task in words.
        phrasings: more words to search for.
        known_blocks: passages that were found for the question, the best first; read again with the rights
            of the asker.
        doc_ids: documents to work on; empty = those that its searches find.
        tools: all that it may use.
        deadline: an instant with zone: no call continues after it.
    """

    profile: ProfileName
    question: str
    phrasings: tuple[str, ...] = ()
    known_blocks: tuple[str, ...] = ()
    doc_ids: tuple[str, ...] = ()
    project_id: str | None = None
    tools: tuple[SubagentTool, ...]
    budget: BudgetAllocation
    deadline: datetime


class Delegation(Model):
    """A decision to delegate, with its tasks. The deciding step keeps it with its completion.

    Attributes:
        asker: as whom its sub-agents search, if the run has waited; None = the person who asked.
        language: of the answer, ISO 639-1.
    """

    step: Count
    decided: DelegationPolicyOutput
    tasks: tuple[SubagentTask, ...]
    language: str
    decided_at: datetime
    asker: UserContext | None = None


class SubagentStart(SubagentPlace):
    """Input of the child orchestration `run_sub_agent`, whose instance id is `child_id`.

    Attributes:
        retry_count, retry_backoff_ms: of a turn that failed, before the profile is reduced.
        profiles: the one to begin with, then the smaller ones, in order.
    """

    deadline: datetime
    max_turns: Count
    max_tokens: Count = 0
    retry_count: Count
    retry_backoff_ms: Count
    profiles: tuple[ProfileName, ...]


class TurnInput(SubagentPlace):
    """Input of the activity `take_sub_agent_turn`.

    Attributes:
        turn: counted from 1; a turn that was ended already is not taken again.
        attempt: at this turn, counted from 0.
        closing: no further turn follows: the report is due.
    """

    turn: Count
    attempt: Count
    profile: ProfileName
    closing: bool


class TurnResult(Model):
    """What a turn brought: output of the activity `take_sub_agent_turn`.

    Attributes:
        status: `go_on` = another turn is wanted; `done`, `partial` = the report stands; `failed` = this turn
            brought nothing, and the one before it still holds.
        retryable: whether the same turn may go better if it is taken again.
        tokens: used by the sub-agent so far; None if the turn ended before it could count them.
        cost_usd: spent by the sub-agent so far.
        findings: statements that it has brought so far.
        lost_s: by which its deadline is later, as its worker died; at most `budget.CRASH_GRACE`.
    """

    is_last: ClassVar[bool] = False  # the script ends a sub-agent by `SubagentEnd`
    status: TurnStatus
    retryable: bool = False
    warnings: tuple[WarningCode, ...] = ()
    tokens: Count | None = None
    cost_usd: float = 0.0
    findings: Count = 0
    lost_s: float = 0.0


CRASHED = TurnResult(status="failed", retryable=True, warnings=("CRASHED",))
"""The result of a turn that raised: a defect."""


class SubagentEnd(Model):
    """The end of a sub-agent: output of `run_sub_agent`, or made by its parent if the child gave none.

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


class ReportedFindings(Model):
    """The part of a sub-agent's state that changes while its report is streamed.

    Attributes:
        tokens, cost_usd: used by the sub-agent so far, the report included.
    """

    findings: tuple[Finding, ...]
    uncertainty: tuple[str, ...]
    tokens: Count
    cost_usd: float


class SubagentState(Model):
    """What a sub-agent has said and found so far. Its turns keep it in the journal; the last one counts.

    Attributes:
        turns_ended: completed turns whose result is in it.
        started_at, ended_at: None = not yet.
        hits, records: passages that it found, with the asker's rights, and their documents.
        uncertainty: what it could not settle, in sentences.
        is_opened: its first passages were looked for; `opening_count` hits are in the task's message.
        is_covered: they are all that its documents hold: nothing more can be found.
        messages: calls of tools and their results, in order, behind the system prompt and the task.
        planned: calls of the newest turn, which the next one makes; `made`: signatures of those made.
        listed: documents of which tools told what is known of them.
        pages: of the web, in the order found.
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
