"""The delegation policy's vocabulary, input and output (docs/internals/delegation.md).

`DelegationPolicyInput` and `DelegationPolicyOutput` follow the documented contract exactly. `SubagentFacts`
contains further facts that the hard gates need.
"""

from typing import Annotated, Literal

from pydantic import Field

from shared.platform.models import Model
from shared.runs.models import Count, ProfileName, ReasonCode, SubagentTool
from shared.runs.plan import QueryIntent

Decision = Literal["delegate", "no_delegate", "defer"]
ComplianceMode = Literal["normal", "strict"]
FallbackPlan = Literal["main_agent_synthesis", "reduced_profile", "abstain_with_guidance"]

ArtifactName = Literal[
    "section_summary",
    "claims",
    "citations",
    "uncertainty",
    "similarities",
    "differences",
    "conflicts",
    "citation_matrix",
    "claim_sources",
    "claim_confidence",
    "corroborated_claims",
    "external_citations",
    "trust_notes",
]

REASON_WORDS: dict[ReasonCode, str] = {
    # Gates.
    "SUBAGENTS_DISABLED": "Deeper work by sub-agents is switched off here.",
    "SUBAGENTS_UNAVAILABLE": "No sub-agent can do this.",
    "RECURSION_LIMIT_REACHED": "A sub-agent cannot start another one.",
    "TARGET_NOT_READABLE": "Not every document that the question is about can be read.",
    "LATENCY_BUDGET_EXHAUSTED": "Too little time is left for deeper work.",
    "TOKEN_BUDGET_EXHAUSTED": "Too little of the token budget is left.",
    "COST_BUDGET_EXHAUSTED": "Too little of the cost budget is left.",
    "CIRCUIT_OPEN": "Sub-agents failed too often recently and are paused.",
    "REQUIRED_TOOLS_RESTRICTED": "The tools that this needs are not allowed here.",
    "REQUIRED_TOOLS_UNHEALTHY": "The tools that this needs do not work at the moment.",
    # Negative triggers.
    "CONFIDENT_FACT_LOOKUP": "The passage with the answer was clearly found.",
    "FITS_WHOLE": "The documents are short enough to be read whole.",
    "DEGRADED_MODE": "Sub-agents are switched off for the moment.",
    "ACTIVE_LIMIT_REACHED": "The maximum number of sub-agents is already running.",
    "REQUEST_LIMIT_REACHED": "This question has used all its sub-agents.",
    "CHILD_LATENCY_TOO_SHORT": "Too little time is left for a sub-agent.",
    # Positive triggers.
    "INTENT_DOC_SUMMARY": "A summary of a document was asked for.",
    "INTENT_COMPARE_DOCS": "A comparison of documents was asked for.",
    "INTENT_EVIDENCE_TRACE": "Proof of statements was asked for.",
    "FULL_DOCUMENT_REQUIRED": "A document has to be read whole.",
    "LOW_RETRIEVAL_CONFIDENCE": "What was found fits the question poorly.",
    "AMBIGUOUS_RETRIEVAL": "Many passages fit about equally well.",
    "MULTI_DOCUMENT": "The question is about several documents.",
    "DEEP_MODE_REQUESTED": "Deeper work was asked for.",
    "MODEL_REQUESTED": "The assistant asked for help with a part of the question.",
    # Notes.
    "NO_TRIGGER": "Nothing suggests deeper work.",
    "QUEUE_FULL": "Too many sub-agents are waiting for their turn.",
    "PROFILE_REDUCED": "A simpler sub-agent takes over, because the best one is not available.",
    "TOOLS_RESTRICTED": "The sub-agent works with fewer tools than usual.",
    "POLICY_EVAL_ERROR": "It could not be decided whether deeper work helps, so the answer does without it.",
}
"""Explanation of each reason for users."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Usd = Annotated[float, Field(allow_inf_nan=False)]


class RetrievalStats(Model):
    """Retrieval confidence on the calibrated 0-1 scale of docs/internals/delegation.md.

    Attributes:
        score_spread: difference between the best and the fifth score.
        candidate_count: number of passages, or of documents in a listing.
        docs_hit_count: number of different documents among them.
    """

    top_score: Share
    score_spread: Share
    candidate_count: Count
    docs_hit_count: Count


class DocScope(Model):
    """The documents that the question is about. `target_doc_ids` is empty if it names none."""

    target_doc_ids: tuple[str, ...] = ()
    estimated_tokens: Count = 0
    requires_full_document: bool = False
    multi_document: bool = False


class ConversationState(Model):
    """The user's preferences for this question."""

    user_requested_deep_mode: bool = False


