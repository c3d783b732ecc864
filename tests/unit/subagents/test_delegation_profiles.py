"""Tests for delegated questions: the chosen profile, its tools and budget, and the fallback on failure."""

from typing import Any

import pytest

from shared.answering.policy_models import BudgetAllocation
from shared.answering.profiles import PROFILES
from shared.runs.models import ProfileName
from tests.unit.subagents.delegation_cases import decided

WANTED = {"score_spread": 0.05, "candidate_count": 6}


@pytest.mark.parametrize(
    ("changes", "profile"),
    [
        ({"query_intent": "doc_summary", "multi_document": True}, "doc_reader"),
        ({"query_intent": "compare_docs", "requires_full_document": True}, "comparator"),
        ({"query_intent": "evidence_trace", "multi_document": True}, "evidence_builder"),
        ({"requires_full_document": True}, "doc_reader"),
        ({"multi_document": True, "requires_full_document": True}, "comparator"),
        ({"score_spread": 0.05, "candidate_count": 6}, "evidence_builder"),
        ({"top_score": 0.3}, "evidence_builder"),
        ({"top_score": 0.3, "web_allowed": True}, "web_verifier"),
        ({"top_score": 0.3, "web_allowed": True, "target_doc_ids": ("d",)}, "evidence_builder"),
        ({**WANTED, "top_score": 0.62, "web_allowed": True}, "evidence_builder"),
        ({"top_score": 0.3, "web_allowed": True, "query_intent": "doc_summary"}, "doc_reader"),
    ],
)
def test_the_profile_follows_the_intent(changes: dict[str, Any], profile: ProfileName) -> None:
    output = decided(**changes)
    assert output.selected_profile == profile
    assert output.tool_scope == PROFILES[profile].tools
    assert output.expected_artifacts == PROFILES[profile].artifacts
    assert "PROFILE_REDUCED" not in output.reason_codes


@pytest.mark.parametrize(
    "changes",
    [
        {"restricted_tools_only": True},
        {"compliance_mode": "strict"},
        {"sensitive_domain": True},
        {"web_allowed": False},
        {"healthy_tools": ("retrieve_documents", "query_metadata")},
        {"compliance_mode": "strict", "restricted_tools": "retrieve_documents,web_search"},
    ],
)
def test_the_web_is_out_of_reach_where_it_may_not_be_used(changes: dict[str, Any]) -> None:
    output = decided(**{"top_score": 0.3, "web_allowed": True, **changes})
    assert output.selected_profile == "evidence_builder"
    assert "web_search" not in output.tool_scope


@pytest.mark.parametrize("risk", [{"restricted_tools_only": True}, {"compliance_mode": "strict"}])
def test_a_restriction_takes_tools_away(risk: dict[str, Any]) -> None:
    output = decided(**WANTED, **risk, restricted_tools="retrieve_documents")
    assert output.tool_scope == ("retrieve_documents",)
    assert output.reason_codes == ("AMBIGUOUS_RETRIEVAL", "TOOLS_RESTRICTED")


def test_a_tool_that_does_not_work_is_not_given() -> None:
    output = decided(**WANTED, healthy_tools=("retrieve_documents",))
    assert output.tool_scope == ("retrieve_documents",)


def test_a_profile_that_is_not_installed_gives_way_to_the_smaller_one() -> None:
    output = decided(query_intent="compare_docs", installed_profiles=("doc_reader",))
    assert output.selected_profile == "doc_reader"
    assert output.reason_codes == ("INTENT_COMPARE_DOCS", "PROFILE_REDUCED")
    assert decided(query_intent="doc_summary", installed_profiles=("comparator",)).reason_codes == (
        "SUBAGENTS_UNAVAILABLE",
    )


def test_the_web_gives_way_step_by_step() -> None:
    web = {"top_score": 0.3, "web_allowed": True}
    assert decided(**web, installed_profiles=("doc_reader", "evidence_builder")).selected_profile == (
        "evidence_builder"
    )
    assert decided(**web, installed_profiles=("doc_reader",)).selected_profile == "doc_reader"


def test_no_profile_gives_way_in_a_circle_or_to_the_web() -> None:
    for profile in PROFILES.values():
        seen = {profile.name}
        while profile.smaller is not None:
            assert profile.smaller not in seen
            assert profile.smaller != "web_verifier"
            seen.add(profile.smaller)
            profile = PROFILES[profile.smaller]  # noqa: PLW2901


@pytest.mark.parametrize(
    ("changes", "plan"),
    [
        ({"query_intent": "doc_summary"}, "main_agent_synthesis"),
        ({"query_intent": "doc_summary", "candidate_count": 0}, "abstain_with_guidance"),
        ({"query_intent": "compare_docs"}, "reduced_profile"),
        ({"query_intent": "compare_docs", "installed_profiles": ("comparator",)}, "main_agent_synthesis"),
        ({"query_intent": "compare_docs", "enabled": False}, "main_agent_synthesis"),
        ({"candidate_count": 0, "enabled": False}, "abstain_with_guidance"),
    ],
)
def test_the_fallback_is_what_there_is_without_the_sub_agent(changes: dict[str, Any], plan: str) -> None:
    assert decided(**changes).fallback_plan == plan


def test_a_sub_agent_gets_its_limits_when_enough_remains() -> None:
    assert decided(**WANTED).budget_allocation == BudgetAllocation(
        max_child_latency_ms=15_000, max_child_tokens=8_000, max_child_cost_usd=0.03, max_child_turns=3
    )


def test_a_sub_agent_gets_what_remains_less_what_the_answer_needs() -> None:
    output = decided(**WANTED, remaining_latency_ms=13_000, remaining_tokens=9_000, spent_usd=0.06)
    assert output.budget_allocation.max_child_latency_ms == 8_000
    assert output.budget_allocation.max_child_tokens == 3_000
    assert output.budget_allocation.max_child_cost_usd == pytest.approx(0.02)


def test_more_than_the_request_may_use_in_all_never_remains() -> None:
    output = decided(
        **WANTED,
        max_total_latency_ms=14_000,
        remaining_latency_ms=90_000,
        max_total_tokens=10_000,
        remaining_tokens=90_000,
    )
    assert output.budget_allocation.max_child_latency_ms == 9_000
    assert output.budget_allocation.max_child_tokens == 4_000


def test_what_the_answer_needs_is_kept_even_if_no_minimum_is_set() -> None:
    no_minimum = {**WANTED, "min_remaining_tokens_to_delegate": 0}
    assert decided(**no_minimum, remaining_tokens=6_000).reason_codes == ("TOKEN_BUDGET_EXHAUSTED",)
    assert decided(**no_minimum, remaining_tokens=6_001).budget_allocation.max_child_tokens == 1


def test_money_that_was_given_back_makes_no_budget_larger() -> None:
    output = decided(**WANTED, max_subagent_cost_usd=0.01, spent_usd=-1.0)
    assert output.budget_allocation.max_child_cost_usd == 0.01
