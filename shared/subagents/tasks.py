"""What each sub-agent of a decision to delegate gets: its documents, its share of the budget. Pure.

A doc_reader reads one document in depth, so several documents are shared out over several of them; every
other profile works on all of its documents at once, alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.runs.models import ProfileName
from shared.subagents.models import SubagentStart, SubagentTask
from shared.subagents.policy_input import Occasion, target_documents
from shared.subagents.policy_models import BudgetAllocation, DelegationPolicyOutput, DelegationRules
from shared.subagents.profiles import PROFILES

MOST_DOCUMENTS = 6  # of one task; with more each would get too little of 8,000 tokens; unmeasured


@dataclass(frozen=True)
class Room:
    """What all sub-agents of one decision may use together, and how many they may be."""

    children: int
    tokens: int
    cost_usd: float


def tasks_of(
    occasion: Occasion, decided: DelegationPolicyOutput, room: Room, rules: DelegationRules, now: datetime
) -> tuple[SubagentTask, ...]:
    """The tasks of a decision to delegate, one for each sub-agent; none of any other decision."""
    if decided.decision != "delegate" or decided.selected_profile is None:
        return ()
    profile, documents = decided.selected_profile, _documents(occasion, decided.selected_profile)
    count = _count(profile, documents, room, rules)
    budget = _share(decided.budget_allocation, room, count)
    request = occasion.request
    return tuple(
        SubagentTask(
            child_id=f"{request.run_id}:s{occasion.step:03d}c{index}",
            run_id=request.run_id,
            step=occasion.step,
            index=index,
            profile=profile,
            question=occasion.stored.plan.standalone_question or request.question,
            doc_ids=documents[index::count],
            project_id=request.project_id,
            tools=decided.tool_scope,
            budget=budget,
            deadline=now + timedelta(milliseconds=budget.max_child_latency_ms),
        )
        for index in range(count)
    )


def starts_of(
    tasks: Sequence[SubagentTask],
    installed: Sequence[ProfileName],
    retries: int,
    backoff_ms: int,
) -> tuple[SubagentStart, ...]:
    """What the children are started with."""
    return tuple(
        SubagentStart(
            child_id=task.child_id,
            run_id=task.run_id,
            step=task.step,
            index=task.index,
            deadline=task.deadline,
            max_turns=task.budget.max_child_turns,
            max_tokens=task.budget.max_child_tokens,
            retry_count=retries,
            retry_backoff_ms=backoff_ms,
            profiles=_profiles(task, installed),
        )
        for task in tasks
    )


def _profiles(task: SubagentTask, installed: Sequence[ProfileName]) -> tuple[ProfileName, ...]:
    """The task's own, then the smaller ones that its tools are enough for."""
    names: list[ProfileName] = [task.profile]
    smaller = PROFILES[task.profile].smaller
    while smaller is not None:
        if smaller in installed and set(PROFILES[smaller].required_tools) <= set(task.tools):
            names.append(smaller)
        smaller = PROFILES[smaller].smaller
    return tuple(names)


def _documents(occasion: Occasion, profile: ProfileName) -> tuple[str, ...]:
    """Those that the question is about; of a comparison that names none, those that were found for it, and
    the others of their series.

    More than fit into one task are too many: the best of them, if evidence tells which these are.
    """
    found = tuple(dict.fromkeys(hit.doc_id for hit in occasion.evidence.hits))
    targets = target_documents(occasion)
    if not targets:
        return (*found, *occasion.series)[:MOST_DOCUMENTS] if profile == "comparator" else ()
    if len(targets) <= MOST_DOCUMENTS:
        return targets
    best = [doc_id for doc_id in found if doc_id in targets]
    return tuple(dict.fromkeys((*best, *targets)))[:MOST_DOCUMENTS]


def _count(profile: ProfileName, documents: Sequence[str], room: Room, rules: DelegationRules) -> int:
    """How many sub-agents: as many as get enough each to get anywhere, and one at least."""
    if profile != "doc_reader":
        return 1
    least_tokens = max(rules.min_remaining_tokens - rules.reserve_tokens, 1)
    most = min(len(documents), room.children, room.tokens // least_tokens)
    if rules.min_remaining_cost_usd > 0:
        most = min(most, int(room.cost_usd / rules.min_remaining_cost_usd))
    return max(most, 1)


def _share(whole: BudgetAllocation, room: Room, count: int) -> BudgetAllocation:
    """Of `count` at work side by side: the same time for each, and a share of the rest."""
    return whole.model_copy(
        update={
            "max_child_tokens": min(whole.max_child_tokens, room.tokens // count),
            "max_child_cost_usd": min(whole.max_child_cost_usd, room.cost_usd / count),
        }
    )
