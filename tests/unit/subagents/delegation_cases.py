"""A question that is delegated to a sub-agent unless a test changes the situation, and the default rules of
the contract.
"""

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
EVENT_FIELDS = (  # fields of a decision event (contracts.md, section 4)
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
# Some names exist as a setting and as a part of the policy's input; changes then apply to the input.
_IN_INPUT = {name for kind in _PARTS.values() for name in kind.model_fields}


def policy_input(**changes: Any) -> DelegationPolicyInput:
    """Return `INPUT` with changed fields. Fields of its parts are given by their own names, such as
    `top_score=0.5`.
    """
    values = INPUT.model_dump()
    for name, value in changes.items():
        part = next((part for part, kind in _PARTS.items() if name in kind.model_fields), None)
        (values if part is None else values[part])[name] = value
    return DelegationPolicyInput.model_validate(values)


def rules(**changes: Any) -> Settings:
    """Return `RULES` with changed settings. Settings of its groups are given by their own names, such as
    `max_active=2`.
    """
    return RULES.model_copy(
        update={
            group: getattr(RULES, group).model_copy(
                update={name: value for name, value in changes.items() if name in names}
            )
            for group, names in _GROUPS.items()
        }
    )


def situation(**changes: Any) -> Situation:
    """Return `SITUATION` with changed fields, including fields of its input and of its settings, all given by
    name.
    """
    own = {name: changes.pop(name) for name in list(changes) if name in _OWN}
    limits = {name for names in _GROUPS.values() for name in names} - _IN_INPUT
    of_rules = {name: changes.pop(name) for name in list(changes) if name in limits}
    return replace(SITUATION, policy_input=policy_input(**changes), settings=rules(**of_rules), **own)


def decided(**changes: Any) -> DelegationPolicyOutput:
    """Return the policy's decision in `SITUATION` with these changes."""
    return decide(situation(**changes))