class RuntimeBudget(Model):
    """The request's total budget and the rest of it, which is negative if overdrawn."""

    max_total_latency_ms: int = 25_000
    remaining_latency_ms: int
    max_total_tokens: int = 24_000
    remaining_tokens: int
    max_subagent_cost_usd: Usd = 0.08


class RiskFlags(Model):
    """Restrictions on a sub-agent's tools."""

    sensitive_domain: bool = False
    restricted_tools_only: bool = False
    compliance_mode: ComplianceMode = "normal"


class SystemHealth(Model):
    """Load and health of the system, across all instances."""

    degraded_mode: bool = False
    subagent_queue_depth: Count = 0
    active_subagents: Count = 0


class DelegationPolicyInput(Model):
    """Input of the policy (docs/internals/delegation.md)."""

    request_id: str
    user_id: str
    thread_id: str
    query: str
    query_intent: QueryIntent
    retrieval_stats: RetrievalStats
    doc_scope: DocScope
    conversation_state: ConversationState
    runtime_budget: RuntimeBudget
    risk_flags: RiskFlags
    system_health: SystemHealth


class SubagentFacts(Model):
    """Facts for the hard gates that the contract's input doesn't include, provided by the caller.

    Attributes:
        installed_profiles: profiles with an available sub-agent.
        healthy_tools: tools that currently work.
        targets_readable: whether the user may read every target document.
        circuit_closed: whether the recent failure rate of sub-agents is acceptable.
        web_allowed: whether questions may be searched on the web.
        depth: level of the delegating agent: 0 = the main agent, 1 = a sub-agent.
        started: number of sub-agents that this request has started.
        spent_usd: their cost.
        requested_profile: profile named in the model's call of `delegate`; None = no call.
    """

    installed_profiles: tuple[ProfileName, ...]
    healthy_tools: tuple[SubagentTool, ...]
    targets_readable: bool
    circuit_closed: bool = True
    web_allowed: bool = False
    depth: Count = 0
    started: Count = 0
    spent_usd: Usd = 0.0
    requested_profile: ProfileName | None = None


class BudgetAllocation(Model):
    """Budget of one sub-agent; all 0 if none is started."""

    max_child_latency_ms: int = 0
    max_child_tokens: int = 0
    max_child_cost_usd: float = 0.0
    max_child_turns: int = 0


class DelegationPolicyOutput(Model):
    """The policy's decision (docs/internals/delegation.md).

    Attributes:
        binding: whether sub-agents start at once. Otherwise `delegate` is only advice for the model, which
            may call the tool `delegate`.
        selected_profile, tool_scope, expected_artifacts: None and empty unless `delegate`.
        fallback_plan: how the question is handled without a sub-agent's result.
    """

    decision: Decision
    reason_codes: tuple[ReasonCode, ...]
    binding: bool = False
    selected_profile: ProfileName | None = None
    tool_scope: tuple[SubagentTool, ...] = ()
    budget_allocation: BudgetAllocation = BudgetAllocation()
    expected_artifacts: tuple[ArtifactName, ...] = ()
    fallback_plan: FallbackPlan = "main_agent_synthesis"
