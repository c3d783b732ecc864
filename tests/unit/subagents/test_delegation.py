"""Tests for the delegation policy: each gate and trigger at its threshold, and in combination."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from shared.answering.policy import REASON_WORDS, RULES, decide
from shared.answering.policy_models import BudgetAllocation, DelegationPolicyOutput
from shared.runs.models import GateCode, NegativeCode, NoteCode, PositiveCode, ProfileName
from tests.unit.subagents.delegation_cases import INPUT, SITUATION, decided

NOTHING = BudgetAllocation()
POSITIVES: dict[PositiveCode, dict[str, Any]] = {
    "INTENT_DOC_SUMMARY": {"query_intent": "doc_summary"},
    "INTENT_COMPARE_DOCS": {"query_intent": "compare_docs"},
    "INTENT_EVIDENCE_TRACE": {"query_intent": "evidence_trace"},
    "FULL_DOCUMENT_REQUIRED": {"requires_full_document": True, "estimated_tokens": 10_001},
    "LOW_RETRIEVAL_CONFIDENCE": {"top_score": 0.6199},
    "AMBIGUOUS_RETRIEVAL": {"score_spread": 0.0799, "candidate_count": 6},
    "MULTI_DOCUMENT": {"multi_document": True},
    "DEEP_MODE_REQUESTED": {"user_requested_deep_mode": True},
    "MODEL_REQUESTED": {"requested_profile": "evidence_builder"},
}
NEGATIVES: dict[NegativeCode, dict[str, Any]] = {
    "CONFIDENT_FACT_LOOKUP": {"top_score": 0.78, "score_spread": 0.15},
    "FITS_WHOLE": {"requires_full_document": True, "estimated_tokens": 10_000},
    "DEGRADED_MODE": {"degraded_mode": True},
    "ACTIVE_LIMIT_REACHED": {"active_subagents": 20},
    "REQUEST_LIMIT_REACHED": {"started": 2},
    "CHILD_LATENCY_TOO_SHORT": {"remaining_latency_ms": 12_000, "child_min_latency_ms": 7_001},
}
GATES: dict[GateCode, dict[str, Any]] = {
    "SUBAGENTS_DISABLED": {"enabled": False},
    "SUBAGENTS_UNAVAILABLE": {"installed_profiles": ()},
    "RECURSION_LIMIT_REACHED": {"depth": 1},
    "TARGET_NOT_READABLE": {"targets_readable": False},
    "LATENCY_BUDGET_EXHAUSTED": {"remaining_latency_ms": 11_999},
    "TOKEN_BUDGET_EXHAUSTED": {"remaining_tokens": 7_999},
    "COST_BUDGET_EXHAUSTED": {"spent_usd": 0.0751},
    "CIRCUIT_OPEN": {"circuit_closed": False},
    "REQUIRED_TOOLS_RESTRICTED": {"restricted_tools_only": True, "restricted_tools": "query_metadata"},
    "REQUIRED_TOOLS_UNHEALTHY": {"healthy_tools": ("query_metadata", "web_search")},
}
WANTED = {"multi_document": True}  # a positive trigger that no negative trigger overrides
DEEP = {"query_intent": "fact_lookup", "user_requested_deep_mode": True}


def test_every_trigger_has_a_case() -> None:
    assert POSITIVES.keys() == set(get_args(PositiveCode))
    assert NEGATIVES.keys() == set(get_args(NegativeCode))
    assert GATES.keys() == set(get_args(GateCode))


def test_every_reason_has_words_for_people() -> None:
    kinds = {"gate": GateCode, "negative": NegativeCode, "positive": PositiveCode, "note": NoteCode}
    assert [(rule.kind, rule.code) for rule in RULES] == [
        (kind, code) for kind, codes in kinds.items() for code in get_args(codes)
    ]
    assert len(set(REASON_WORDS.values())) == len(REASON_WORDS)
    assert all(text.endswith(".") and "_" not in text for text in REASON_WORDS.values())


def test_without_a_trigger_nothing_is_delegated() -> None:
    output = decided()
    assert (output.decision, output.reason_codes) == ("no_delegate", ("NO_TRIGGER",))
    assert (output.selected_profile, output.tool_scope, output.budget_allocation) == (None, (), NOTHING)
    assert output.fallback_plan == "main_agent_synthesis"


@pytest.mark.parametrize("code", POSITIVES)
def test_each_positive_trigger_delegates_by_itself(code: PositiveCode) -> None:
    output = decided(**POSITIVES[code])
    assert (output.decision, output.reason_codes) == ("delegate", (code,))


@pytest.mark.parametrize(
    "changes",
    [
        {"top_score": 0.62},
        {"score_spread": 0.08, "candidate_count": 6},
        {"score_spread": 0.0799, "candidate_count": 5},
        {"query_intent": "exploratory"},
        {"query_intent": "procedural"},
        {"top_score": 0.95, "query_intent": "procedural"},
    ],
)
def test_at_its_threshold_a_positive_trigger_does_not_fire(changes: dict[str, Any]) -> None:
    assert decided(**changes).reason_codes == ("NO_TRIGGER",)


@pytest.mark.parametrize("code", NEGATIVES)
def test_each_negative_trigger_outweighs_positive_ones(code: NegativeCode) -> None:
    assert decided(**WANTED).decision == "delegate"
    output = decided(**WANTED, **NEGATIVES[code])
    assert (output.decision, output.reason_codes) == ("no_delegate", (code,))
    assert (output.selected_profile, output.tool_scope, output.budget_allocation) == (None, (), NOTHING)


@pytest.mark.parametrize(
    "changes",
    [
        {"top_score": 0.7799, "score_spread": 0.15},
        {"top_score": 0.78, "score_spread": 0.1499},
        {"top_score": 0.9, "score_spread": 0.3, "query_intent": "procedural"},
        {"active_subagents": 19},
        {"started": 1},
        {"remaining_latency_ms": 12_000, "child_min_latency_ms": 7_000},
    ],
)
def test_short_of_its_threshold_a_negative_trigger_does_not_fire(changes: dict[str, Any]) -> None:
    assert decided(**{**WANTED, **changes}).decision == "delegate"


@pytest.mark.parametrize("code", GATES)
def test_each_hard_gate_outweighs_everything(code: GateCode) -> None:
    output = decided(**{**WANTED, "degraded_mode": True, "subagent_queue_depth": 99, **GATES[code]})
    assert (output.decision, output.reason_codes) == ("no_delegate", (code,))
    assert (output.selected_profile, output.tool_scope, output.budget_allocation) == (None, (), NOTHING)


@pytest.mark.parametrize(
    "changes",
    [
        {"remaining_latency_ms": 12_000},
        {"remaining_tokens": 8_000},
        {"spent_usd": 0.0, "min_remaining_cost_to_delegate_usd": 0.08},
        {"depth": 1, "max_recursion_depth": 2},
    ],
)
def test_a_gate_at_its_minimum_is_open(changes: dict[str, Any]) -> None:
    assert decided(**WANTED, **changes).decision == "delegate"


def test_all_gates_that_are_shut_are_told_and_nothing_else() -> None:
    everything: dict[str, Any] = {}
    for changes in (*POSITIVES.values(), *NEGATIVES.values(), *GATES.values()):
        everything.update(changes)
    codes = decided(**everything).reason_codes
    # Without an installed profile, no tools can be missing.
    assert codes == tuple(code for code in get_args(GateCode) if not code.startswith("REQUIRED_TOOLS"))


def test_all_negative_triggers_are_told_and_no_positive_one() -> None:
    everything: dict[str, Any] = {}
    for changes in (*POSITIVES.values(), *NEGATIVES.values()):
        everything.update(changes)
    shallow = {"query_intent": "fact_lookup", "user_requested_deep_mode": False}
    assert decided(**{**everything, **shallow}).reason_codes == get_args(NegativeCode)


def test_all_positive_triggers_are_told() -> None:
    everything: dict[str, Any] = {}
    for changes in POSITIVES.values():
        everything.update(changes)
    codes = decided(**{**everything, "query_intent": "evidence_trace"}).reason_codes
    others = {"INTENT_DOC_SUMMARY", "INTENT_COMPARE_DOCS"}  # a question has one intent
    assert codes == tuple(code for code in get_args(PositiveCode) if code not in others)


@pytest.mark.parametrize(("spent", "left"), [(0.08, 0.0), (0.09, -0.01)])
def test_without_money_left_the_gate_is_shut_even_if_no_minimum_is_set(spent: float, left: float) -> None:
    output = decided(**WANTED, spent_usd=spent, min_remaining_cost_to_delegate_usd=min(left, 0.0))
    assert output.reason_codes == ("COST_BUDGET_EXHAUSTED",)


# Waiting.


def test_a_full_queue_defers_what_would_be_delegated() -> None:
    output = decided(**DEEP, subagent_queue_depth=20)
    assert (output.decision, output.reason_codes) == ("defer", ("QUEUE_FULL", "DEEP_MODE_REQUESTED"))
    assert (output.selected_profile, output.tool_scope, output.budget_allocation) == (None, (), NOTHING)
    assert decided(**WANTED, subagent_queue_depth=19).decision == "delegate"


def test_advice_waits_for_nobody() -> None:
    output = decided(**WANTED, subagent_queue_depth=20)
    assert (output.decision, output.reason_codes) == ("no_delegate", ("QUEUE_FULL", "MULTI_DOCUMENT"))


def test_what_would_not_be_delegated_does_not_wait() -> None:
    assert decided(subagent_queue_depth=20).reason_codes == ("NO_TRIGGER",)
    assert decided(**WANTED, subagent_queue_depth=20, degraded_mode=True).reason_codes == ("DEGRADED_MODE",)


@pytest.mark.parametrize(("left_ms", "decision"), [(12_750, "defer"), (12_749, "no_delegate")])
def test_deferring_ends_when_time_does(left_ms: int, decision: str) -> None:
    output = decided(**DEEP, subagent_queue_depth=20, remaining_latency_ms=left_ms)
    assert (output.decision, output.reason_codes) == (decision, ("QUEUE_FULL", "DEEP_MODE_REQUESTED"))


@pytest.mark.parametrize("intent", ["doc_summary", "compare_docs"])
def test_only_documents_that_do_not_fit_and_deep_mode_bind(intent: str) -> None:
    too_long = decided(query_intent=intent, estimated_tokens=10_001)
    assert (too_long.decision, too_long.binding) == ("delegate", True)
    fits = decided(query_intent=intent, estimated_tokens=10_000)
    assert (fits.decision, fits.reason_codes, fits.binding) == ("no_delegate", ("FITS_WHOLE",), False)
    deep = decided(query_intent=intent, estimated_tokens=10_000, user_requested_deep_mode=True)
    assert (deep.decision, deep.binding) == ("delegate", True)


@pytest.mark.parametrize("code", sorted(POSITIVES.keys() - {"DEEP_MODE_REQUESTED", "MODEL_REQUESTED"}))
def test_every_other_trigger_is_advice(code: PositiveCode) -> None:
    output = decided(**{**POSITIVES[code], "estimated_tokens": 0})
    assert (output.decision, output.binding) == ("delegate", False)


def test_a_question_about_details_binds_nobody_however_long_its_documents_are() -> None:
    assert not decided(**WANTED, estimated_tokens=500_000).binding


@pytest.mark.parametrize("profile", get_args(ProfileName))
def test_the_model_chooses_the_profile_of_its_call(profile: ProfileName) -> None:
    output = decided(
        query_intent="compare_docs", estimated_tokens=20_000, requested_profile=profile, web_allowed=True
    )
    assert (output.selected_profile, output.binding) == (profile, True)


# Acceptance cases of contracts.md, section 4, as far as the pure function goes.


@pytest.mark.parametrize(
    ("changes", "decision", "profile", "codes"),
    [
        (
            {"top_score": 0.91, "score_spread": 0.3},
            "no_delegate",
            None,
            ("CONFIDENT_FACT_LOOKUP",),
        ),
        (
            {"query_intent": "doc_summary", "requires_full_document": True, "target_doc_ids": ("handbook",)},
            "delegate",
            "doc_reader",
            ("INTENT_DOC_SUMMARY", "FULL_DOCUMENT_REQUIRED"),
        ),
        (
            {"query_intent": "compare_docs", "multi_document": True, "target_doc_ids": ("a", "b")},
            "delegate",
            "comparator",
            ("INTENT_COMPARE_DOCS", "MULTI_DOCUMENT"),
        ),
        (
            {"top_score": 0.41, "score_spread": 0.02, "candidate_count": 10},
            "delegate",
            "evidence_builder",
            ("LOW_RETRIEVAL_CONFIDENCE", "AMBIGUOUS_RETRIEVAL"),
        ),
        (
            {"top_score": 0.41, "score_spread": 0.02, "remaining_latency_ms": 9_000},
            "no_delegate",
            None,
            ("LATENCY_BUDGET_EXHAUSTED",),
        ),
        (
            {"query_intent": "doc_summary", "remaining_tokens": 500, "spent_usd": 0.08},
            "no_delegate",
            None,
            ("TOKEN_BUDGET_EXHAUSTED", "COST_BUDGET_EXHAUSTED"),
        ),
    ],
    ids=["confident", "summary", "comparison", "ambiguous", "ambiguous-late", "exhausted"],
)
def test_acceptance(
    changes: dict[str, Any], decision: str, profile: ProfileName | None, codes: tuple[str, ...]
) -> None:
    output = decided(**changes)
    assert (output.decision, output.selected_profile, output.reason_codes) == (decision, profile, codes)


def test_an_error_inside_is_a_safe_no() -> None:
    broken = INPUT.model_copy(update={"query_intent": "doc_summary", "doc_scope": None})
    output = decide(replace(SITUATION, policy_input=broken))
    assert output == DelegationPolicyOutput(decision="no_delegate", reason_codes=("POLICY_EVAL_ERROR",))
