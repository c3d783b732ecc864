"""A question that gets a sub-agent unless a test says otherwise, and the rules of the contract's defaults."""

from typing import Any

from shared.platform.models import Model
from shared.subagents.policy import decide
from shared.subagents.policy_input import rules_of
from shared.subagents.policy_models import (
    ConversationState,
    DelegationPolicyInput,
    DelegationPolicyOutput,
    DelegationRules,
    DocScope,
    RetrievalStats,
    RiskFlags,
    RuntimeBudget,
    SubagentFacts,
    SystemHealth,
)
from tests.fakes.services import fake_settings

RULES = rules_of(fake_settings())
FACTS = SubagentFacts(
    installed_profiles=("doc_reader", "comparator", "evidence_builder", "web_verifier"),
    healthy_tools=("retrieve_documents", "query_metadata", "web_search"),
    targets_readable=True,
)
SURE = RetrievalStats(top_score=0.7, score_spread=0.1, candidate_count=10, docs_hit_count=3)
INPUT = DelegationPolicyInput(
    request_id="run-1",
    user_id="anna",
    thread_id="thread-1",
    query="At what pressure does the pump run?",
    query_intent="fact_lookup",
    retrieval_stats=SURE,
    doc_scope=DocScope(),
    conversation_state=ConversationState(),
    runtime_budget=RuntimeBudget(remaining_latency_ms=24_000, remaining_tokens=22_000),
    risk_flags=RiskFlags(),
    system_health=SystemHealth(),
)
_PARTS: dict[str, type[Model]] = {
    "retrieval_stats": RetrievalStats,
    "doc_scope": DocScope,
    "conversation_state": ConversationState,
    "runtime_budget": RuntimeBudget,
    "risk_flags": RiskFlags,
    "system_health": SystemHealth,
}


def policy_input(**changes: Any) -> DelegationPolicyInput:
    """`INPUT`, with fields of its parts changed by their own names: `top_score=0.5`."""
    values = INPUT.model_dump()
    for name, value in changes.items():
        part = next((part for part, kind in _PARTS.items() if name in kind.model_fields), None)
        (values if part is None else values[part])[name] = value
    return DelegationPolicyInput.model_validate(values)


def facts(**changes: Any) -> SubagentFacts:
    return FACTS.model_copy(update=changes)


def rules(**changes: Any) -> DelegationRules:
    return RULES.model_copy(update=changes)


def decided(**changes: Any) -> DelegationPolicyOutput:
    """The decision on `INPUT`, `FACTS` and `RULES`, each with those of the changes that are its own."""
    of_facts = {name: changes.pop(name) for name in list(changes) if name in SubagentFacts.model_fields}
    of_rules = {name: changes.pop(name) for name in list(changes) if name in DelegationRules.model_fields}
    return decide(policy_input(**changes), facts(**of_facts), rules(**of_rules))
