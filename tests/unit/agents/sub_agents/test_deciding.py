"""Delegation is decided on what is known at that moment, stored once, and never in an answer's way."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.agents.sub_agents import facts
from shared.agents.sub_agents.control import read_control, settle
from shared.agents.sub_agents.stored import child_ids, find_delegation, put_delegation, state_path
from shared.core.subagent_control import MIN_OUTCOMES
from shared.errors import DependencyError
from shared.models.delegation import REASON_WORDS, DelegationEvent
from shared.models.documents import DocumentRecord
from shared.models.names import WORK
from shared.models.subagent_control import ControlState, Lease
from shared.models.subagents import SubagentEnd, SubagentState
from shared.services import Services
from shared.telemetry import LOGGER_NAME
from tests.fakes.services import fake_services, fake_settings
from tests.fakes.stores_subagents import InMemoryControlStore
from tests.unit.agents.sub_agents.occasions import (
    RUN,
    STEP,
    comparison,
    decided,
    finding,
    hit,
    occasion,
    record,
    summary,
)

NAME = "delegation_policy_decision"


class UntouchedControl(InMemoryControlStore):
    """A table that nobody may look at."""

    async def read(self) -> ControlState:
        pytest.fail("the table of sub-agents was asked for nothing")


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    return caplog


def services_with(control: InMemoryControlStore | None = None, **settings: Any) -> Services:
    replaced = {"subagent_control": control} if control else {}
    return fake_services(settings=fake_settings(**settings), **replaced)


def leases(count: int, *, begun: bool, prefix: str = "other") -> tuple[Lease, ...]:
    expires_at = datetime.now(UTC) + timedelta(seconds=60)
    return tuple(Lease(child_id=f"{prefix}-{n}", expires_at=expires_at, begun=begun) for n in range(count))


def control_with(**state: Any) -> InMemoryControlStore:
    control = InMemoryControlStore()
    control.state = ControlState(**state)
    return control


async def told(given: Any, find: Any = None, **settings: Any) -> dict[str, Any]:
    name, data = (await decided(given, services_with(**settings), find)).event
    assert name == "STATUS"
    return data


async def test_unsure_evidence_is_delegated_within_what_is_left() -> None:
    services = services_with()
    before = datetime.now(UTC)
    made = await decided(occasion(asked_s_ago=10), services)
    assert made.delegation is not None
    (task,) = made.delegation.tasks
    assert (task.child_id, task.profile) == (f"{RUN}:s004c0", "evidence_builder")
    assert task.question == "At what pressure does the pump run?"
    assert (task.doc_ids, task.tools) == ((), ("retrieve_documents", "query_metadata"))
    assert 9_000 < task.budget.max_child_latency_ms <= 10_000
    assert task.budget.max_child_tokens == 8_000
    assert before + timedelta(seconds=9) < task.deadline <= datetime.now(UTC) + timedelta(seconds=10)
    assert made.until == task.deadline
    (start,) = made.starts
    assert (start.profiles, start.max_turns) == (("evidence_builder", "doc_reader"), 3)
    assert (start.retry_count, start.retry_backoff_ms) == (1, 750)


async def test_a_deadline_is_never_later_than_the_contract_allows() -> None:
    made = await decided(occasion(), services_with())
    assert made.until is not None
    assert made.until <= datetime.now(UTC) + timedelta(milliseconds=15_000)


async def test_an_ordinary_question_asks_nobody_about_other_sub_agents() -> None:
    clear = occasion(found={"hits": (hit("manual", 0, 0.9), hit("other", 0, 0.2))})
    made = await decided(clear, services_with(UntouchedControl()))
    assert made.event[1]["reason_codes"] == ["CONFIDENT_FACT_LOOKUP"]
    assert (made.delegation, made.starts, made.until, made.defer_s) == (None, (), None, None)


async def test_a_summary_of_several_documents_is_shared_out_over_readers() -> None:
    made = await decided(summary("a", "b", "c"), services_with())
    assert made.delegation is not None
    first, second = made.delegation.tasks
    assert (first.profile, first.doc_ids, second.doc_ids) == ("doc_reader", ("a", "c"), ("b",))
    assert [start.child_id for start in made.starts] == [f"{RUN}:s004c0", f"{RUN}:s004c1"]


async def test_what_readers_may_use_together_is_what_is_left() -> None:
    tight: dict[str, Any] = {"max_total_tokens_per_request": 16_000, "max_subagent_cost_usd": 0.05}
    made = await decided(summary("a", "b"), services_with(**tight))
    assert made.delegation is not None
    budgets = [task.budget for task in made.delegation.tasks]
    assert len(budgets) == 2
    assert sum(budget.max_child_tokens for budget in budgets) <= 16_000 - 6_000 - 1_000
    assert sum(budget.max_child_cost_usd for budget in budgets) <= 0.05


async def test_where_two_readers_would_starve_one_reads_both() -> None:
    made = await decided(summary("a", "b"), services_with(max_total_tokens_per_request=10_500))
    assert made.delegation is not None
    (task,) = made.delegation.tasks
    assert task.doc_ids == ("a", "b")


async def test_a_comparison_is_one_task_about_all_its_documents() -> None:
    made = await decided(comparison("a", "b"), services_with())
    assert made.delegation is not None
    (task,) = made.delegation.tasks
    assert (task.profile, task.doc_ids) == ("comparator", ("a", "b"))
    assert made.starts[0].profiles == ("comparator", "doc_reader")


async def test_a_comparison_that_names_no_document_is_about_those_that_were_found() -> None:
    documents = tuple(f"d{n}" for n in range(9))
    made = await decided(comparison(*documents, named=False), services_with())
    assert made.delegation is not None
    assert made.delegation.tasks[0].doc_ids == documents[:6]


async def test_more_chosen_documents_than_fit_give_way_to_those_with_evidence() -> None:
    chosen = tuple(f"d{n}" for n in range(20))
    found = {"hits": (hit("d19"), hit("d7")), "records": tuple(map(record, chosen))}
    made = await decided(
        occasion(
            asked={"doc_ids": chosen},
            found=found,
            planned={"query_type": "COMPARISON", "intent": "compare_docs"},
        ),
        services_with(),
    )
    assert made.delegation is not None
    assert made.delegation.tasks[0].doc_ids == ("d19", "d7", "d0", "d1", "d2", "d3")


async def test_deeper_work_that_is_asked_for_is_a_reason() -> None:
    sure = {"hits": (hit("manual", 0, 0.7), hit("other", 0, 0.5))}
    plain = await told(occasion(found=sure))
    deep = await told(occasion(found=sure, asked={"deep": True}))
    assert plain["reason_codes"] == ["NO_TRIGGER"]
    assert (deep["decision"], deep["reason_codes"]) == ("delegate", ["DEEP_MODE_REQUESTED"])


async def test_slots_are_taken_before_children_start_and_are_free_after_them() -> None:
    services = services_with()
    made = await decided(summary("a", "b"), services)
    assert (await read_control(services)).waiting == 2
    await settle(services, [SubagentEnd(child_id=start.child_id, status="done") for start in made.starts])
    assert (await read_control(services)).waiting == 0


@pytest.mark.parametrize(
    ("state", "code", "decision"),
    [
        ({"leases": leases(20, begun=True)}, "ACTIVE_LIMIT_REACHED", "no_delegate"),
        # Ten at work and ten about to be: every slot is taken.
        (
            {"leases": (*leases(10, begun=True), *leases(10, begun=False, prefix="waiting"))},
            "ACTIVE_LIMIT_REACHED",
            "no_delegate",
        ),
        ({"leases": leases(20, begun=False)}, "QUEUE_FULL", "defer"),
        ({"opened_at": datetime.now(UTC)}, "CIRCUIT_OPEN", "no_delegate"),
    ],
)
async def test_other_sub_agents_and_their_failures_count(
    state: dict[str, Any], code: str, decision: str
) -> None:
    made = await decided(occasion(), services_with(control_with(**state)))
    assert made.event[1]["reason_codes"][0] == code
    assert (made.event[1]["decision"], made.delegation) == (decision, None)
    assert made.defer_s == (0.75 if decision == "defer" else None)


async def test_sub_agents_that_fail_too_often_are_paused() -> None:
    services = services_with()
    for number in range(MIN_OUTCOMES):
        made = await decided(occasion(asked={"run_id": f"run-{number}"}), services)
        assert made.delegation is not None
        await settle(services, [SubagentEnd(child_id=made.starts[0].child_id, status="failed")])
    made = await decided(occasion(), services)
    assert made.event[1]["reason_codes"] == ["CIRCUIT_OPEN"]


async def test_with_one_slot_left_one_reader_reads_both_documents() -> None:
    made = await decided(summary("a", "b"), services_with(control_with(leases=leases(19, begun=True))))
    assert made.delegation is not None
    assert [task.doc_ids for task in made.delegation.tasks] == [("a", "b")]


async def test_who_was_too_late_for_a_slot_decides_anew() -> None:
    class Raced(InMemoryControlStore):
        """Between the first look and the writing somebody else takes the last slots."""

        reads = 0

        async def read(self) -> ControlState:
            self.reads += 1
            if self.reads == 2:
                self.state = ControlState(leases=leases(20, begun=True), revision="taken")
            return self.state

    made = await decided(occasion(), services_with(Raced()))
    assert made.event[1]["reason_codes"] == ["ACTIVE_LIMIT_REACHED"]
    assert made.delegation is None


async def test_who_loses_every_race_gives_up_and_says_why() -> None:
    class Flickering(InMemoryControlStore):
        """Whoever looks sees a free slot; whoever takes it finds it taken."""

        reads = 0

        async def read(self) -> ControlState:
            self.reads += 1
            return ControlState(leases=leases(19 if self.reads % 2 else 20, begun=True))

    made = await decided(occasion(), services_with(Flickering()))
    assert made.event[1]["reason_codes"] == ["ACTIVE_LIMIT_REACHED"]


async def test_ten_questions_at_once_take_no_more_slots_than_there_are() -> None:
    services = services_with(subagents_max_active=4)
    made = await asyncio.gather(
        *(decided(occasion(asked={"run_id": f"run-{n}"}), services) for n in range(10))
    )
    assert sum(one.delegation is not None for one in made) == 4
    refused = [one.event[1]["reason_codes"] for one in made if one.delegation is None]
    assert refused == [["ACTIVE_LIMIT_REACHED"]] * 6


async def test_a_step_that_runs_twice_decides_once() -> None:
    services = services_with()
    first = await decided(occasion(), services)
    again = await decided(occasion(asked_s_ago=20, repeated=True), services)
    assert again.delegation == first.delegation
    assert again.starts == first.starts
    assert (await read_control(services)).waiting == 1


async def test_of_two_attempts_at_once_the_first_to_store_counts() -> None:
    services = services_with()
    first, second = await asyncio.gather(
        decided(occasion(), services), decided(occasion(asked_s_ago=1), services)
    )
    stored = await find_delegation(services.blobs, RUN, STEP)
    assert first.delegation == second.delegation == stored
    assert (await read_control(services)).waiting == 1


async def test_a_second_attempt_counts_what_the_first_one_used() -> None:
    services = services_with()
    first = (await decided(summary("a", "b"), services)).delegation
    assert first is not None
    for task in first.tasks:
        state = SubagentState(child_id=task.child_id, profile="doc_reader", status="done", tokens=1_000)
        await services.blobs.write(WORK, state_path(RUN, STEP, task.index), state.model_dump_json().encode())
    limit = await decided(_at_step(occasion(failures=1), 9), services)
    assert limit.event[1]["reason_codes"] == ["REQUEST_LIMIT_REACHED"]


async def test_what_earlier_sub_agents_cost_is_no_longer_there_to_spend() -> None:
    services = services_with(subagents_max_per_request=5)
    first = (await decided(comparison("a", "b"), services)).delegation
    assert first is not None
    state = SubagentState(child_id=first.tasks[0].child_id, profile="comparator", tokens=5_000, cost_usd=0.06)
    await services.blobs.write(WORK, state_path(RUN, STEP, 0), state.model_dump_json().encode())
    made = await decided(_at_step(occasion(failures=1), 9), services)
    assert made.delegation is not None
    (task,) = made.delegation.tasks
    assert task.budget.max_child_cost_usd == pytest.approx(0.02)
    assert set(await child_ids(services.blobs, RUN)) == {first.tasks[0].child_id, task.child_id}


async def test_of_a_sub_agent_that_left_nothing_the_whole_budget_counts() -> None:
    services = services_with(subagents_max_per_request=5, max_total_tokens_per_request=16_000)
    assert (await decided(comparison("a", "b"), services)).delegation is not None
    made = await decided(_at_step(occasion(failures=1), 9), services)
    assert made.event[1]["reason_codes"] == ["TOKEN_BUDGET_EXHAUSTED"]


async def test_a_table_that_fails_costs_no_answer(written: pytest.LogCaptureFixture) -> None:
    class Broken(InMemoryControlStore):
        async def read(self) -> ControlState:
            raise DependencyError("The table is out of reach.")

    made = await decided(occasion(), services_with(Broken()))
    assert (made.delegation, made.event[1]["reason_codes"]) == (None, ["POLICY_EVAL_ERROR"])
    failed = [line for line in map(json.loads, written.messages) if line["event"] == "delegation.failed"]
    assert [line["error_type"] for line in failed] == ["DependencyError"]


async def test_a_look_up_that_hangs_keeps_no_answer_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def find(_: list[str]) -> dict[str, DocumentRecord]:
        await asyncio.sleep(60)
        return {}

    monkeypatch.setattr(facts, "_LOOKUP_TIMEOUT_S", 0.01)
    assert (await told(occasion(asked={"doc_ids": ("appendix",)}), find))["reason_codes"] == [
        "POLICY_EVAL_ERROR"
    ]


async def test_a_document_of_which_nothing_was_found_is_looked_up_with_the_askers_rights() -> None:
    chosen = occasion(asked={"doc_ids": ("manual", "appendix")})
    assert (await told(chosen, finding("appendix")))["decision"] == "delegate"
    assert (await told(chosen))["reason_codes"] == ["TARGET_NOT_READABLE"]


async def test_documents_of_which_something_was_found_are_not_looked_up() -> None:
    async def find(_: list[str]) -> dict[str, DocumentRecord]:
        pytest.fail("nothing is to be looked up")

    assert (await told(occasion(asked={"doc_ids": ("manual",)}), find))["decision"] == "delegate"


@pytest.mark.parametrize(
    ("asked_s_ago", "resumed_s_ago", "decision"),
    [(14, None, "no_delegate"), (86_400, 2, "delegate"), (86_400, 14, "no_delegate"), (-5, None, "delegate")],
)
async def test_the_time_that_a_person_takes_is_not_the_runs(
    asked_s_ago: float, resumed_s_ago: float | None, decision: str
) -> None:
    shown = await told(occasion(asked_s_ago=asked_s_ago, resumed_s_ago=resumed_s_ago))
    assert shown["decision"] == decision
    assert ("LATENCY_BUDGET_EXHAUSTED" in shown["reason_codes"]) is (decision == "no_delegate")
    assert shown["latency_budget_ms"] <= 15_000


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"subagents_enabled": False}, "SUBAGENTS_DISABLED"),
        ({"subagents_degraded_mode": True}, "DEGRADED_MODE"),
        ({"max_subagent_cost_usd": 0.001}, "COST_BUDGET_EXHAUSTED"),
        ({"max_total_tokens_per_request": 4_000}, "TOKEN_BUDGET_EXHAUSTED"),
        ({"subagents_max_active": 0}, "ACTIVE_LIMIT_REACHED"),
        ({"subagents_max_per_request": 0}, "REQUEST_LIMIT_REACHED"),
        (
            {"subagents_compliance_mode": "strict", "subagents_restricted_tools": "query_metadata"},
            "REQUIRED_TOOLS_RESTRICTED",
        ),
        ({"low_retrieval_confidence_top_score": 0.1}, "NO_TRIGGER"),
    ],
)
async def test_settings_decide(settings: dict[str, Any], code: str) -> None:
    assert (await told(occasion(), **settings))["reason_codes"] == [code]


async def test_a_tool_that_is_not_allowed_is_in_no_task() -> None:
    restricted: dict[str, Any] = {
        "subagents_restricted_tools_only": True,
        "subagents_restricted_tools": "retrieve_documents",
    }
    made = await decided(occasion(), services_with(**restricted))
    assert made.delegation is not None
    assert [task.tools for task in made.delegation.tasks] == [("retrieve_documents",)]


async def test_a_decision_is_told_and_logged_as_the_contract_says(written: pytest.LogCaptureFixture) -> None:
    made = await decided(occasion(), services_with())
    lines = [json.loads(entry.getMessage()) for entry in written.records if entry.name == LOGGER_NAME]
    (line,) = [line for line in lines if line["event"] == NAME]
    contract = set(DelegationEvent.model_fields)
    assert line.keys() - {"timestamp", "level"} == contract
    name, shown = made.event
    assert name == "STATUS"
    assert shown.keys() == contract | {"state", "reasons"}
    assert {field: shown[field] for field in contract} == {field: line[field] for field in contract}
    assert shown["reasons"] == [REASON_WORDS["LOW_RETRIEVAL_CONFIDENCE"]]


async def test_neither_question_nor_person_is_in_the_log(written: pytest.LogCaptureFixture) -> None:
    await decided(occasion(), services_with())
    assert "secret pump" not in written.text
    assert "anna" not in written.text


async def test_what_is_stored_is_never_replaced() -> None:
    services = services_with()
    first = (await decided(occasion(), services)).delegation
    assert first is not None
    other = first.model_copy(update={"tasks": ()})
    assert await put_delegation(services.blobs, RUN, other) == first


def _at_step(given: Any, step: int) -> Any:
    return type(given)(given.request, given.stored, given.evidence, failures=given.failures, step=step)
