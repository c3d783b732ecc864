"""Tests for the decision to delegate: based on current facts, stored once, and never blocking an answer."""

import asyncio
import json
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.answering import delegated_documents
from shared.answering.control_state import ControlState
from shared.answering.policy import REASON_WORDS
from shared.answering.subagent_budget import CRASH_GRACE
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import CallLimits
from shared.platform.search import SearchPage, SearchRequest
from shared.platform.telemetry import LOGGER_NAME
from shared.tools.models import WebHit
from shared.tools.web_search import WebSearch
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.stores_subagents import InMemoryControlStore
from tests.unit.subagents.delegation_cases import EVENT_FIELDS
from tests.unit.subagents.delegation_requests import (
    RUN,
    comparison,
    decided,
    delegation_request,
    hit,
    library,
    long_record,
    record,
    services_with,
    summary,
)

NAME = "delegation_policy_decision"


@pytest.fixture
def info_log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    return caplog


async def event_data_of(request: Any, readable: tuple[str, ...] = (), **settings: Any) -> dict[str, Any]:
    return (await decided(request, await library(services_with(**settings), *readable))).event.data


async def test_unsure_evidence_is_delegated_within_what_is_left() -> None:
    services = services_with()
    before = datetime.now(UTC)
    outcome = await decided(delegation_request(asked_s_ago=10), services)
    assert outcome.delegation is not None
    (task,) = outcome.delegation.tasks
    assert (task.child_id, task.profile) == (f"{RUN}:s004c0", "evidence_builder")
    assert task.question == "At what pressure does the pump run?"
    assert (task.doc_ids, task.tools) == ((), ("retrieve_documents", "query_metadata"))
    assert 9_000 < task.budget.max_child_latency_ms <= 10_000
    assert task.budget.max_child_tokens == 8_000
    assert before + timedelta(seconds=9) < task.deadline <= datetime.now(UTC) + timedelta(seconds=10)
    assert outcome.until == task.deadline + CRASH_GRACE
    (start,) = outcome.starts
    assert (start.child_id, start.profile, start.max_tokens) == (task.child_id, task.profile, 8_000)


async def test_a_deadline_is_never_later_than_the_contract_allows() -> None:
    outcome = await decided(delegation_request(), services_with())
    assert outcome.delegation is not None
    latest = datetime.now(UTC) + timedelta(milliseconds=15_000)
    assert all(task.deadline <= latest for task in outcome.delegation.tasks)


async def test_a_summary_of_several_documents_is_shared_out_over_readers() -> None:
    outcome = await decided(summary("a", "b", "c"), services_with())
    assert outcome.delegation is not None
    first, second = outcome.delegation.tasks
    assert (first.profile, first.doc_ids, second.doc_ids) == ("doc_reader", ("a", "c"), ("b",))
    assert [start.child_id for start in outcome.starts] == [f"{RUN}:s004c0", f"{RUN}:s004c1"]


async def test_what_readers_may_use_together_is_what_is_left() -> None:
    tight: dict[str, Any] = {"max_total_tokens_per_request": 16_000, "max_subagent_cost_usd": 0.05}
    outcome = await decided(summary("a", "b"), services_with(**tight))
    assert outcome.delegation is not None
    budgets = [task.budget for task in outcome.delegation.tasks]
    assert len(budgets) == 2
    assert sum(budget.max_child_tokens for budget in budgets) <= 16_000 - 6_000 - 1_000
    assert sum(budget.max_child_cost_usd for budget in budgets) <= 0.05


async def test_where_two_readers_would_starve_one_reads_both() -> None:
    outcome = await decided(summary("a", "b"), services_with(max_total_tokens_per_request=10_500))
    assert outcome.delegation is not None
    (task,) = outcome.delegation.tasks
    assert task.doc_ids == ("a", "b")


async def test_a_comparison_is_one_task_about_all_its_documents() -> None:
    outcome = await decided(comparison("a", "b"), services_with())
    assert outcome.delegation is not None
    (task,) = outcome.delegation.tasks
    assert (task.profile, task.doc_ids) == ("comparator", ("a", "b"))


async def test_a_comparison_that_names_no_document_searches_everywhere() -> None:
    documents = tuple(f"d{n}" for n in range(9))
    outcome = await decided(comparison(*documents, names_documents=False), services_with())
    assert outcome.delegation is not None
    assert outcome.delegation.tasks[0].doc_ids == ()


async def test_more_chosen_documents_than_fit_give_way_to_those_with_evidence() -> None:
    chosen = tuple(f"d{n}" for n in range(20))
    evidence_changes = {"hits": (hit("d19"), hit("d7")), "records": tuple(map(long_record, chosen))}
    outcome = await decided(
        delegation_request(
            request_changes={"doc_ids": chosen},
            evidence_changes=evidence_changes,
            plan_changes={"query_type": "COMPARISON", "intent": "compare_docs"},
        ),
        services_with(),
    )
    assert outcome.delegation is not None
    assert outcome.delegation.tasks[0].doc_ids == ("d19", "d7", "d0", "d1", "d2", "d3")


async def test_deeper_work_that_is_asked_for_is_a_reason() -> None:
    sure = {"hits": (hit("manual", 0, 0.7), hit("other", 0, 0.5))}
    plain = await event_data_of(delegation_request(evidence_changes=sure, request_changes={"deep": False}))
    deep = await event_data_of(delegation_request(evidence_changes=sure, request_changes={"deep": True}))
    assert plain["reason_codes"] == ["NO_TRIGGER"]
    assert (deep["decision"], deep["reason_codes"]) == ("delegate", ["DEEP_MODE_REQUESTED"])


