"""The delegation policy: whether a question gets a sub-agent, which one, and its budget. Pure.

Stages: hard gates -> negative triggers -> positive triggers -> profile by intent -> budget from the remaining
resources -> output with reason codes (docs/internals/delegation.md). The first refusing stage ends the
evaluation, and only its reasons are reported, but all of them. Any error results in `no_delegate`: the answer
is then written without sub-agents.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from shared.answering.policy_models import (
    REASON_WORDS,
    BudgetAllocation,
    DelegationPolicyInput,
    DelegationPolicyOutput,
    FallbackPlan,
    SubagentFacts,
)
from shared.answering.profiles import PROFILES, Profile, with_smaller
from shared.platform.settings import Settings
from shared.runs.events import DelegationStatus
from shared.runs.models import (
    GateCode,
    NegativeCode,
    NoteCode,
    PositiveCode,
    ProfileName,
    ReasonCode,
    SubagentTool,
)
from shared.runs.plan import QueryIntent

RULES_VERSION = "3"  # increase with every change of the decisions; a test checks this
MANY_CANDIDATES = 6  # candidate_count of an ambiguity, see docs/internals/delegation.md

_BY_INTENT: dict[QueryIntent, tuple[ProfileName, PositiveCode]] = {
    "doc_summary": ("doc_reader", "INTENT_DOC_SUMMARY"),
    "compare_docs": ("comparator", "INTENT_COMPARE_DOCS"),
    "evidence_trace": ("evidence_builder", "INTENT_EVIDENCE_TRACE"),
}


def decide(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, settings: Settings
) -> DelegationPolicyOutput:
    """Decide whether to delegate. Never raises. Equal arguments give equal decisions."""
    try:
        return _Policy(policy_input, facts, settings).decide()
    except Exception:  # noqa: BLE001  # an internal error must never prevent the answer
        return policy_failed()


def policy_failed() -> DelegationPolicyOutput:
    """Return the decision after an internal error."""
    return DelegationPolicyOutput(decision="no_delegate", reason_codes=("POLICY_EVAL_ERROR",))


def decision_event(request_id: str, decided: DelegationPolicyOutput, settings: Settings) -> DelegationStatus:
    """Return the event that reports a decision to the run's readers."""
    return DelegationStatus(
        request_id=request_id,
        decision=decided.decision,
        reason_codes=decided.reason_codes,
        selected_profile=decided.selected_profile,
        latency_budget_ms=decided.budget_allocation.max_child_latency_ms,
        token_budget=decided.budget_allocation.max_child_tokens,
        policy_version=policy_version(settings),
        reasons=tuple(REASON_WORDS[code] for code in decided.reason_codes),
    )


def policy_version(settings: Settings) -> str:
    """Return the version of the rules and limits, such as "1-3f2a9c10".

    Equal versions decide equal inputs equally.
    """
    groups = (settings.subagents, settings.thresholds, settings.budgets)
    limits = [group.model_dump_json() for group in groups] + [str(settings.answering.whole_documents_tokens)]
    digest = hashlib.sha256("\n".join(limits).encode()).hexdigest()
    return f"{RULES_VERSION}-{digest[:8]}"


def tokens_left(policy_input: DelegationPolicyInput) -> int:
    """Return the tokens left for the question, including the main agent's; negative if overdrawn."""
    budget = policy_input.runtime_budget
    return min(budget.remaining_tokens, budget.max_total_tokens)


def cost_left_usd(policy_input: DelegationPolicyInput, facts: SubagentFacts) -> float:
    """Return the US dollars left for the question's sub-agents."""
    return policy_input.runtime_budget.max_subagent_cost_usd - max(facts.spent_usd, 0.0)


@dataclass(frozen=True)
class _Selection:
    """A profile with its allowed tools, or the gate that rules out all profiles.

    Attributes:
        has_smaller: whether another profile could take over.
        notes: differences from the ideal profile or from its complete set of tools.
    """

    profile: Profile | None = None
    tools: tuple[SubagentTool, ...] = ()
    has_smaller: bool = False
    notes: tuple[NoteCode, ...] = ()
    gate: GateCode | None = None


