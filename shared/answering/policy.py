"""The delegation policy. It decides whether a question is delegated, to which sub-agent profile, and with
what budget.

`RULES` is the policy: each rule has a code, a kind, words for users and a predicate over the `Situation`.
Hard gates are asked first, then negative triggers, then positive ones. The first kind that refuses ends the
evaluation, and only its reasons are reported, but all of them. Any error results in `no_delegate`: the answer
is then written without sub-agents. docs/internals/delegation.md shows the rules.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from shared.answering.policy_models import DelegationPolicyOutput, FallbackPlan
from shared.answering.situation import Situation
from shared.platform.settings import Settings
from shared.runs.events import DelegationStatus
from shared.runs.models import ReasonCode

# Increase this whenever a change alters decisions; a test checks it.
RULES_VERSION = "3"
MANY_CANDIDATES = 6  # minimum number of candidates for an ambiguity, see docs/internals/delegation.md

RuleKind = Literal["gate", "negative", "positive", "note"]


@dataclass(frozen=True)
class Rule:
    """A rule of the policy: the condition under which it applies, and what follows for the delegation.

    Attributes:
        kind: a gate or a negative trigger refuses, a positive trigger delegates, a note only explains.
        words: explanation for users.
        when: the condition in words, for the documentation.
        applies: the condition.
    """

    code: ReasonCode
    kind: RuleKind
    words: str
    when: str
    applies: Callable[[Situation], bool]


def _is_over_token_budget(now: Situation) -> bool:
    return now.budget.tokens_left < now.least_child_tokens


def _is_over_cost_budget(now: Situation) -> bool:
    left = now.budget.cost_left_usd
    return left <= 0 or left < now.settings.budgets.min_remaining_cost_to_delegate_usd


def _is_clear_fact(now: Situation) -> bool:
    stats, thresholds = now.policy_input.retrieval_stats, now.settings.thresholds
    return (
        now.policy_input.query_intent == "fact_lookup"
        and stats.top_score >= thresholds.high_confidence_no_delegate_top_score
        and stats.score_spread >= thresholds.high_score_spread_clarity
    )


def _is_ambiguous(now: Situation) -> bool:
    stats = now.policy_input.retrieval_stats
    is_narrow = stats.score_spread < now.settings.thresholds.low_score_spread_ambiguity
    return is_narrow and stats.candidate_count >= MANY_CANDIDATES


RULES: tuple[Rule, ...] = (
    Rule(
        "SUBAGENTS_DISABLED",
        "gate",
        "Deeper work by sub-agents is switched off here.",
        "`SUBAGENTS_ENABLED` is false",
        lambda now: not now.settings.subagents.enabled,
    ),
    Rule(
        "SUBAGENTS_UNAVAILABLE",
        "gate",
        "No sub-agent can do this.",
        "neither the profile nor a smaller one is installed",
        lambda now: not now.installed,
    ),
    Rule(
        "RECURSION_LIMIT_REACHED",
        "gate",
        "A sub-agent cannot start another one.",
        "the asker is at depth `SUBAGENTS_MAX_RECURSION_DEPTH`",
        lambda now: now.depth >= now.settings.subagents.max_recursion_depth,
    ),
    Rule(
        "TARGET_NOT_READABLE",
        "gate",
        "Not every document that the question is about can be read.",
        "the asker may not read a target document, or its id doesn't exist",
        lambda now: not now.targets_readable,
    ),
    Rule(
        "LATENCY_BUDGET_EXHAUSTED",
        "gate",
        "Too little time is left for deeper work.",
        "less than `MIN_REMAINING_LATENCY_TO_DELEGATE_MS` remains",
        lambda now: now.latency_left_ms < now.settings.budgets.min_remaining_latency_to_delegate_ms,
    ),
    Rule(
        "TOKEN_BUDGET_EXHAUSTED",
        "gate",
        "Too little of the token budget is left.",
        "less than `MIN_REMAINING_TOKENS_TO_DELEGATE` remains, or nothing beyond the reserve",
        _is_over_token_budget,
    ),
    Rule(
        "COST_BUDGET_EXHAUSTED",
        "gate",
        "Too little of the cost budget is left.",
        "less than `MIN_REMAINING_COST_TO_DELEGATE_USD` remains, or nothing",
        _is_over_cost_budget,
    ),
    Rule(
        "CIRCUIT_OPEN",
        "gate",
        "Sub-agents failed too often recently and are paused.",
        "sub-agents failed too often",
        lambda now: not now.circuit_closed,
    ),
    Rule(
        "REQUIRED_TOOLS_RESTRICTED",
        "gate",
        "The tools that this needs are not allowed here.",
        "a tool that the profile requires is not allowed",
        lambda now: bool(now.installed) and not now.permitted,
    ),
    Rule(
        "REQUIRED_TOOLS_UNHEALTHY",
        "gate",
        "The tools that this needs do not work at the moment.",
        "such a tool doesn't work",
        lambda now: bool(now.permitted) and not now.working,
    ),
    Rule(
        "CONFIDENT_FACT_LOOKUP",
        "negative",
        "The passage with the answer was clearly found.",
        "intent `fact_lookup`, `top_score` >= `HIGH_CONFIDENCE_NO_DELEGATE_TOP_SCORE` and `score_spread` >= "
        "`HIGH_SCORE_SPREAD_CLARITY`",
        _is_clear_fact,
    ),
    Rule(
        "FITS_WHOLE",
        "negative",
        "The documents are short enough to be read whole.",
        "intent `doc_summary` or `compare_docs`, or `requires_full_document`, with `estimated_tokens` of at "
        "most `WHOLE_DOCUMENTS_TOKENS`, unless deep mode was requested",
        lambda now: now.is_about_whole_documents and now.fits_whole and not now.is_deep,
    ),
    Rule(
        "DEGRADED_MODE",
        "negative",
        "Sub-agents are switched off for the moment.",
        "`SUBAGENTS_DEGRADED_MODE`",
        lambda now: now.policy_input.system_health.degraded_mode,
    ),
    Rule(
        "ACTIVE_LIMIT_REACHED",
        "negative",
        "The maximum number of sub-agents is already running.",
        "`SUBAGENTS_MAX_ACTIVE` are running or about to, over all questions (if those about to run fill the "
        "queue: `QUEUE_FULL`)",
        lambda now: now.policy_input.system_health.active_subagents >= now.settings.subagents.max_active,
    ),
    Rule(
        "REQUEST_LIMIT_REACHED",
        "negative",
        "This question has used all its sub-agents.",
        "`SUBAGENTS_MAX_PER_REQUEST` were started for this question",
        lambda now: now.started >= now.settings.subagents.max_per_request,
    ),
    Rule(
        "CHILD_LATENCY_TOO_SHORT",
        "negative",
        "Too little time is left for a sub-agent.",
        "less than `SUBAGENTS_CHILD_MIN_LATENCY_MS` remains after the reserve",
        lambda now: now.child_latency_left_ms < now.settings.subagents.child_min_latency_ms,
    ),
    Rule(
        "INTENT_DOC_SUMMARY",
        "positive",
        "A summary of a document was asked for.",
        "intent `doc_summary`",
        lambda now: now.policy_input.query_intent == "doc_summary",
    ),
    Rule(
        "INTENT_COMPARE_DOCS",
        "positive",
        "A comparison of documents was asked for.",
        "intent `compare_docs`",
        lambda now: now.policy_input.query_intent == "compare_docs",
    ),
    Rule(
        "INTENT_EVIDENCE_TRACE",
        "positive",
        "Proof of statements was asked for.",
        "intent `evidence_trace`",
        lambda now: now.policy_input.query_intent == "evidence_trace",
    ),
    Rule(
        "FULL_DOCUMENT_REQUIRED",
        "positive",
        "A document has to be read whole.",
        "`requires_full_document`",
        lambda now: now.policy_input.doc_scope.requires_full_document,
    ),
    Rule(
        "LOW_RETRIEVAL_CONFIDENCE",
        "positive",
        "What was found fits the question poorly.",
        "`top_score` < `LOW_RETRIEVAL_CONFIDENCE_TOP_SCORE`",
        lambda now: now.is_unsure,
    ),
    Rule(
        "AMBIGUOUS_RETRIEVAL",
        "positive",
        "Many passages fit about equally well.",
        f"`score_spread` < `LOW_SCORE_SPREAD_AMBIGUITY` with {MANY_CANDIDATES} candidates or more",
        _is_ambiguous,
    ),
    Rule(
        "MULTI_DOCUMENT",
        "positive",
        "The question is about several documents.",
        "`multi_document`",
        lambda now: now.policy_input.doc_scope.multi_document,
    ),
    Rule(
        "DEEP_MODE_REQUESTED",
        "positive",
        "Deeper work was asked for.",
        "`user_requested_deep_mode`",
        lambda now: now.is_deep,
    ),
    Rule(
        "MODEL_REQUESTED",
        "positive",
        "The assistant asked for help with a part of the question.",
        "the model called `delegate`",
        lambda now: now.requested_profile is not None,
    ),
    Rule(
        "NO_TRIGGER",
        "note",
        "Nothing suggests deeper work.",
        "no rule above applies; `no_delegate`",
        lambda now: not reason_codes_of("positive", now),
    ),
    Rule(
        "QUEUE_FULL",
        "note",
        "Too many sub-agents are waiting for their turn.",
        "`SUBAGENTS_MAX_QUEUE_DEPTH` sub-agents wait; `defer`, or `no_delegate` if there is no time to wait",
        lambda now: now.is_queue_full,
    ),
    Rule(
        "PROFILE_REDUCED",
        "note",
        "A simpler sub-agent takes over, because the best one is not available.",
        "`delegate` to a smaller profile",
        lambda now: now.working[0].name != now.ideal_profile,
    ),
    Rule(
        "TOOLS_RESTRICTED",
        "note",
        "The sub-agent works with fewer tools than usual.",
        "`delegate` without some of the profile's tools",
        lambda now: len(now.tool_scope) < len(now.working[0].tools),
    ),
    Rule(
        "POLICY_EVAL_ERROR",
        "note",
        "It could not be decided whether deeper work helps, so the answer does without it.",
        "a rule or a look-up for it failed; `no_delegate`",
        lambda _: False,
    ),
)
"""All rules in the order in which their codes are reported."""

REASON_WORDS: dict[ReasonCode, str] = {rule.code: rule.words for rule in RULES}
"""Explanation of each reason for users."""


def reason_codes_of(kind: RuleKind, now: Situation) -> tuple[ReasonCode, ...]:
    """Return the codes of all rules of one kind whose condition is met, in the order of `RULES`."""
    return tuple(rule.code for rule in RULES if rule.kind == kind and rule.applies(now))


def decide(now: Situation) -> DelegationPolicyOutput:
    """Decide whether to delegate. Equal situations give equal decisions, and an internal error gives
    `no_delegate`.
    """
    try:
        return _decide(now)
    except Exception:  # noqa: BLE001  # an internal error must never prevent the answer
        return decision_after_error()


def decision_after_error() -> DelegationPolicyOutput:
    """Return the decision after an internal error: `no_delegate` with the reason POLICY_EVAL_ERROR."""
    return DelegationPolicyOutput(decision="no_delegate", reason_codes=("POLICY_EVAL_ERROR",))


def decision_event(request_id: str, decided: DelegationPolicyOutput, settings: Settings) -> DelegationStatus:
    """Return the event that reports a delegation decision to clients of the run."""
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
    """Return an identifier of the current rules and settings, such as "3-3f2a9c10".

    Equal versions decide equal inputs equally.
    """
    groups = (settings.subagents, settings.thresholds, settings.budgets)
    limits = [group.model_dump_json() for group in groups] + [str(settings.answering.whole_documents_tokens)]
    digest = hashlib.sha256("\n".join(limits).encode()).hexdigest()
    return f"{RULES_VERSION}-{digest[:8]}"


def _decide(now: Situation) -> DelegationPolicyOutput:
    if refusing := reason_codes_of("gate", now) or reason_codes_of("negative", now):
        return _no_delegate(now, *refusing)
    positives = reason_codes_of("positive", now)
    if not positives:
        return _no_delegate(now, "NO_TRIGGER")
    if now.is_queue_full:
        return _decide_full_queue(now, *positives)
    profile = now.working[0]
    return DelegationPolicyOutput(
        decision="delegate",
        reason_codes=(*positives, *reason_codes_of("note", now)),
        binding=now.is_binding,
        selected_profile=profile.name,
        tool_scope=now.tool_scope,
        budget_allocation=now.child_budget(),
        expected_artifacts=profile.artifacts,
        fallback_plan="reduced_profile" if len(now.working) > 1 else _fallback(now),
    )


def _decide_full_queue(now: Situation, *positives: ReasonCode) -> DelegationPolicyOutput:
    """Return the decision if the queue is full: `defer` if there is time to wait until it has room, else
    `no_delegate`.
    """
    refused = _no_delegate(now, "QUEUE_FULL", *positives)
    left_ms = now.latency_left_ms - now.settings.subagents.child_retry_backoff_ms
    may_wait = left_ms >= now.settings.budgets.min_remaining_latency_to_delegate_ms
    return refused.model_copy(update={"decision": "defer"}) if now.is_binding and may_wait else refused


def _no_delegate(now: Situation, *reason_codes: ReasonCode) -> DelegationPolicyOutput:
    return DelegationPolicyOutput(
        decision="no_delegate", reason_codes=reason_codes, fallback_plan=_fallback(now)
    )


def _fallback(now: Situation) -> FallbackPlan:
    """Return how the question is answered if no sub-agent returns a result."""
    has_evidence = now.policy_input.retrieval_stats.candidate_count > 0
    return "main_agent_synthesis" if has_evidence else "abstain_with_guidance"
