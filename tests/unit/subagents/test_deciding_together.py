"""Tests for concurrent decisions: slots, the circuit breaker and attempts stay consistent."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.answering.children import child_ids
from shared.answering.control import read_control, settle
from shared.answering.control_state import MIN_OUTCOMES, ControlState, Lease
from shared.answering.delegation_request import DelegationRequest
from shared.answering.subagent_budget import CRASH_GRACE
from shared.answering.subagent_models import SubagentEnd, SubagentState
from shared.tools.delegate import DelegateParameters
from tests.fakes.stores_subagents import InMemoryControlStore
from tests.unit.subagents.delegation_requests import (
    RUN,
    STEP,
    comparison,
    decided,
    delegation_request,
    hit,
    services_with,
    summary,
)
from tests.unit.subagents.lines import keep_state


class UntouchedControl(InMemoryControlStore):
    """A control table that must not be read."""

    async def read(self) -> ControlState:
        pytest.fail("the table of sub-agents was asked for nothing")


def leases(count: int, *, has_begun: bool, prefix: str = "other") -> tuple[Lease, ...]:
    expires_at = datetime.now(UTC) + timedelta(hours=1)  # created long before the test runs
    return tuple(
        Lease(child_id=f"{prefix}-{n}", expires_at=expires_at, has_begun=has_begun) for n in range(count)
    )


def control_with(**state: Any) -> InMemoryControlStore:
    control = InMemoryControlStore()
    control.state = ControlState(**state)
    return control


async def test_an_ordinary_question_asks_nobody_about_other_sub_agents() -> None:
    clear = delegation_request(evidence_changes={"hits": (hit("manual", 0, 0.9), hit("other", 0, 0.2))})
    outcome = await decided(clear, services_with(UntouchedControl()))
    assert outcome.event.data["reason_codes"] == ["CONFIDENT_FACT_LOOKUP"]
    assert (outcome.delegation, outcome.starts, outcome.until, outcome.defer_s) == (None, (), None, None)


async def test_slots_are_taken_before_children_start_and_are_free_after_them() -> None:
    services = services_with()
    outcome = await decided(summary("a", "b"), services)
    assert (await read_control(services.settings, services.subagent_control)).waiting == 2
    await settle(
        services.settings,
        services.subagent_control,
        [SubagentEnd(child_id=start.child_id, status="done") for start in outcome.starts],
    )
    assert (await read_control(services.settings, services.subagent_control)).waiting == 0


@pytest.mark.parametrize(
    ("state", "code", "decision"),
    [
        ({"leases": leases(20, has_begun=True)}, "ACTIVE_LIMIT_REACHED", "no_delegate"),
        # Ten sub-agents in progress and ten about to start occupy every slot.
        (
            {"leases": (*leases(10, has_begun=True), *leases(10, has_begun=False, prefix="waiting"))},
            "ACTIVE_LIMIT_REACHED",
            "no_delegate",
        ),
        ({"leases": leases(20, has_begun=False)}, "QUEUE_FULL", "defer"),
        ({"opened_at": datetime.now(UTC) + timedelta(hours=1)}, "CIRCUIT_OPEN", "no_delegate"),
    ],
)
async def test_other_sub_agents_and_their_failures_count(
    state: dict[str, Any], code: str, decision: str
) -> None:
    deep = delegation_request(request_changes={"deep": True})
    outcome = await decided(deep, services_with(control_with(**state)))
    assert outcome.event.data["reason_codes"][0] == code
    assert (outcome.event.data["decision"], outcome.delegation) == (decision, None)
    assert outcome.defer_s == (0.75 if decision == "defer" else None)


async def test_sub_agents_that_fail_too_often_are_paused() -> None:
    services = services_with()
    for number in range(MIN_OUTCOMES):
        outcome = await decided(delegation_request(request_changes={"run_id": f"run-{number}"}), services)
        assert outcome.delegation is not None
        await settle(
            services.settings,
            services.subagent_control,
            [SubagentEnd(child_id=outcome.starts[0].child_id, status="failed")],
        )
    outcome = await decided(delegation_request(), services)
    assert outcome.event.data["reason_codes"] == ["CIRCUIT_OPEN"]


async def test_with_one_slot_left_one_reader_reads_both_documents() -> None:
    outcome = await decided(summary("a", "b"), services_with(control_with(leases=leases(19, has_begun=True))))
    assert outcome.delegation is not None
    assert [task.doc_ids for task in outcome.delegation.tasks] == [("a", "b")]


async def test_who_was_too_late_for_a_slot_decides_anew() -> None:
    class Raced(InMemoryControlStore):
        """A control table in which another process takes the last slots between the first and the second
        read.
        """

        reads = 0

        async def read(self) -> ControlState:
            self.reads += 1
            if self.reads == 2:
                self.state = ControlState(leases=leases(20, has_begun=True), revision="taken")
            return self.state

    outcome = await decided(delegation_request(), services_with(Raced()))
    assert outcome.event.data["reason_codes"] == ["ACTIVE_LIMIT_REACHED"]
    assert outcome.delegation is None


async def test_who_loses_every_race_gives_up_and_says_why() -> None:
    class Flickering(InMemoryControlStore):
        """A control store that shows a free slot, which is taken by the time it is acquired."""

        reads = 0

        async def read(self) -> ControlState:
            self.reads += 1
            return ControlState(leases=leases(19 if self.reads % 2 else 20, has_begun=True))

    outcome = await decided(delegation_request(), services_with(Flickering()))
    assert outcome.event.data["reason_codes"] == ["ACTIVE_LIMIT_REACHED"]


async def test_ten_questions_at_once_take_no_more_slots_than_there_are() -> None:
    services = services_with(subagents_max_active=4)
    outcomes = await asyncio.gather(
        *(decided(delegation_request(request_changes={"run_id": f"run-{n}"}), services) for n in range(10))
    )
    assert sum(one.delegation is not None for one in outcomes) == 4
    refused = [one.event.data["reason_codes"] for one in outcomes if one.delegation is None]
    assert refused == [["ACTIVE_LIMIT_REACHED"]] * 6


async def test_a_step_that_runs_again_after_a_crash_has_the_slots_of_its_first_attempt() -> None:
    services = services_with(subagents_max_active=1)
    first = await decided(delegation_request(), services, completed=False)
    again = await decided(delegation_request(), services)
    assert [start.child_id for start in again.starts] == [start.child_id for start in first.starts]
    assert (await read_control(services.settings, services.subagent_control)).waiting == 1
    other = await decided(delegation_request(request_changes={"run_id": "run-2"}), services)
    assert other.event.data["reason_codes"] == ["ACTIVE_LIMIT_REACHED"]


async def test_children_of_a_step_that_was_lost_in_a_crash_have_their_time_again() -> None:
    services = services_with()
    await decided(delegation_request(asked_s_ago=60), services, completed=False)
    again = await decided(delegation_request(asked_s_ago=60, resumed_s_ago=0), services)
    assert again.delegation is not None
    (task,) = again.delegation.tasks
    whole = timedelta(milliseconds=task.budget.max_child_latency_ms)
    assert task.deadline - datetime.now(UTC) > whole - timedelta(seconds=5)
    assert again.until == task.deadline + CRASH_GRACE


async def test_two_attempts_at_once_start_the_same_children_in_the_same_slots() -> None:
    services = services_with()
    first, second = await asyncio.gather(
        decided(delegation_request(), services, completed=False),
        decided(delegation_request(asked_s_ago=1), services, completed=False),
    )
    assert [start.child_id for start in first.starts] == [start.child_id for start in second.starts]
    assert (await read_control(services.settings, services.subagent_control)).waiting == 1


async def test_a_second_attempt_counts_what_the_first_one_used() -> None:
    services = services_with()
    first = (await decided(summary("a", "b"), services)).delegation
    assert first is not None
    for task in first.tasks:
        state = SubagentState(
            child_id=task.child_id,
            profile="doc_reader",
            status="done",
            started_at=datetime.now(UTC),
            tokens=1_000,
        )
        await keep_state(services, RUN, STEP, state, task.index)
    limit = await decided(again(), services)
    assert limit.event.data["reason_codes"] == ["REQUEST_LIMIT_REACHED"]


async def test_what_earlier_sub_agents_cost_is_no_longer_there_to_spend() -> None:
    services = services_with(subagents_max_per_request=5)
    first = (await decided(comparison("a", "b"), services)).delegation
    assert first is not None
    child_id = first.tasks[0].child_id
    state = SubagentState(
        child_id=child_id, profile="comparator", started_at=datetime.now(UTC), tokens=5_000, cost_usd=0.06
    )
    await keep_state(services, RUN, STEP, state)
    outcome = await decided(again(), services)
    assert outcome.delegation is not None
    (task,) = outcome.delegation.tasks
    assert task.budget.max_child_cost_usd == pytest.approx(0.02)
    assert set(await child_ids(services.run_log, services.blobs, RUN)) == {
        first.tasks[0].child_id,
        task.child_id,
    }


async def test_of_a_sub_agent_that_left_nothing_the_whole_budget_counts() -> None:
    services = services_with(subagents_max_per_request=5, max_total_tokens_per_request=16_000)
    assert (await decided(comparison("a", "b"), services)).delegation is not None
    outcome = await decided(again(), services)
    assert outcome.event.data["reason_codes"] == ["TOKEN_BUDGET_EXHAUSTED"]


def again() -> DelegationRequest:
    """Return the request of a later step in which the model calls `delegate`."""
    call = DelegateParameters(task="Which pump?", profile="evidence_builder")
    return replace(delegation_request(), step=9, call=call)
