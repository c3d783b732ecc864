"""Input and output models of the delegation policy, and its codes (docs/internals/delegation.md).

`DelegationPolicyInput` and `DelegationPolicyOutput` follow the documented contract exactly.
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

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Usd = Annotated[float, Field(allow_inf_nan=False)]


class RetrievalStats(Model):
    """Statistics on retrieval confidence. Scores use the calibrated scale from 0 to 1 of
    docs/internals/delegation.md.

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
    """The documents that a question is about, and how much of them must be read. `target_doc_ids` is empty if
    the question names no documents.
    """

    target_doc_ids: tuple[str, ...] = ()
    estimated_tokens: Count = 0
    requires_full_document: bool = False
    multi_document: bool = False


class ConversationState(Model):
    """Preferences of the user for this question."""

    user_requested_deep_mode: bool = False


class RuntimeBudget(Model):
    """Total and remaining budget of a request. Remaining amounts are negative if it is overdrawn."""

    max_total_latency_ms: int = 25_000
    remaining_latency_ms: int
    max_total_tokens: int = 24_000
    remaining_tokens: int
    max_subagent_cost_usd: Usd = 0.08


class RiskFlags(Model):
    """Circumstances that restrict the tools of sub-agents."""

    sensitive_domain: bool = False
    restricted_tools_only: bool = False
    compliance_mode: ComplianceMode = "normal"


class SystemHealth(Model):
    """Load of the sub-agents across all instances, and whether they are switched off."""

    degraded_mode: bool = False
    subagent_queue_depth: Count = 0
    active_subagents: Count = 0


class DelegationPolicyInput(Model):
    """Input of a delegation decision, as documented in docs/internals/delegation.md."""

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


class BudgetAllocation(Model):
    """Budget of a single sub-agent. All values are 0 if no sub-agent is started."""

    max_child_latency_ms: int = 0
    max_child_tokens: int = 0
    max_child_cost_usd: float = 0.0
    max_child_turns: int = 0


class DelegationPolicyOutput(Model):
    """Decision of the delegation policy, as documented in docs/internals/delegation.md.

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
