"""Splits a delegation into tasks, one per sub-agent.

A doc_reader reads a few documents in depth, so several documents are divided between several doc_readers.
Every other profile runs as a single sub-agent on all of its documents.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.answering.delegated_documents import MOST_DOCUMENTS, task_documents
from shared.answering.delegation_request import DelegationRequest
from shared.answering.policy_models import DelegationPolicyOutput
from shared.answering.situation import Situation
from shared.answering.subagent_models import SubagentStart, SubagentTask
from shared.runs.models import ProfileName

# Maximum number of passages that can be fetched in one request.
_MOST_KNOWN = 50


def child_prefix(delegation_request: DelegationRequest) -> str:
    """Return the prefix that the ids of all sub-agents started by one step have in common."""
    return f"{delegation_request.request.run_id}:s{delegation_request.step:03d}c"


def tasks_of(
    delegation_request: DelegationRequest,
    decided: DelegationPolicyOutput,
    situation: Situation,
    now: datetime,
) -> tuple[SubagentTask, ...]:
    """Return one task per sub-agent, or an empty tuple if the policy decided not to delegate."""
    if decided.decision != "delegate" or decided.selected_profile is None:
        return ()
    profile = decided.selected_profile
    documents = task_documents(delegation_request, compared=profile == "comparator")
    count = _count(profile, documents, situation)
    budget = situation.child_budget(count)
    request = delegation_request.request
    return tuple(
        SubagentTask(
            child_id=f"{child_prefix(delegation_request)}{index}",
            run_id=request.run_id,
            step=delegation_request.step,
            index=index,
            profile=profile,
            question=delegation_request.question,
            phrasings=() if delegation_request.call else delegation_request.stored.plan.search_queries,
            known_blocks=tuple(hit.block_id for hit in delegation_request.evidence.hits[:_MOST_KNOWN]),
            doc_ids=documents[index::count][:MOST_DOCUMENTS],
            project_id=request.project_id,
            tools=decided.tool_scope,
            budget=budget,
            deadline=now + timedelta(milliseconds=budget.max_child_latency_ms),
        )
        for index in range(count)
    )


def starts_of(tasks: Sequence[SubagentTask]) -> tuple[SubagentStart, ...]:
    """Return the parameters that the orchestration needs to start each sub-agent."""
    return tuple(
        SubagentStart(
            run_id=task.run_id,
            path=task.place.path,
            profile=task.profile,
            max_tokens=task.budget.max_child_tokens,
        )
        for task in tasks
    )


def _count(profile: ProfileName, documents: Sequence[str], situation: Situation) -> int:
    """Return the number of sub-agents to start: at most one per document, only as many as can have the
    minimum budget, and at least one.
    """
    if profile != "doc_reader":
        return 1
    least_cost_usd = situation.settings.budgets.min_remaining_cost_to_delegate_usd
    affordable = situation.budget.max_shares(situation.least_child_tokens, least_cost_usd)
    return max(min(len(documents), situation.children_left, affordable), 1)
