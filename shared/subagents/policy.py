"""The delegation policy: does a question get a sub-agent, which, and within which budget? Pure.

Hard gates -> negative triggers -> positive triggers -> profile by intent -> budget from what remains ->
output with reason codes (contracts.md, section 4). A stage that says no ends it, and all of its reasons are
told, none of later stages. Any error is a `no_delegate`: the answer is then written as without sub-agents.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

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
from shared.subagents.policy_models import (
    BudgetAllocation,
    DelegationEvent,
    DelegationPolicyInput,
    DelegationPolicyOutput,
    DelegationRules,
    FallbackPlan,
    RetrievalStats,
    SubagentFacts,
)
from shared.subagents.profiles import PROFILES, Profile

_BY_INTENT: dict[QueryIntent, ProfileName] = {
    "doc_summary": "doc_reader",
    "compare_docs": "comparator",
    "evidence_trace": "evidence_builder",
}


@dataclass(frozen=True)
class Selection:
    """A profile with the tools that it gets, or the gate that keeps all of them out.

    Attributes:
        has_smaller: another profile could take over from it.
        notes: that it is not the profile, or not all the tools, that the question would have had.
    """

    profile: Profile | None
    tools: tuple[SubagentTool, ...] = ()
    has_smaller: bool = False
    notes: tuple[NoteCode, ...] = ()
    gate: GateCode | None = None


def select_profile(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> Selection:
    """The profile for a question, or why there is none."""
    allowed = _allowed_tools(policy_input, facts, rules)
    suited = list(_from_best_suited(_best_suited(policy_input, facts, rules, allowed)))
    installed = [profile for profile in suited if profile.name in facts.installed_profiles]
    permitted = [profile for profile in installed if allowed.issuperset(profile.required_tools)]
    working = [
        profile for profile in permitted if set(facts.healthy_tools).issuperset(profile.required_tools)
    ]
    if not installed:
        return Selection(None, gate="SUBAGENTS_UNAVAILABLE")
    if not permitted:
        return Selection(None, gate="REQUIRED_TOOLS_RESTRICTED")
    if not working:
        return Selection(None, gate="REQUIRED_TOOLS_UNHEALTHY")
    chosen = working[0]
    notes: list[NoteCode] = []
    if chosen is not suited[0]:
        notes.append("PROFILE_REDUCED")
    tools = tuple(tool for tool in chosen.tools if tool in allowed and tool in facts.healthy_tools)
    if len(tools) < len(chosen.tools):
        notes.append("TOOLS_RESTRICTED")
    return Selection(chosen, tools, has_smaller=len(working) > 1, notes=tuple(notes))


def _best_suited(
    policy_input: DelegationPolicyInput,
    facts: SubagentFacts,
    rules: DelegationRules,
    allowed: frozenset[SubagentTool],
) -> ProfileName:
    scope = policy_input.doc_scope
    by_intent = _BY_INTENT.get(policy_input.query_intent)
    if by_intent is not None:
        return by_intent
    if scope.multi_document:
        return "comparator"
    if scope.requires_full_document:
        return "doc_reader"
    # A question about given documents is not answered by the web.
    is_insufficient = policy_input.retrieval_stats.top_score < rules.low_top_score
    has_web = "web_search" in allowed and "web_search" in facts.healthy_tools
    if is_insufficient and has_web and not scope.target_doc_ids:
        return "web_verifier"
    return "evidence_builder"


def _from_best_suited(name: ProfileName | None) -> Iterator[Profile]:
    while name is not None:
        yield PROFILES[name]
        name = PROFILES[name].smaller


def _allowed_tools(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> frozenset[SubagentTool]:
    risk = policy_input.risk_flags
    allowed = {tool for profile in PROFILES.values() for tool in profile.tools}
    is_strict = risk.compliance_mode == "strict"
    if risk.restricted_tools_only or is_strict:
        allowed &= set(rules.restricted_tools)
    # A search on the web tells others what is asked here.
    if not facts.web_allowed or risk.sensitive_domain or is_strict:
        allowed.discard("web_search")
    return frozenset(allowed)


RULES_VERSION = "1"  # raise it with any change of what is decided; a test knows when that is due
MANY_CANDIDATES = 6  # contracts.md, section 4: candidate_count of an ambiguity

_INTENT_CODES: dict[QueryIntent, PositiveCode] = {
    "doc_summary": "INTENT_DOC_SUMMARY",
    "compare_docs": "INTENT_COMPARE_DOCS",
    "evidence_trace": "INTENT_EVIDENCE_TRACE",
}


def decide(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> DelegationPolicyOutput:
    """Whether to delegate. Never raises; equal arguments give equal decisions."""
    try:
        return _decide(policy_input, facts, rules)
    except Exception:  # noqa: BLE001  # the contract: any error inside must not cost the answer
        return policy_failed()


def policy_failed() -> DelegationPolicyOutput:
    """The decision when there could be none."""
    return DelegationPolicyOutput(decision="no_delegate", reason_codes=("POLICY_EVAL_ERROR",))


def policy_version(rules: DelegationRules) -> str:
    """Names the rules and their thresholds, such as "1-3f2a9c10": where it is equal, equal input is decided
    equally."""
    digest = hashlib.sha256(rules.model_dump_json().encode()).hexdigest()
    return f"{RULES_VERSION}-{digest[:8]}"


def decision_event(
    request_id: str, decided: DelegationPolicyOutput, rules: DelegationRules
) -> DelegationEvent:
    """The event that tells of a decision."""
    return DelegationEvent(
        request_id=request_id,
        decision=decided.decision,
        reason_codes=decided.reason_codes,
        selected_profile=decided.selected_profile,
        latency_budget_ms=decided.budget_allocation.max_child_latency_ms,
        token_budget=decided.budget_allocation.max_child_tokens,
        policy_version=policy_version(rules),
    )


def _decide(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> DelegationPolicyOutput:
    selection = select_profile(policy_input, facts, rules)
    fallback = _fallback(policy_input)
    if gates := tuple(_failed_gates(policy_input, facts, rules, selection)):
        return _refused(gates, fallback)
    if negatives := tuple(_negatives(policy_input, facts, rules)):
        return _refused(negatives, fallback)
    positives = tuple(_positives(policy_input, rules))
    if not positives or selection.profile is None:
        return _refused(("NO_TRIGGER",), fallback)
    if policy_input.system_health.subagent_queue_depth >= rules.max_queue_depth:
        return _waiting(policy_input, rules, _refused(("QUEUE_FULL", *positives), fallback))
    return DelegationPolicyOutput(
        decision="delegate",
        reason_codes=(*positives, *selection.notes),
        selected_profile=selection.profile.name,
        tool_scope=selection.tools,
        budget_allocation=_budget(policy_input, facts, rules),
        expected_artifacts=selection.profile.artifacts,
        fallback_plan="reduced_profile" if selection.has_smaller else fallback,
    )


def _waiting(
    policy_input: DelegationPolicyInput, rules: DelegationRules, refused: DelegationPolicyOutput
) -> DelegationPolicyOutput:
    """A queue empties by itself: `defer`, if there is time enough to wait and delegate then."""
    left_ms = _latency_left_ms(policy_input) - rules.defer_wait_ms
    may_wait = left_ms >= rules.min_remaining_latency_ms
    return refused.model_copy(update={"decision": "defer"}) if may_wait else refused


def _refused(codes: tuple[ReasonCode, ...], fallback: FallbackPlan) -> DelegationPolicyOutput:
    return DelegationPolicyOutput(decision="no_delegate", reason_codes=codes, fallback_plan=fallback)


def _failed_gates(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules, selection: Selection
) -> Iterator[GateCode]:
    """The hard gates that do not hold, in the order of docs/delegation.md."""
    if not rules.enabled:
        yield "SUBAGENTS_DISABLED"
    if selection.gate == "SUBAGENTS_UNAVAILABLE":
        yield selection.gate
    if facts.depth >= rules.max_recursion_depth:
        yield "RECURSION_LIMIT_REACHED"
    if not facts.targets_readable:
        yield "TARGET_NOT_READABLE"
    yield from _spent_budgets(policy_input, facts, rules)
    if not facts.circuit_closed:
        yield "CIRCUIT_OPEN"
    if selection.gate in ("REQUIRED_TOOLS_RESTRICTED", "REQUIRED_TOOLS_UNHEALTHY"):
        yield selection.gate


def _spent_budgets(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> Iterator[GateCode]:
    if _latency_left_ms(policy_input) < rules.min_remaining_latency_ms:
        yield "LATENCY_BUDGET_EXHAUSTED"
    if tokens_left(policy_input) < max(rules.min_remaining_tokens, rules.reserve_tokens + 1):
        yield "TOKEN_BUDGET_EXHAUSTED"
    cost_left = cost_left_usd(policy_input, facts)
    if cost_left <= 0 or cost_left < rules.min_remaining_cost_usd:
        yield "COST_BUDGET_EXHAUSTED"


def _negatives(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> Iterator[NegativeCode]:
    stats, health = policy_input.retrieval_stats, policy_input.system_health
    is_clear = stats.top_score >= rules.high_top_score and stats.score_spread >= rules.high_score_spread
    if policy_input.query_intent == "fact_lookup" and is_clear:
        yield "CONFIDENT_FACT_LOOKUP"
    if health.degraded_mode:
        yield "DEGRADED_MODE"
    if health.active_subagents >= rules.max_active:
        yield "ACTIVE_LIMIT_REACHED"
    if facts.started >= rules.max_per_request:
        yield "REQUEST_LIMIT_REACHED"
    if _latency_left_ms(policy_input) - rules.reserve_latency_ms < max(rules.child_min_latency_ms, 1):
        yield "CHILD_LATENCY_TOO_SHORT"


def _positives(policy_input: DelegationPolicyInput, rules: DelegationRules) -> Iterator[PositiveCode]:
    if policy_input.query_intent in _INTENT_CODES:
        yield _INTENT_CODES[policy_input.query_intent]
    if policy_input.doc_scope.requires_full_document:
        yield "FULL_DOCUMENT_REQUIRED"
    yield from _unsure_retrieval(policy_input.retrieval_stats, rules)
    if policy_input.doc_scope.multi_document:
        yield "MULTI_DOCUMENT"
    if policy_input.conversation_state.user_requested_deep_mode:
        yield "DEEP_MODE_REQUESTED"
    if policy_input.conversation_state.prior_failures >= 1:
        yield "PRIOR_FAILURES"


def _unsure_retrieval(stats: RetrievalStats, rules: DelegationRules) -> Iterator[PositiveCode]:
    if stats.top_score < rules.low_top_score:
        yield "LOW_RETRIEVAL_CONFIDENCE"
    if stats.score_spread < rules.low_score_spread and stats.candidate_count >= MANY_CANDIDATES:
        yield "AMBIGUOUS_RETRIEVAL"


def _budget(
    policy_input: DelegationPolicyInput, facts: SubagentFacts, rules: DelegationRules
) -> BudgetAllocation:
    """What one sub-agent may use, after what the main agent needs for the answer is set aside."""
    return BudgetAllocation(
        max_child_latency_ms=min(
            rules.child_timeout_ms, _latency_left_ms(policy_input) - rules.reserve_latency_ms
        ),
        max_child_tokens=min(rules.max_child_tokens, tokens_left(policy_input) - rules.reserve_tokens),
        max_child_cost_usd=min(rules.max_child_cost_usd, cost_left_usd(policy_input, facts)),
        max_child_turns=rules.child_max_turns,
    )


def _latency_left_ms(policy_input: DelegationPolicyInput) -> int:
    budget = policy_input.runtime_budget
    return min(budget.remaining_latency_ms, budget.max_total_latency_ms)


def tokens_left(policy_input: DelegationPolicyInput) -> int:
    """Tokens that the question may still use, the main agent's among them; below 0 is overdrawn."""
    budget = policy_input.runtime_budget
    return min(budget.remaining_tokens, budget.max_total_tokens)


def cost_left_usd(policy_input: DelegationPolicyInput, facts: SubagentFacts) -> float:
    """US dollars that sub-agents of the question may still cost."""
    return policy_input.runtime_budget.max_subagent_cost_usd - max(facts.spent_usd, 0.0)


def _fallback(policy_input: DelegationPolicyInput) -> FallbackPlan:
    """What becomes of the question when no sub-agent brings anything."""
    has_evidence = policy_input.retrieval_stats.candidate_count > 0
    return "main_agent_synthesis" if has_evidence else "abstain_with_guidance"
