"""Tests for the model's `delegate` calls: checked against the policy, and started once or refused."""

from dataclasses import replace
from typing import Any

import pytest

from shared.answering.delegation import DelegationOutcome
from shared.answering.delegation_request import DelegationRequest
from shared.answering.delegation_results import call_result, collect
from shared.runs.run_files import RunFiles
from shared.tools.delegate import Delegate, DelegateParameters
from shared.wiring import Services
from tests.fakes.services import fake_settings
from tests.unit.subagents.delegation_requests import (
    RUN,
    STEP,
    comparison,
    decided,
    delegation_request,
    hit,
    library,
    record,
    services_with,
)
from tests.unit.subagents.lines import journal_of, stored_delegation
from tests.unit.subagents.test_deciding_together import UntouchedControl
from tests.world import corpus_services

SURE = {"hits": (hit("manual", 0, 0.7), hit("other", 0, 0.5)), "records": (record("manual"),)}


def call(request: DelegationRequest | None = None, **arguments: Any) -> DelegationRequest:
    """Return a call of `delegate` for a question that would get no sub-agent by itself."""
    values = {"task": "Find the proof.", "profile": "evidence_builder", **arguments}
    request = request or delegation_request(evidence_changes=SURE, request_changes={"deep": False})
    return replace(request, call=DelegateParameters.model_validate(values))


async def refusal(request: DelegationRequest, services: Services, readable: tuple[str, ...] = ()) -> Any:
    outcome = await decided(request, await library(services, *readable))
    assert (outcome.starts, outcome.delegation) == ((), None)
    assert outcome.refusal is not None
    assert outcome.refusal["success"] is False
    assert outcome.refusal["hints"]
    return outcome.refusal


async def test_a_call_starts_the_sub_agent_that_the_model_asked_for() -> None:
    services = await library(services_with(), "other")
    outcome = await decided(call(doc_ids=("other",)), services)
    assert outcome.delegation is not None
    (task,) = outcome.delegation.tasks
    assert (task.question, task.profile, task.doc_ids) == ("Find the proof.", "evidence_builder", ("other",))
    assert outcome.event.data["reason_codes"] == ["MODEL_REQUESTED"]
    assert [one.child_id for one in outcome.starts] == [f"{RUN}:s{STEP:03d}c0"]
    assert outcome.refusal is None
    assert await stored_delegation(services, RUN, STEP) == outcome.delegation


async def test_several_documents_are_shared_out_over_readers() -> None:
    services = await library(services_with(), "a", "b")
    outcome = await decided(call(profile="doc_reader", doc_ids=("a", "b")), services)
    assert outcome.delegation is not None
    assert [task.doc_ids for task in outcome.delegation.tasks] == [("a",), ("b",)]


async def test_a_turn_that_runs_twice_starts_the_same_ones_once() -> None:
    services = services_with()
    first = await decided(call(), services, completed=False)
    again = await decided(call(), services)
    started = [(one.child_id, one.profile) for one in first.starts]
    assert started
    assert [(one.child_id, one.profile) for one in again.starts] == started


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"subagents_enabled": False}, "SUBAGENTS_DISABLED"),
        ({"max_subagent_cost_usd": 0}, "COST_BUDGET_EXHAUSTED"),
        ({"max_total_tokens_per_request": 7_000}, "TOKEN_BUDGET_EXHAUSTED"),
        ({"subagents_degraded_mode": True}, "DEGRADED_MODE"),
        ({"subagents_max_active": 0}, "ACTIVE_LIMIT_REACHED"),
    ],
)
async def test_gates_and_budgets_are_those_of_the_policy(settings: dict[str, Any], code: str) -> None:
    refused = await refusal(call(), services_with(**settings))
    assert code in refused["reason_codes"]
    assert refused["type"] == "BudgetExceededError"


async def test_a_document_that_the_asker_may_not_read_is_as_one_that_there_is_not() -> None:
    refused = await refusal(call(doc_ids=("secret",)), services_with())
    assert (refused["type"], refused["reason_codes"]) == ("DocumentNotFoundError", ["TARGET_NOT_READABLE"])


async def test_sub_agents_that_the_question_had_before_count() -> None:
    services = services_with(subagents_max_per_request=1)
    outcome = await decided(call(), services)
    assert outcome.delegation is not None
    refused = await refusal(replace(call(), step=STEP + 2), services)
    assert "REQUEST_LIMIT_REACHED" in refused["reason_codes"]


async def test_documents_of_a_comparison_that_fit_are_to_be_read_by_the_model() -> None:
    services = await corpus_services(settings=fake_settings())
    short = call(
        comparison("report-2023", "report-2024", request_changes={"deep": False}), profile="comparator"
    )
    evidence_changes = {
        "hits": short.evidence.hits,
        "records": tuple(map(record, ("report-2023", "report-2024"))),
    }
    short = replace(short, evidence=short.evidence.model_copy(update=evidence_changes))
    refused = await refusal(short, services)
    assert refused["reason_codes"] == ["FITS_WHOLE"]
    assert "read_pages" in refused["hints"][0]


async def test_a_page_may_be_long() -> None:
    services = await corpus_services(settings=fake_settings())
    block = {"block_id": "sheet-1", "doc_id": "report-2023", "block_type": "text", "version": 1}
    row = {**block, "content": "word " * 20_000, "access_control_list": ["*"], "filename": "report-2023.xlsx"}
    await services.content_index.upload([row])
    request = comparison("report-2023", "report-2024", request_changes={"deep": False})
    evidence_changes = {"records": tuple(map(record, ("report-2023", "report-2024")))}
    outcome = await decided(
        replace(request, evidence=request.evidence.model_copy(update=evidence_changes)), services
    )
    assert outcome.delegation is not None
    assert outcome.delegation.decided.binding


async def test_evidence_that_fits_poorly_is_no_advice_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome: DelegationOutcome = await decided(
        delegation_request(request_changes={"deep": False}), services_with(UntouchedControl())
    )
    assert (outcome.starts, outcome.delegation, outcome.defer_s) == ((), None, None)
    assert outcome.event.data["decision"] == "delegate"
    assert "LOW_RETRIEVAL_CONFIDENCE" in outcome.event.data["reason_codes"]
    assert outcome.advice == ""


async def test_what_children_bring_is_the_result_of_the_call() -> None:
    services = services_with()
    outcome = await decided(call(), services)
    assert outcome.delegation is not None
    delegate_call = call()
    await RunFiles(services.blobs, RUN).put_request(delegate_call.request)
    collected = await collect(await journal_of(services, RUN), STEP, delegate_call.evidence, services)
    text = call_result(collected, {one.block_id for one in delegate_call.evidence.hits})
    assert "Evidence finder" in text
    assert "<documents>" not in text  # no passage that was already shown


async def test_only_the_loop_can_start_sub_agents() -> None:
    result = await Delegate().execute(task="Find it.", profile="doc_reader")
    assert (result["success"], result["type"]) == (False, "ConfigurationError")
    assert (await Delegate().execute(task="Find it.", profile="root"))["type"] == "InvalidQueryError"