class _Policy:
    """The rules, applied to one question."""

    def __init__(self, given: DelegationPolicyInput, facts: SubagentFacts, settings: Settings) -> None:
        self._given = given
        self._facts = facts
        self._limits = settings.subagents
        self._thresholds = settings.thresholds
        self._budgets = settings.budgets
        self._whole_tokens = settings.answering.whole_documents_tokens
        budget = given.runtime_budget
        self._latency_left_ms = min(budget.remaining_latency_ms, budget.max_total_latency_ms)
        self._tokens_left = tokens_left(given)
        self._cost_left_usd = cost_left_usd(given, facts)

    def decide(self) -> DelegationPolicyOutput:
        selection = self._selection()
        refusing: tuple[ReasonCode, ...] = (*self._gates(selection),) or (*self._negatives(),)
        if refusing:
            return self._refused(*refusing)
        positives = tuple(self._positives())
        if not positives or selection.profile is None:
            return self._refused("NO_TRIGGER")
        if self._given.system_health.subagent_queue_depth >= self._limits.max_queue_depth:
            return self._waiting(positives)
        return DelegationPolicyOutput(
            decision="delegate",
            reason_codes=(*positives, *selection.notes),
            binding=self._is_binding(),
            selected_profile=selection.profile.name,
            tool_scope=selection.tools,
            budget_allocation=self._budget(),
            expected_artifacts=selection.profile.artifacts,
            fallback_plan="reduced_profile" if selection.has_smaller else self._fallback(),
        )

    def _selection(self) -> _Selection:
        """Select the profile for the question, or the gate that rules out all profiles."""
        allowed, healthy = self._allowed_tools(), set(self._facts.healthy_tools)
        suited = list(with_smaller(self._best_suited(allowed & healthy)))
        installed = [profile for profile in suited if profile.name in self._facts.installed_profiles]
        permitted = [profile for profile in installed if allowed.issuperset(profile.required_tools)]
        working = [profile for profile in permitted if healthy.issuperset(profile.required_tools)]
        if not installed:
            return _Selection(gate="SUBAGENTS_UNAVAILABLE")
        if not permitted:
            return _Selection(gate="REQUIRED_TOOLS_RESTRICTED")
        if not working:
            return _Selection(gate="REQUIRED_TOOLS_UNHEALTHY")
        chosen = working[0]
        tools = tuple(tool for tool in chosen.tools if tool in allowed & healthy)
        notes: list[NoteCode] = ["PROFILE_REDUCED"] if chosen is not suited[0] else []
        if len(tools) < len(chosen.tools):
            notes.append("TOOLS_RESTRICTED")
        return _Selection(chosen, tools, has_smaller=len(working) > 1, notes=tuple(notes))

    def _best_suited(self, tools: set[SubagentTool]) -> ProfileName:
        if self._facts.requested_profile is not None:
            return self._facts.requested_profile
        scope = self._given.doc_scope
        if self._given.query_intent in _BY_INTENT:
            return _BY_INTENT[self._given.query_intent][0]
        if scope.multi_document:
            return "comparator"
        if scope.requires_full_document:
            return "doc_reader"
        # Web pages can't answer a question about specific documents.
        if self._is_unsure() and "web_search" in tools and not scope.target_doc_ids:
            return "web_verifier"
        return "evidence_builder"

    def _allowed_tools(self) -> set[SubagentTool]:
        risk = self._given.risk_flags
        allowed = {tool for profile in PROFILES.values() for tool in profile.tools}
        is_strict = risk.compliance_mode == "strict"
        if risk.restricted_tools_only or is_strict:
            allowed &= set(self._limits.restricted_tool_names)
        # A web search discloses the question to others.
        if not self._facts.web_allowed or risk.sensitive_domain or is_strict:
            allowed.discard("web_search")
        return allowed

    def _gates(self, selection: _Selection) -> Iterator[GateCode]:
        """Yield the hard gates that refuse delegation, in the order of docs/internals/delegation.md."""
        if not self._limits.enabled:
            yield "SUBAGENTS_DISABLED"
        if selection.gate == "SUBAGENTS_UNAVAILABLE":
            yield selection.gate
        if self._facts.depth >= self._limits.max_recursion_depth:
            yield "RECURSION_LIMIT_REACHED"
        if not self._facts.targets_readable:
            yield "TARGET_NOT_READABLE"
        yield from self._spent_budgets()
        if not self._facts.circuit_closed:
            yield "CIRCUIT_OPEN"
        if selection.gate in ("REQUIRED_TOOLS_RESTRICTED", "REQUIRED_TOOLS_UNHEALTHY"):
            yield selection.gate

    def _spent_budgets(self) -> Iterator[GateCode]:
        limits = self._budgets
        if self._latency_left_ms < limits.min_remaining_latency_to_delegate_ms:
            yield "LATENCY_BUDGET_EXHAUSTED"
        if self._tokens_left < max(limits.min_remaining_tokens_to_delegate, self._limits.reserve_tokens + 1):
            yield "TOKEN_BUDGET_EXHAUSTED"
        cost_left = self._cost_left_usd
        if cost_left <= 0 or cost_left < limits.min_remaining_cost_to_delegate_usd:
            yield "COST_BUDGET_EXHAUSTED"

    def _negatives(self) -> Iterator[NegativeCode]:
        stats, health, thresholds = self._given.retrieval_stats, self._given.system_health, self._thresholds
        is_clear = (
            stats.top_score >= thresholds.high_confidence_no_delegate_top_score
            and stats.score_spread >= thresholds.high_score_spread_clarity
        )
        if self._given.query_intent == "fact_lookup" and is_clear:
            yield "CONFIDENT_FACT_LOOKUP"
        fits_whole = 0 < self._given.doc_scope.estimated_tokens <= self._whole_tokens
        is_deep = self._given.conversation_state.user_requested_deep_mode
        if self._is_about_whole_documents() and fits_whole and not is_deep:
            yield "FITS_WHOLE"
        if health.degraded_mode:
            yield "DEGRADED_MODE"
        if health.active_subagents >= self._limits.max_active:
            yield "ACTIVE_LIMIT_REACHED"
        if self._facts.started >= self._limits.max_per_request:
            yield "REQUEST_LIMIT_REACHED"
        if self._latency_left_ms - self._limits.reserve_latency_ms < self._limits.child_min_latency_ms:
            yield "CHILD_LATENCY_TOO_SHORT"

    def _positives(self) -> Iterator[PositiveCode]:
        scope = self._given.doc_scope
        if self._given.query_intent in _BY_INTENT:
            yield _BY_INTENT[self._given.query_intent][1]
        if scope.requires_full_document:
            yield "FULL_DOCUMENT_REQUIRED"
        yield from self._poor_retrieval()
        if scope.multi_document:
            yield "MULTI_DOCUMENT"
        if self._given.conversation_state.user_requested_deep_mode:
            yield "DEEP_MODE_REQUESTED"
        if self._facts.requested_profile is not None:
            yield "MODEL_REQUESTED"

    def _poor_retrieval(self) -> Iterator[PositiveCode]:
        stats = self._given.retrieval_stats
        is_narrow = stats.score_spread < self._thresholds.low_score_spread_ambiguity
        if self._is_unsure():
            yield "LOW_RETRIEVAL_CONFIDENCE"
        if is_narrow and stats.candidate_count >= MANY_CANDIDATES:
            yield "AMBIGUOUS_RETRIEVAL"

    def _is_unsure(self) -> bool:
        least = self._thresholds.low_retrieval_confidence_top_score
        return self._given.retrieval_stats.top_score < least

    def _is_about_whole_documents(self) -> bool:
        is_summary_or_comparison = self._given.query_intent in ("doc_summary", "compare_docs")
        return is_summary_or_comparison or self._given.doc_scope.requires_full_document

    def _is_binding(self) -> bool:
        """Return whether sub-agents start at once. Otherwise the decision is only advice for the model."""
        is_asked_for = (
            self._given.conversation_state.user_requested_deep_mode
            or self._facts.requested_profile is not None
        )
        is_long = self._given.doc_scope.estimated_tokens > self._whole_tokens
        return is_asked_for or (self._is_about_whole_documents() and is_long)

    def _waiting(self, positives: tuple[PositiveCode, ...]) -> DelegationPolicyOutput:
        """Defer the decision if there is enough time to wait for the queue; otherwise refuse."""
        refused = self._refused("QUEUE_FULL", *positives)
        left_ms = self._latency_left_ms - self._limits.child_retry_backoff_ms
        may_wait = left_ms >= self._budgets.min_remaining_latency_to_delegate_ms
        if self._is_binding() and may_wait:
            return refused.model_copy(update={"decision": "defer"})
        return refused

    def _refused(self, *codes: ReasonCode) -> DelegationPolicyOutput:
        return DelegationPolicyOutput(
            decision="no_delegate", reason_codes=codes, fallback_plan=self._fallback()
        )

    def _budget(self) -> BudgetAllocation:
        """Return the budget of one sub-agent, without the main agent's reserve for the answer."""
        limits = self._limits
        return BudgetAllocation(
            max_child_latency_ms=min(
                limits.child_timeout_ms, self._latency_left_ms - limits.reserve_latency_ms
            ),
            max_child_tokens=min(self._budgets.max_child_tokens, self._tokens_left - limits.reserve_tokens),
            max_child_cost_usd=min(self._budgets.max_child_cost_usd, self._cost_left_usd),
            max_child_turns=limits.child_max_turns,
        )

    def _fallback(self) -> FallbackPlan:
        """Return how the question is handled if no sub-agent returns a result."""
        has_evidence = self._given.retrieval_stats.candidate_count > 0
        return "main_agent_synthesis" if has_evidence else "abstain_with_guidance"