async def test_a_table_that_fails_costs_no_answer(info_log: pytest.LogCaptureFixture) -> None:
    class Broken(InMemoryControlStore):
        async def read(self) -> ControlState:
            raise DependencyError("The table is out of reach.")

    outcome = await decided(delegation_request(), services_with(Broken()))
    assert (outcome.delegation, outcome.event.data["reason_codes"]) == (None, ["POLICY_EVAL_ERROR"])
    failed = [line for line in map(json.loads, info_log.messages) if line["event"] == "delegation.failed"]
    assert [line["error_type"] for line in failed] == ["DependencyError"]


async def test_a_look_up_that_hangs_keeps_no_answer_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(index: InMemorySearchIndex, request: SearchRequest) -> SearchPage:
        await asyncio.sleep(60)
        pytest.fail("it was waited for")

    monkeypatch.setattr(delegated_documents, "LOOKUP_TIMEOUT_S", 0.01)
    monkeypatch.setattr(InMemorySearchIndex, "search", hang)
    event_data = await event_data_of(
        delegation_request(request_changes={"doc_ids": ("appendix",)}), ("appendix",)
    )
    assert event_data["reason_codes"] == ["POLICY_EVAL_ERROR"]


async def test_a_document_of_which_nothing_was_found_is_looked_up_with_the_askers_rights() -> None:
    chosen = delegation_request(request_changes={"doc_ids": ("manual", "appendix")})
    assert (await event_data_of(chosen, ("appendix",)))["decision"] == "delegate"
    assert (await event_data_of(chosen))["reason_codes"] == ["TARGET_NOT_READABLE"]


async def test_documents_of_which_something_was_found_are_not_looked_up() -> None:
    chosen = delegation_request(request_changes={"doc_ids": ("manual",)})
    assert (await event_data_of(chosen))["decision"] == "delegate"


@pytest.mark.parametrize(
    ("asked_s_ago", "resumed_s_ago", "decision"),
    [(14, None, "no_delegate"), (86_400, 2, "delegate"), (86_400, 14, "no_delegate"), (-5, None, "delegate")],
)
async def test_the_time_that_a_person_takes_is_not_the_runs(
    asked_s_ago: float, resumed_s_ago: float | None, decision: str
) -> None:
    event_data = await event_data_of(delegation_request(asked_s_ago=asked_s_ago, resumed_s_ago=resumed_s_ago))
    assert event_data["decision"] == decision
    assert ("LATENCY_BUDGET_EXHAUSTED" in event_data["reason_codes"]) is (decision == "no_delegate")
    assert event_data["latency_budget_ms"] <= 15_000


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
    request = delegation_request(request_changes={"deep": False})
    assert (await event_data_of(request, **settings))["reason_codes"] == [code]


async def test_a_tool_that_is_not_allowed_is_in_no_task() -> None:
    restricted: dict[str, Any] = {
        "subagents_restricted_tools_only": True,
        "subagents_restricted_tools": "retrieve_documents",
    }
    outcome = await decided(delegation_request(), services_with(**restricted))
    assert outcome.delegation is not None
    assert [task.tools for task in outcome.delegation.tasks] == [("retrieve_documents",)]


async def test_a_decision_is_told_and_logged_as_the_contract_says(info_log: pytest.LogCaptureFixture) -> None:
    outcome = await decided(delegation_request(request_changes={"deep": False}), services_with())
    lines = [json.loads(entry.getMessage()) for entry in info_log.records if entry.name == LOGGER_NAME]
    (line,) = [line for line in lines if line["event"] == NAME]
    contract = EVENT_FIELDS
    assert line.keys() - {"timestamp", "level"} == contract
    event_data = outcome.event.data
    assert event_data.keys() == contract | {"step", "state", "reasons"}
    assert {field: event_data[field] for field in contract} == {field: line[field] for field in contract}
    assert event_data["reasons"] == [REASON_WORDS["LOW_RETRIEVAL_CONFIDENCE"]]


async def test_neither_question_nor_person_is_in_the_log(info_log: pytest.LogCaptureFixture) -> None:
    await decided(delegation_request(), services_with())
    assert "secret pump" not in info_log.text
    assert "anna" not in info_log.text


class Web(WebSearch):
    """A search engine that must not be called during the decision."""

    async def search(self, query: str, count: int, limits: CallLimits) -> list[WebHit]:
        pytest.fail("what is asked was told to outsiders")


@pytest.mark.parametrize(
    ("settings", "department", "profile"),
    [
        ({}, "Sales", "web_verifier"),
        ({"subagents_sensitive_departments": "Legal"}, "Legal", "evidence_builder"),
        ({"subagents_compliance_mode": "strict"}, "Sales", "evidence_builder"),
        ({"subagents_restricted_tools_only": True}, "Sales", "evidence_builder"),
    ],
)
async def test_the_web_is_a_tool_where_it_is_configured_and_nothing_forbids_it(
    settings: dict[str, Any], department: str, profile: str
) -> None:
    unsure = delegation_request(evidence_changes={"records": (record("manual", department=department),)})
    outcome = await decided(unsure, replace(services_with(**settings), web_search=Web()))
    assert outcome.delegation is not None
    (task,) = outcome.delegation.tasks
    assert task.profile == profile
    assert ("web_search" in task.tools) is (profile == "web_verifier")
    alone = await decided(unsure, services_with(**settings))
    assert alone.delegation is not None
    assert alone.delegation.tasks[0].profile == "evidence_builder"
