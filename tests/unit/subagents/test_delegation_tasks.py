"""Tests for dividing a question into tasks: within the budget, with each document assigned exactly once."""

import random
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from shared.answering.delegated_documents import MOST_DOCUMENTS
from shared.answering.delegation_tasks import tasks_of
from shared.answering.policy_models import DelegationPolicyOutput
from shared.answering.profiles import PROFILES, profiles_for
from shared.answering.situation import Situation
from shared.runs.models import ProfileName, SubagentTool
from tests.unit.subagents.delegation_cases import situation
from tests.unit.subagents.delegation_requests import delegation_request, summary

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PROFILE_NAMES = get_args(ProfileName)
BARE: tuple[SubagentTool, ...] = ("query_metadata",)


def decision(profile: ProfileName) -> DelegationPolicyOutput:
    return DelegationPolicyOutput(
        decision="delegate",
        reason_codes=("MULTI_DOCUMENT",),
        selected_profile=profile,
        tool_scope=PROFILES[profile].tools,
    )


def room_for(children: int, tokens: int, cost_usd: float) -> Situation:
    """Return a situation that leaves this budget for the question's sub-agents."""
    return situation(
        max_per_request=children,
        free_slots=children,
        remaining_tokens=tokens,
        max_total_tokens=tokens,
        reserve_tokens=0,
        max_subagent_cost_usd=cost_usd,
        remaining_latency_ms=14_000,
    )


@pytest.mark.parametrize("seed", range(80))
def test_whatever_is_left_tasks_stay_within_it(seed: int) -> None:
    chance = random.Random(seed)
    profile = chance.choice(PROFILE_NAMES)
    documents = tuple(f"d{n}" for n in range(chance.randint(0, 9)))
    room = room_for(chance.randint(1, 5), chance.randint(1, 30_000), chance.uniform(0.001, 0.2))
    tasks = tasks_of(summary(*documents), decision(profile), room, NOW)
    assert 1 <= len(tasks) <= room.children_left
    assert sum(task.budget.max_child_tokens for task in tasks) <= room.budget.tokens_left
    assert sum(task.budget.max_child_cost_usd for task in tasks) <= room.budget.cost_left_usd + 1e-9
    assert {task.deadline for task in tasks} == {NOW + timedelta(seconds=9)}
    assert len({task.child_id for task in tasks}) == len(tasks)
    shared_out = [doc_id for task in tasks for doc_id in task.doc_ids]
    assert sorted(shared_out) == sorted(documents[:MOST_DOCUMENTS])
    assert profile == "doc_reader" or len(tasks) == 1


def test_no_other_decision_has_a_task() -> None:
    refused = DelegationPolicyOutput(decision="no_delegate", reason_codes=("NO_TRIGGER",))
    assert tasks_of(delegation_request(), refused, room_for(2, 9_000, 0.1), NOW) == ()


@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_who_takes_over_is_smaller_installed_and_has_its_tools(profile: ProfileName) -> None:
    (task,) = tasks_of(delegation_request(), decision(profile), room_for(2, 9_000, 0.1), NOW)
    profiles = profiles_for(task.profile, task.tools, has_web_search=False)
    smaller = {"web_verifier": ("evidence_builder", "doc_reader"), "doc_reader": ()}
    assert profiles == (profile, *smaller.get(profile, ("doc_reader",)))
    assert profiles_for(profile, BARE, has_web_search=True) == (profile,)
