"""Tests for the model's `delegate` calls: checked against the policy, and started once or refused."""

from dataclasses import replace
from typing import Any

import pytest

from shared.answering.delegated_documents import DelegationRequest
from shared.answering.delegation import DelegationOutcome
from shared.answering.results import call_result, collect
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


def call(given: DelegationRequest | None = None, **arguments: Any) -> DelegationRequest:
    """Return a call of `delegate` for a question that would get no sub-agent by itself."""
    values = {"task": "Find the proof.", "profile": "evidence_builder", **arguments}
    given = given or delegation_request(found=SURE, asked={"deep": False})
    return replace(given, call=DelegateParameters.model_validate(values))


async def refusal(given: DelegationRequest, services: Services, readable: tuple[str, ...] = ()) -> Any:
    made = await decided(given, await library(services, *readable))
    assert (made.starts, made.delegation) == ((), None)
    assert made.refusal is not None
    assert made.refusal["success"] is False
    assert made.refusal["hints"]
    return made.refusal


async def test_a_call_starts_the_sub_agent_that_the_model_asked_for() -> None:
    services = await library(services_with(), "other")
    made = await decided(call(doc_ids=("other",)), services)
    assert made.delegation is not None
    (task,) = made.delegation.tasks
    assert (task.question, task.profile, task.doc_ids) == ("Find the proof.", "evidence_builder", ("other",))
    assert made.event.data["reason_codes"] == ["MODEL_REQUESTED"]
    assert [one.child_id for one in made.starts] == [f"{RUN}:s{STEP:03d}c0"]
    assert made.refusal is None
    assert await stored_delegation(services, RUN, STEP) == made.delegation


async def test_several_documents_are_shared_out_over_readers() -> None:
    services = await library(services_with(), "a", "b")
    made = await decided(call(profile="doc_reader", doc_ids=("a", "b")), services)
    assert made.delegation is not None
    assert [task.doc_ids for task in made.delegation.tasks] == [("a",), ("b",)]


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
    made = await decided(call(), services)
    assert made.delegation is not None
    refused = await refusal(replace(call(), step=STEP + 2), services)
    assert "REQUEST_LIMIT_REACHED" in refused["reason_codes"]


async def test_documents_of_a_comparison_that_fit_are_to_be_read_by_the_model() -> None:
    services = await corpus_services(settings=fake_settings())
    short = call(comparison("report-2023", "report-2024", asked={"deep": False}), profile="comparator")
    found = {"hits": short.evidence.hits, "records": tuple(map(record, ("report-2023", "report-2024")))}
    short = replace(short, evidence=short.evidence.model_copy(update=found))
    refused = await refusal(short, services)
    assert refused["reason_codes"] == ["FITS_WHOLE"]
    assert "read_pages" in refused["hints"][0]


async def test_a_page_may_be_long() -> None:
    services = await corpus_services(settings=fake_settings())
    block = {"block_id": "sheet-1", "doc_id": "report-2023", "block_type": "text", "version": 1}
    row = {**block, "content": "word " * 20_000, "access_control_list": ["*"], "filename": "report-2023.xlsx"}
    await services.content_index.upload([row])
    given = comparison("report-2023", "report-2024", asked={"deep": False})
    short = {"records": tuple(map(record, ("report-2023", "report-2024")))}
    made = await decided(replace(given, evidence=given.evidence.model_copy(update=short)), services)
    assert made.delegation is not None
    assert made.delegation.decided.binding


async def test_evidence_that_fits_poorly_is_no_advice_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    made: DelegationOutcome = await decided(
        delegation_request(asked={"deep": False}), services_with(UntouchedControl())
    )
    assert (made.starts, made.delegation, made.defer_s) == ((), None, None)
    assert made.event.data["decision"] == "delegate"
    assert "LOW_RETRIEVAL_CONFIDENCE" in made.event.data["reason_codes"]
    assert made.advice == ""


async def test_what_children_bring_is_the_result_of_the_call() -> None:
    services = services_with()
    made = await decided(call(), services)
    assert made.delegation is not None
    given = call()
    await RunFiles(services.blobs, RUN).put_request(given.request)
    collected = await collect(await journal_of(services, RUN), STEP, given.evidence, services)
    told = call_result(collected, {one.block_id for one in given.evidence.hits})
    assert "Evidence finder" in told
    assert "<documents>" not in told  # no passage that was already shown


async def test_only_the_loop_can_start_sub_agents() -> None:
    result = await Delegate().execute(task="Find it.", profile="doc_reader")
    assert (result["success"], result["type"]) == (False, "ConfigurationError")
    assert (await Delegate().execute(task="Find it.", profile="root"))["type"] == "InvalidQueryError"
