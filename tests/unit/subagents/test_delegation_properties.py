"""What holds of the delegation policy whatever it is asked: 20,000 random questions."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from shared.answering.policy import decide
from shared.answering.policy_models import (
    BudgetAllocation,
    DelegationPolicyInput,
    DelegationPolicyOutput,
    SubagentFacts,
)
from shared.answering.profiles import PROFILES
from shared.platform.settings import Settings
from tests.unit.subagents.delegation_random import Case, random_case

CASES = 20_000
Decided = tuple[DelegationPolicyInput, SubagentFacts, Settings, DelegationPolicyOutput]


@pytest.fixture(scope="module")
def decisions() -> list[Decided]:
    chance = random.Random(20_000)
    return [(*case, decide(*case)) for case in (random_case(chance) for _ in range(CASES))]


def delegated(decisions: list[Decided]) -> Iterator[Decided]:
    return (decision for decision in decisions if decision[3].decision == "delegate")


def check_scope(decisions: Iterable[Decided]) -> None:
    for asked, facts, rules, output in decisions:
        assert output.selected_profile is not None
        scope, risk = set(output.tool_scope), asked.risk_flags
        assert output.selected_profile in facts.installed_profiles
        assert scope <= set(PROFILES[output.selected_profile].tools)
        assert scope >= set(PROFILES[output.selected_profile].required_tools)
        assert scope <= set(facts.healthy_tools)
        is_strict = risk.compliance_mode == "strict"
        if risk.restricted_tools_only or is_strict:
            assert scope <= set(rules.subagents.restricted_tool_names)
        if risk.sensitive_domain or is_strict or not facts.web_allowed:
            assert "web_search" not in scope


def check_budget(decisions: Iterable[Decided]) -> None:
    for asked, facts, rules, output in decisions:
        budget, allocated = asked.runtime_budget, output.budget_allocation
        cost_left = budget.max_subagent_cost_usd - max(facts.spent_usd, 0)
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
            given = (output.selected_profile, output.tool_scope, output.expected_artifacts)
            assert given == (None, (), ())
            assert output.budget_allocation == BudgetAllocation()


def test_no_gate_is_passed_that_is_shut(decisions: list[Decided]) -> None:
    for _, facts, rules, output in decisions:
        if output.decision != "no_delegate":
            assert rules.subagents.enabled
            assert facts.targets_readable
            assert facts.circuit_closed
            assert facts.depth < rules.subagents.max_recursion_depth
            assert facts.started < rules.subagents.max_per_request


def test_equal_questions_are_decided_equally_also_after_a_trip_as_json(decisions: list[Decided]) -> None:
    for asked, facts, rules, output in decisions[:4000]:
        again: Case = (
            DelegationPolicyInput.model_validate_json(asked.model_dump_json()),
            SubagentFacts.model_validate_json(facts.model_dump_json()),
            rules.model_copy(deep=True),
        )
        assert again == (asked, facts, rules)
        assert decide(*again) == output
        assert DelegationPolicyOutput.model_validate_json(output.model_dump_json()) == output
