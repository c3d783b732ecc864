"""Input of a delegation decision, with the budget, profile and tools that result from it. Pure."""

from dataclasses import dataclass
from functools import cached_property

from shared.answering.budget import Budget
from shared.answering.policy_models import BudgetAllocation, DelegationPolicyInput
from shared.answering.profiles import PROFILES, SubagentProfile, with_smaller
from shared.platform.settings import Settings
from shared.runs.models import ProfileName, SubagentTool
from shared.runs.plan import QueryIntent

_BY_INTENT: dict[QueryIntent, ProfileName] = {
    "doc_summary": "doc_reader",
    "compare_docs": "comparator",
    "evidence_trace": "evidence_builder",
}


@dataclass(frozen=True)
class Situation:
    """All facts on which a delegation decision depends: question, evidence, budget and state of the system.

    Attributes:
        policy_input: the documented input of a decision.
        installed_profiles: profiles with an available sub-agent.
        healthy_tools: tools that currently work.
        targets_readable: whether the user may read every target document.
        circuit_closed: whether the recent failure rate of sub-agents is acceptable.
        web_allowed: whether questions may be searched on the web.
        depth: level of the delegating agent: 0 = the main agent, 1 = a sub-agent.
        started: number of sub-agents that this request has started.
        spent_usd: their cost.
        free_slots: number of sub-agents that may start now, over all questions.
        requested_profile: profile named in the model's call of `delegate`; None = no call.
    """

    policy_input: DelegationPolicyInput
    settings: Settings
    installed_profiles: tuple[ProfileName, ...]
    healthy_tools: tuple[SubagentTool, ...]
    targets_readable: bool
    circuit_closed: bool = True
    web_allowed: bool = False
    depth: int = 0
    started: int = 0
    spent_usd: float = 0.0
    free_slots: int = 0
    requested_profile: ProfileName | None = None

    @property
    def latency_left_ms(self) -> int:
        """Milliseconds left of the question's time limit."""
        budget = self.policy_input.runtime_budget
        return min(budget.remaining_latency_ms, budget.max_total_latency_ms)

    @property
    def child_latency_left_ms(self) -> int:
        """Milliseconds left for sub-agents, after the time reserved for writing the answer."""
        return self.latency_left_ms - self.settings.subagents.reserve_latency_ms

    @property
    def budget(self) -> Budget:
        """Budget of all further sub-agents together, after the tokens reserved for writing the answer."""
        limits = self.policy_input.runtime_budget
        tokens = min(limits.remaining_tokens, limits.max_total_tokens)
        return Budget(
            tokens - self.settings.subagents.reserve_tokens,
            limits.max_subagent_cost_usd,
            cost_usd=max(self.spent_usd, 0.0),
        )

    @property
    def least_child_tokens(self) -> int:
        """Minimum budget of a sub-agent in tokens."""
        least = self.settings.budgets.min_remaining_tokens_to_delegate
        return max(least - self.settings.subagents.reserve_tokens, 1)

    def child_budget(self, count: int = 1) -> BudgetAllocation:
        """Return the budget of each of `count` concurrent sub-agents. Each gets the full time and an equal
        share of tokens and money, up to the configured limits.
        """
        share, limits, budgets = self.budget.share(count), self.settings.subagents, self.settings.budgets
        return BudgetAllocation(
            max_child_latency_ms=min(limits.child_timeout_ms, self.child_latency_left_ms),
            max_child_tokens=min(budgets.max_child_tokens, share.max_tokens),
            max_child_cost_usd=min(budgets.max_child_cost_usd, share.max_cost_usd),
            max_child_turns=limits.child_max_turns,
        )

    @property
    def children_left(self) -> int:
        """Number of sub-agents that the question may still start, as far as slots are free."""
        return min(self.settings.subagents.max_per_request - self.started, self.free_slots)

    @property
    def is_deep(self) -> bool:
        """Whether the user requested deeper work."""
        return self.policy_input.conversation_state.user_requested_deep_mode

    @property
    def is_unsure(self) -> bool:
        """Whether even the best passage matches the question poorly."""
        least = self.settings.thresholds.low_retrieval_confidence_top_score
        return self.policy_input.retrieval_stats.top_score < least

    @property
    def is_about_whole_documents(self) -> bool:
        """Whether the answer needs whole documents, as for a summary or a comparison."""
        is_summary_or_comparison = self.policy_input.query_intent in ("doc_summary", "compare_docs")
        return is_summary_or_comparison or self.policy_input.doc_scope.requires_full_document

    @property
    def fits_whole(self) -> bool:
        """Whether the size of the documents is known and they fit into the prompt of the answer."""
        return (
            0 < self.policy_input.doc_scope.estimated_tokens <= self.settings.answering.whole_documents_tokens
        )

    @property
    def is_binding(self) -> bool:
        """Whether a decision to delegate starts sub-agents immediately. Otherwise it is only advice for the
        model.
        """
        is_long = (
            self.policy_input.doc_scope.estimated_tokens > self.settings.answering.whole_documents_tokens
        )
        is_requested = self.is_deep or self.requested_profile is not None
        return is_requested or (self.is_about_whole_documents and is_long)

    @property
    def is_queue_full(self) -> bool:
        """Whether too many sub-agents wait for their first turn."""
        return self.policy_input.system_health.subagent_queue_depth >= self.settings.subagents.max_queue_depth

    @cached_property
    def allowed_tools(self) -> set[SubagentTool]:
        """Tools that sub-agents may use for this question, whether or not they currently work."""
        risk = self.policy_input.risk_flags
        allowed = {tool for profile in PROFILES.values() for tool in profile.tools}
        is_strict = risk.compliance_mode == "strict"
        if risk.restricted_tools_only or is_strict:
            allowed &= set(self.settings.subagents.restricted_tool_names)
        # A web search discloses the question to third parties.
        if not self.web_allowed or risk.sensitive_domain or is_strict:
            allowed.discard("web_search")
        return allowed

    @property
    def usable_tools(self) -> set[SubagentTool]:
        """Allowed tools that currently work."""
        return self.allowed_tools & set(self.healthy_tools)

    @property
    def ideal_profile(self) -> ProfileName:
        """The profile that suits the question best, even if it is not available."""
        if self.requested_profile is not None:
            return self.requested_profile
        scope = self.policy_input.doc_scope
        if self.policy_input.query_intent in _BY_INTENT:
            return _BY_INTENT[self.policy_input.query_intent]
        if scope.multi_document:
            return "comparator"
        if scope.requires_full_document:
            return "doc_reader"
        # Web pages can't answer a question about specific documents.
        if self.is_unsure and "web_search" in self.usable_tools and not scope.target_doc_ids:
            return "web_verifier"
        return "evidence_builder"

    @cached_property
    def installed(self) -> tuple[SubagentProfile, ...]:
        """The ideal profile and its smaller replacements, best first, without those that are not
        installed.
        """
        suited = with_smaller(self.ideal_profile)
        return tuple(profile for profile in suited if profile.name in self.installed_profiles)

    @cached_property
    def permitted(self) -> tuple[SubagentProfile, ...]:
        """The installed profiles whose required tools are all allowed, best first."""
        return tuple(one for one in self.installed if self.allowed_tools.issuperset(one.required_tools))

    @cached_property
    def working(self) -> tuple[SubagentProfile, ...]:
        """The permitted profiles whose required tools all work, best first. The first one is started."""
        healthy = set(self.healthy_tools)
        return tuple(one for one in self.permitted if healthy.issuperset(one.required_tools))

    @property
    def tool_scope(self) -> tuple[SubagentTool, ...]:
        """Tools that the sub-agent may use if one is started."""
        return tuple(tool for tool in self.working[0].tools if tool in self.usable_tools)
