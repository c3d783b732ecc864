"""Tests that the models, codes and versions of the delegation policy match the contract."""

import hashlib
import random
import re

from shared.answering.policy import RULES_VERSION, decide, decision_event, policy_version
from shared.answering.policy_models import BudgetAllocation, DelegationPolicyOutput
from tests.unit.subagents.delegation_cases import EVENT_FIELDS, INPUT, RULES, decided, policy_input, rules
from tests.unit.subagents.delegation_random import random_situation

WANTED = {"score_spread": 0.05, "candidate_count": 6}


def test_the_event_has_the_fields_of_the_contract() -> None:
    output = decided(**WANTED)
    event = decision_event("run-1", output, RULES).model_dump(include=EVENT_FIELDS)
    assert event == {
        "event": "delegation_policy_decision",
        "request_id": "run-1",
        "decision": "delegate",
        "reason_codes": ("AMBIGUOUS_RETRIEVAL",),
        "selected_profile": "evidence_builder",
        "latency_budget_ms": 15_000,
        "token_budget": 8_000,
        "policy_version": policy_version(RULES),
    }


def test_the_version_tells_other_thresholds_apart() -> None:
    assert re.fullmatch(rf"{RULES_VERSION}-[0-9a-f]{{8}}", policy_version(RULES))
    assert policy_version(RULES) == policy_version(rules())
    assert policy_version(RULES) != policy_version(rules(low_retrieval_confidence_top_score=0.5))


def test_the_input_is_the_contracts_to_the_letter() -> None:
    assert {
        name: list(value) if isinstance(value, dict) else None for name, value in INPUT.model_dump().items()
    } == {
        "request_id": None,
        "user_id": None,
        "thread_id": None,
        "query": None,
        "query_intent": None,
        "retrieval_stats": ["top_score", "score_spread", "candidate_count", "docs_hit_count"],
        "doc_scope": ["target_doc_ids", "estimated_tokens", "requires_full_document", "multi_document"],
        "conversation_state": ["user_requested_deep_mode"],
        "runtime_budget": [
            "max_total_latency_ms",
            "remaining_latency_ms",
            "max_total_tokens",
            "remaining_tokens",
            "max_subagent_cost_usd",
        ],
        "risk_flags": ["sensitive_domain", "restricted_tools_only", "compliance_mode"],
        "system_health": ["degraded_mode", "subagent_queue_depth", "active_subagents"],
    }
    assert policy_input() == INPUT


def test_the_output_is_the_contracts_to_the_letter() -> None:
    assert list(DelegationPolicyOutput.model_fields) == [
        "decision",
        "reason_codes",
        "binding",
        "selected_profile",
        "tool_scope",
        "budget_allocation",
        "expected_artifacts",
        "fallback_plan",
    ]
    assert list(BudgetAllocation.model_fields) == [
        "max_child_latency_ms",
        "max_child_tokens",
        "max_child_cost_usd",
        "max_child_turns",
    ]


def test_whoever_changes_what_is_decided_raises_the_version() -> None:
    chance = random.Random(5)
    outputs = [decide(random_situation(chance)).model_dump_json() for _ in range(3000)]
    digest = hashlib.sha256("\n".join(outputs).encode()).hexdigest()[:12]
    assert (RULES_VERSION, digest) == ("3", "b213d087ae8a")
