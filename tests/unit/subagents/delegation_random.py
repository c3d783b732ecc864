"""Random situations for the delegation policy, determined by a seed."""

import random
from typing import Any, get_args

from shared.answering.policy_models import (
    ConversationState,
    DelegationPolicyInput,
    DocScope,
    RetrievalStats,
    RiskFlags,
    RuntimeBudget,
    SystemHealth,
)
from shared.answering.situation import Situation
from shared.platform.settings import Settings
from shared.runs.models import ProfileName, SubagentTool
from shared.runs.plan import QueryIntent
from tests.unit.subagents.delegation_cases import rules


def random_situation(chance: random.Random) -> Situation:
    """Return a random situation. Most values are plausible, so that every decision occurs; some are
    extreme.
    """
    policy_input, facts, settings = _input(chance), _facts(chance), _rules(chance)
    return Situation(policy_input, settings, **facts)


def _some(chance: random.Random, names: tuple[str, ...], each: float) -> tuple[str, ...]:
    return tuple(name for name in names if chance.random() < each)


def _amount(chance: random.Random, most: int) -> int:
    return chance.choice((chance.randint(0, most), most, 0, -chance.randint(1, most), 10**9))


def _rarely(chance: random.Random) -> bool:
    return chance.random() < 0.03


def _usual(chance: random.Random, usual: Any, *others: Any) -> Any:
    return chance.choice(others) if _rarely(chance) else usual


def _input(chance: random.Random) -> DelegationPolicyInput:
    return DelegationPolicyInput(
        request_id=f"run-{chance.randint(0, 99)}",
        user_id="anna",
        thread_id="thread",
        query=chance.choice(("", "Which pump?", "\u202e\x00 {json} ü", "x" * 5000)),
        query_intent=chance.choice(get_args(QueryIntent)),
        retrieval_stats=RetrievalStats(
            top_score=chance.choice((chance.random(), 0.62, 0.78, 0.0, 1.0)),
            score_spread=chance.choice((chance.random(), 0.08, 0.15, 0.0)),
            candidate_count=chance.randint(0, 12),
            docs_hit_count=chance.randint(0, 5),
        ),
        doc_scope=DocScope(
            target_doc_ids=_doc_ids(chance),
            estimated_tokens=chance.choice((0, 9_999, 10_000, 10_001, 10**6)),
            requires_full_document=chance.random() < 0.3,
            multi_document=chance.random() < 0.3,
        ),
        conversation_state=ConversationState(user_requested_deep_mode=_rarely(chance)),
        runtime_budget=_budget(chance),
        risk_flags=RiskFlags(
            sensitive_domain=chance.random() < 0.3,
            restricted_tools_only=chance.random() < 0.3,
            compliance_mode=chance.choice(("normal", "normal", "strict")),
        ),
        system_health=SystemHealth(
            degraded_mode=_rarely(chance),
            subagent_queue_depth=_usual(chance, chance.randint(0, 19), 20, 500),
            active_subagents=_usual(chance, chance.randint(0, 19), 20, 500),
        ),
    )


def _budget(chance: random.Random) -> RuntimeBudget:
    plenty = chance.random() < 0.9
    return RuntimeBudget(
        max_total_latency_ms=25_000 if plenty else _amount(chance, 60_000),
        remaining_latency_ms=chance.randint(11_000, 25_000) if plenty else _amount(chance, 60_000),
        max_total_tokens=24_000 if plenty else _amount(chance, 50_000),
        remaining_tokens=chance.randint(7_000, 24_000) if plenty else _amount(chance, 50_000),
        max_subagent_cost_usd=_usual(chance, 0.08, 0.0, -1.0, chance.random()),
    )


def _doc_ids(chance: random.Random) -> tuple[str, ...]:
    return tuple(f"doc-{number}" for number in range(chance.choice((0, 0, 1, 3))))


def _facts(chance: random.Random) -> dict[str, Any]:
    return {
        "installed_profiles": _some(chance, get_args(ProfileName), 0.9),
        "healthy_tools": _some(chance, get_args(SubagentTool), 0.9),
        "targets_readable": not _rarely(chance),
        "circuit_closed": not _rarely(chance),
        "web_allowed": chance.random() < 0.7,
        "depth": 1 if _rarely(chance) else 0,
        "started": _usual(chance, chance.randint(0, 1), 2),
        "requested_profile": _usual(chance, None, *get_args(ProfileName)),
        "spent_usd": _usual(chance, chance.random() / 20, 0.0, -1.0, 5.0),
    }


def _rules(chance: random.Random) -> Settings:
    return rules(
        enabled=not _rarely(chance),
        max_per_request=_usual(chance, 2, 0, 5),
        max_recursion_depth=_usual(chance, 1, 0, 2),
        low_retrieval_confidence_top_score=_usual(chance, 0.62, chance.random()),
        high_confidence_no_delegate_top_score=_usual(chance, 0.78, chance.random()),
        low_score_spread_ambiguity=_usual(chance, 0.08, chance.random()),
        high_score_spread_clarity=_usual(chance, 0.15, chance.random()),
        min_remaining_latency_to_delegate_ms=_usual(chance, 12_000, 0, 40_000),
        min_remaining_tokens_to_delegate=_usual(chance, 8_000, 0),
        min_remaining_cost_to_delegate_usd=_usual(chance, 0.005, 0.0),
        reserve_latency_ms=_usual(chance, 5_000, 0, 20_000),
        whole_documents_tokens=_usual(chance, 10_000, 0),
        reserve_tokens=_usual(chance, 6_000, 0, 20_000),
        child_min_latency_ms=max(_usual(chance, 4_000, 1, 0), 1),
        child_timeout_ms=_usual(chance, 15_000, 1, 600_000),
        child_max_turns=chance.randint(1, 20),
        max_child_tokens=_usual(chance, 8_000, 1, 10**7),
        max_child_cost_usd=_usual(chance, 0.03, 9.0),
        child_retry_backoff_ms=_usual(chance, 750, 0),
        restricted_tools=",".join(_some(chance, get_args(SubagentTool), 0.9)),
    )
