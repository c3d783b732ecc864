"""A question that gets a sub-agent unless a test says otherwise, and the rules of the contract's defaults."""

from dataclasses import fields, replace
from typing import Any

from shared.answering.policy import decide
from shared.answering.policy_models import (
    ConversationState,
    DelegationPolicyInput,
    DelegationPolicyOutput,
    DocScope,
    RetrievalStats,
    RiskFlags,
    RuntimeBudget,
    SystemHealth,
)
from shared.answering.situation import Situation
from shared.platform.models import Model
from shared.platform.settings import Settings
from tests.fakes.services import fake_settings

RULES = fake_settings()
EVENT_FIELDS = (  # of a decision (contracts.md, section 4)
    {"event", "request_id", "decision", "reason_codes", "selected_profile"}
    | {"latency_budget_ms", "token_budget", "policy_version"}
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
SITUATION = Situation(
    INPUT,
    RULES,
    installed_profiles=("doc_reader", "comparator", "evidence_builder", "web_verifier"),
    healthy_tools=("retrieve_documents", "query_metadata", "web_search"),
    targets_readable=True,
)
_OWN = {field.name for field in fields(Situation)} - {"policy_input", "settings"}
_PARTS: dict[str, type[Model]] = {
    "retrieval_stats": RetrievalStats,
    "doc_scope": DocScope,
    "conversation_state": ConversationState,
    "runtime_budget": RuntimeBudget,
    "risk_flags": RiskFlags,
    "system_health": SystemHealth,
}


_GROUPS = {
    group: type(getattr(RULES, group)).model_fields
    for group in ("subagents", "thresholds", "budgets", "answering")
}
# Names that are both a limit and a part of the policy's input, which is told the limit.
_IN_INPUT = {name for kind in _PARTS.values() for name in kind.model_fields}


def policy_input(**changes: Any) -> DelegationPolicyInput:
    """`INPUT`, with fields of its parts changed by their own names: `top_score=0.5`."""
    values = INPUT.model_dump()
    for name, value in changes.items():
        part = next((part for part, kind in _PARTS.items() if name in kind.model_fields), None)
        (values if part is None else values[part])[name] = value
    return DelegationPolicyInput.model_validate(values)


def rules(**changes: Any) -> Settings:
    """`RULES`, with settings of its groups changed by their own names: `max_active=2`."""
    return RULES.model_copy(
        update={
            group: getattr(RULES, group).model_copy(
                update={name: value for name, value in changes.items() if name in names}
            )
            for group, names in _GROUPS.items()
        }
    )


def situation(**changes: Any) -> Situation:
    """`SITUATION`, with its fields and those of its input and settings changed by their own names."""
    own = {name: changes.pop(name) for name in list(changes) if name in _OWN}
    limits = {name for names in _GROUPS.values() for name in names} - _IN_INPUT
    of_rules = {name: changes.pop(name) for name in list(changes) if name in limits}
    return replace(SITUATION, policy_input=policy_input(**changes), settings=rules(**of_rules), **own)


def decided(**changes: Any) -> DelegationPolicyOutput:
    """The decision in the `situation` with these changes."""
    return decide(situation(**changes))
