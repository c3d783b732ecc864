"""Collects the facts on which the delegation policy decides: evidence, budget and state of the system."""

import asyncio
from datetime import datetime

from shared.answering.children import children_of, delegations_of
from shared.answering.control_state import ControlView
from shared.answering.delegated_documents import LOOKUP_TIMEOUT_S, doc_scope, text_tokens
from shared.answering.delegation_request import DelegationRequest
from shared.answering.policy_models import (
    ConversationState,
    DelegationPolicyInput,
    RetrievalStats,
    RiskFlags,
    RuntimeBudget,
    SystemHealth,
)
from shared.platform.settings import Settings
from shared.retrieval.fusion import score_spread, top_score
from shared.runs.evidence import Evidence
from shared.runs.journal import Journal
from shared.runs.models import RunRequest

# Estimated tokens of the planning call. Its instructions take about 450.
_PLANNING_TOKENS = 1_000


def collect_policy_input(
    delegation_request: DelegationRequest, settings: Settings, budget: RuntimeBudget, control: ControlView
) -> DelegationPolicyInput:
    """Collect the facts that the delegation policy judges."""
    request, limits = delegation_request.request, settings.subagents
    # If no slot is free, report the maximum number of active sub-agents, so that the policy names that limit.
    # If the queue is full, the policy names the queue limit instead.
    is_full = control.circuit_closed and not control.free and control.waiting < limits.max_queue_depth
    departments = {(record.department or "").casefold() for record in delegation_request.evidence.records}
    return DelegationPolicyInput(
        request_id=request.run_id,
        user_id=request.user.user_id,
        thread_id=request.thread_id,
        query=delegation_request.question,
        query_intent=delegation_request.stored.plan.intent,
        retrieval_stats=retrieval_stats(delegation_request.evidence),
        doc_scope=doc_scope(delegation_request),
        conversation_state=ConversationState(user_requested_deep_mode=request.deep),
        runtime_budget=budget,
        risk_flags=RiskFlags(
            sensitive_domain=not departments.isdisjoint(limits.sensitive_department_names),
            restricted_tools_only=limits.restricted_tools_only,
            compliance_mode=limits.compliance_mode,
        ),
        system_health=SystemHealth(
            degraded_mode=limits.degraded_mode,
            subagent_queue_depth=control.waiting,
            active_subagents=max(control.active, limits.max_active) if is_full else control.active,
        ),
    )


def retrieval_stats(evidence: Evidence) -> RetrievalStats:
    """Return statistics from which the policy judges the reliability of the evidence. Scores are clamped to
    0..1, because rounding may exceed it.
    """
    if not evidence.hits:
        listed = len(evidence.records)
        exact = 1.0 if listed else 0.0
        return RetrievalStats(
            top_score=exact, score_spread=exact, candidate_count=listed, docs_hit_count=listed
        )
    scores = [min(max(hit.score, 0.0), 1.0) for hit in evidence.hits]
    return RetrievalStats(
        top_score=top_score(scores),
        score_spread=score_spread(scores),
        candidate_count=len(evidence.hits),
        docs_hit_count=len({hit.doc_id for hit in evidence.hits}),
    )


def budget_of(
    delegation_request: DelegationRequest, settings: Settings, child_tokens: int, now: datetime
) -> RuntimeBudget:
    """Return the total and the remaining budget of the question as of `now`.

    Args:
        child_tokens: tokens used by sub-agents of earlier steps.
    """
    began = delegation_request.began or delegation_request.request.created_at
    elapsed_ms = max(int((now - began).total_seconds() * 1000), 0)
    max_tokens = settings.budgets.max_total_tokens_per_request
    return RuntimeBudget(
        max_total_latency_ms=settings.budgets.max_total_latency_ms,
        remaining_latency_ms=settings.budgets.max_total_latency_ms - elapsed_ms,
        max_total_tokens=max_tokens,
        remaining_tokens=max_tokens
        - max(delegation_request.tokens, planning_tokens(delegation_request.request) + child_tokens),
        max_subagent_cost_usd=settings.budgets.max_subagent_cost_usd,
    )


def planning_tokens(request: RunRequest) -> int:
    """Estimate the tokens that planning the question has used, because some models report no usage."""
    conversation = request.conversation
    texts = [text for turn in conversation.turns for text in (turn.question, turn.answer)]
    return _PLANNING_TOKENS + sum(map(text_tokens, (request.question, conversation.summary, *texts)))


async def used_before(delegation_request: DelegationRequest, journal: Journal) -> tuple[int, int, float]:
    """Return the number, total tokens and total cost in US dollars of the sub-agents that earlier steps
    started.

    A sub-agent that stored no state counts with its whole budget, because it may have used it.
    """
    if delegation_request.call is None:
        return 0, 0, 0.0
    async with asyncio.timeout(LOOKUP_TIMEOUT_S):
        delegations = await delegations_of(journal)
        children = await children_of(journal, delegations)
    used = [
        (state.tokens, state.cost_usd)
        if (state := child.state).started_at
        else (child.task.budget.max_child_tokens, child.task.budget.max_child_cost_usd)
        for child in children
    ]
    return len(used), sum(tokens for tokens, _ in used), sum(cost_usd for _, cost_usd in used)
