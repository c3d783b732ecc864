"""Tests the invariants of the delegation policy with 20,000 random questions."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from shared.answering.policy import decide
from shared.answering.policy_models import BudgetAllocation, DelegationPolicyInput, DelegationPolicyOutput
from shared.answering.profiles import PROFILES
from shared.answering.situation import Situation
from tests.unit.subagents.delegation_random import random_situation

CASES = 20_000
Decided = tuple[Situation, DelegationPolicyOutput]


@pytest.fixture(scope="module")
def decisions() -> list[Decided]:
    chance = random.Random(20_000)
    return [(one, decide(one)) for one in (random_situation(chance) for _ in range(CASES))]


def delegated(decisions: list[Decided]) -> Iterator[Decided]:
    return (decision for decision in decisions if decision[1].decision == "delegate")


def check_scope(decisions: Iterable[Decided]) -> None:
    for now, output in decisions:
        assert output.selected_profile is not None
        scope, risk = set(output.tool_scope), now.policy_input.risk_flags
        assert output.selected_profile in now.installed_profiles
        assert scope <= set(PROFILES[output.selected_profile].tools)
        assert scope >= set(PROFILES[output.selected_profile].required_tools)
        assert scope <= set(now.healthy_tools)
        is_strict = risk.compliance_mode == "strict"
        if risk.restricted_tools_only or is_strict:
            assert scope <= set(now.settings.subagents.restricted_tool_names)
        if risk.sensitive_domain or is_strict or not now.web_allowed:
            assert "web_search" not in scope


def check_budget(decisions: Iterable[Decided]) -> None:
    for now, output in decisions:
        rules = now.settings
        budget, allocated = now.policy_input.runtime_budget, output.budget_allocation
        cost_left = budget.max_subagent_cost_usd - max(now.spent_usd, 0)
        assert 0 < allocated.max_child_latency_ms <= rules.subagents.child_timeout_ms
        assert 0 < allocated.max_child_tokens <= rules.budgets.max_child_tokens
        assert 0 < allocated.max_child_cost_usd <= min(cost_left, rules.budgets.max_child_cost_usd)
        assert 0 < allocated.max_child_turns <= rules.subagents.child_max_turns
        for granted, reserve, left, most in (
            (
                allocated.max_child_latency_ms,
                rules.subagents.reserve_latency_ms,
                budget.remaining_latency_ms,
                budget.max_total_latency_ms,
            ),
            (
                allocated.max_child_tokens,
                rules.subagents.reserve_tokens,
                budget.remaining_tokens,
                budget.max_total_tokens,
            ),
        ):
            assert granted + reserve <= min(left, most)


def test_the_questions_are_of_every_kind(decisions: list[Decided]) -> None:
    kinds = Counter(output.decision for *_, output in decisions)
    profiles = Counter(output.selected_profile for *_, output in delegated(decisions))
    assert min(kinds["delegate"], kinds["no_delegate"], kinds["defer"]) > 50, kinds
    assert profiles.keys() == PROFILES.keys()
    assert min(profiles.values()) > 20, profiles


def test_none_fails(decisions: list[Decided]) -> None:
    assert not [1 for *_, output in decisions if "POLICY_EVAL_ERROR" in output.reason_codes]
    assert all(output.reason_codes for *_, output in decisions)


def test_a_tool_outside_the_allowed_scope_is_never_given(decisions: list[Decided]) -> None:
    check_scope(delegated(decisions))


def test_a_budget_above_what_remains_is_never_given(decisions: list[Decided]) -> None:
    check_budget(delegated(decisions))


def test_whoever_is_not_delegated_gets_nothing(decisions: list[Decided]) -> None:
    for *_, output in decisions:
        if output.decision != "delegate":
            assignment = (output.selected_profile, output.tool_scope, output.expected_artifacts)
            assert assignment == (None, (), ())
            assert output.budget_allocation == BudgetAllocation()


def test_no_gate_is_passed_that_is_shut(decisions: list[Decided]) -> None:
    for now, output in decisions:
        if output.decision != "no_delegate":
            assert now.settings.subagents.enabled
            assert now.targets_readable
            assert now.circuit_closed
            assert now.depth < now.settings.subagents.max_recursion_depth
            assert now.started < now.settings.subagents.max_per_request


def test_equal_questions_are_decided_equally_also_after_a_trip_as_json(decisions: list[Decided]) -> None:
    for now, output in decisions[:4000]:
        policy_input = DelegationPolicyInput.model_validate_json(now.policy_input.model_dump_json())
        again = replace(now, policy_input=policy_input, settings=now.settings.model_copy(deep=True))
        assert again == now
        assert decide(again) == output
        assert DelegationPolicyOutput.model_validate_json(output.model_dump_json()) == output
