"""The delegation policy is asked for each answer, told and logged, and never in an answer's way."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from shared.agents import delegating
from shared.agents.delegating import FindDocuments, delegation_status
from shared.agents.inline import run_to_end
from shared.agents.runs import begin_run, owned_run, view_run
from shared.core.delegation_input import Occasion
from shared.errors import DependencyError
from shared.models.chat import ChatRequest
from shared.models.delegation import DelegationEvent, ProfileName
from shared.models.documents import DocumentRecord
from shared.models.events import RunEvent
from shared.models.runs import RunRequest
from shared.models.search import Hit
from shared.models.working import Evidence, StoredPlan
from shared.services import Services
from shared.telemetry import LOGGER_NAME
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.services import fake_settings
from tests.unit.agents.world import ANNA, Model, plan, world

NAME = "delegation_policy_decision"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were sub-agents of every kind."""
    monkeypatch.setattr(delegating, "INSTALLED_PROFILES", get_args(ProfileName))


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    return caplog


def record(doc_id: str, **changes: Any) -> DocumentRecord:
    return DocumentRecord(doc_id=doc_id, filename="f.pdf", upload_date=datetime.now(UTC), **changes)


def occasion(
    doc_ids: tuple[str, ...] = (), asked_s_ago: float = 0, resumed_s_ago: float | None = None, **found: Any
) -> Occasion:
    """Five passages of one document, none of which stands out, for a question of just now."""
    now = datetime.now(UTC)
    request = RunRequest(
        run_id="run-1",
        thread_id="thread-1",
        user=ANNA,
        question="Which secret pump?",
        doc_ids=doc_ids,
        created_at=now - timedelta(seconds=asked_s_ago),
    )
    resumed_at = None if resumed_s_ago is None else now - timedelta(seconds=resumed_s_ago)
    hits = [Hit(block_id=f"b{n}", doc_id="manual", filename="f.pdf", score=0.5) for n in range(5)]
    evidence = {"hits": tuple(hits), "records": (record("manual"),), **found}
    stored = StoredPlan(plan=plan(), resumed_at=resumed_at)
    return Occasion(request, stored, Evidence.model_validate(evidence))


def finding(*doc_ids: str) -> FindDocuments:
    async def find(wanted: list[str]) -> dict[str, DocumentRecord]:
        return {doc_id: record(doc_id) for doc_id in wanted if doc_id in doc_ids}

    return find


async def told(given: Occasion, find: FindDocuments | None = None, **settings: Any) -> dict[str, Any]:
    name, data = await delegation_status(given, fake_settings(**settings), find or finding())
    assert name == "STATUS"
    return data


async def ask(services: Services, **body: Any) -> list[RunEvent]:
    chat = ChatRequest.model_validate({"question": "At what pressure does the pump run?", **body})
    request = await begin_run(chat, ANNA, services)
    await run_to_end(request.run_id, services)
    view = await view_run(await owned_run(request.run_id, ANNA, services), services)
    assert view.status == "completed"
    assert isinstance(services.run_log, InMemoryRunLog)
    return services.run_log.events(request.run_id)


def decisions(events: list[RunEvent]) -> list[dict[str, Any]]:
    return [event.data for event in events if event.data.get("state") == "delegation"]


def logged(written: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    lines = [json.loads(record.getMessage()) for record in written.records if record.name == LOGGER_NAME]
    return [line for line in lines if line["event"] == NAME]


async def test_each_answer_has_one_decision_in_the_stream_and_in_the_log(
    written: pytest.LogCaptureFixture,
) -> None:
    events = await ask(await world())
    (shown,) = decisions(events)
    (line,) = logged(written)
    assert {"timestamp", "level"} <= line.keys()
    contract = set(DelegationEvent.model_fields)
    assert line.keys() - {"timestamp", "level"} == contract
    assert shown.keys() == contract | {"step", "state", "reasons"}
    assert {name: shown[name] for name in contract} == {name: line[name] for name in contract}
    position = [event.data.get("state") for event in events].index("delegation")
    writing = [event.name for event in events].index("TOKEN")
    assert position < writing


async def test_without_sub_agents_every_decision_says_so(written: pytest.LogCaptureFixture) -> None:
    (shown,) = decisions(await ask(await world()))
    assert (shown["decision"], shown["reason_codes"]) == ("no_delegate", ["SUBAGENTS_UNAVAILABLE"])
    assert shown["reasons"] == ["No sub-agent is installed that could take this on."]
    assert (shown["selected_profile"], shown["latency_budget_ms"], shown["token_budget"]) == (None, 0, 0)


async def test_a_listing_is_decided_on_too() -> None:
    listing = Model(plan(query_type="LISTING", intent="exploratory"), answer="Three documents.")
    assert len(decisions(await ask(await world(listing)))) == 1


@pytest.mark.usefixtures("installed")
async def test_an_answer_that_there_is_none_counts_in_the_next_decision() -> None:
    abstaining = Model(plan(), answer='<abstain missing="the pressure" next_step="Ask."/>')
    services = await world(abstaining, settings=fake_settings(answer_blocks=1))  # the second finds another
    first, second = decisions(await ask(services))
    assert "PRIOR_FAILURES" not in first["reason_codes"]
    assert "PRIOR_FAILURES" in second["reason_codes"]


@pytest.mark.usefixtures("installed")
async def test_unsure_evidence_would_be_delegated_within_what_is_left() -> None:
    shown = await told(occasion(asked_s_ago=10))
    assert (shown["decision"], shown["reason_codes"]) == ("delegate", ["LOW_RETRIEVAL_CONFIDENCE"])
    assert shown["selected_profile"] == "evidence_builder"
    assert 9_000 < shown["latency_budget_ms"] <= 10_000
    assert shown["token_budget"] == 8_000


@pytest.mark.usefixtures("installed")
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


@pytest.mark.usefixtures("installed")
async def test_a_document_of_which_nothing_was_found_is_looked_up_with_the_askers_rights() -> None:
    chosen = occasion(doc_ids=("manual", "appendix"))
    assert (await told(chosen, finding("appendix")))["decision"] == "delegate"
    assert (await told(chosen))["reason_codes"] == ["TARGET_NOT_READABLE"]


@pytest.mark.usefixtures("installed")
async def test_documents_of_which_something_was_found_are_not_looked_up() -> None:
    async def find(_: list[str]) -> dict[str, DocumentRecord]:
        pytest.fail("nothing is to be looked up")

    assert (await told(occasion(doc_ids=("manual",)), find))["decision"] == "delegate"


@pytest.mark.usefixtures("installed")
async def test_a_policy_that_fails_costs_no_answer(
    written: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(_: list[str]) -> dict[str, DocumentRecord]:
        raise DependencyError("The index is out of reach.")

    shown = await told(occasion(doc_ids=("appendix",)), find)
    assert (shown["decision"], shown["reason_codes"]) == ("no_delegate", ["POLICY_EVAL_ERROR"])
    failed = [line for line in map(json.loads, written.messages) if line["event"] == "delegation.failed"]
    assert [line["error_type"] for line in failed] == ["DependencyError"]


@pytest.mark.usefixtures("installed")
async def test_a_policy_that_hangs_keeps_no_answer_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def find(_: list[str]) -> dict[str, DocumentRecord]:
        await asyncio.sleep(60)
        return {}

    monkeypatch.setattr(delegating, "_LOOKUP_TIMEOUT_S", 0.01)
    shown = await told(occasion(doc_ids=("appendix",)), find)
    assert shown["reason_codes"] == ["POLICY_EVAL_ERROR"]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"subagents_enabled": False}, "SUBAGENTS_DISABLED"),
        ({"subagents_degraded_mode": True}, "DEGRADED_MODE"),
        ({"max_subagent_cost_usd": 0.001}, "COST_BUDGET_EXHAUSTED"),
        ({"max_total_tokens_per_request": 4_000}, "TOKEN_BUDGET_EXHAUSTED"),
        (
            {"subagents_compliance_mode": "strict", "subagents_restricted_tools": "query_metadata"},
            "REQUIRED_TOOLS_RESTRICTED",
        ),
        ({"low_retrieval_confidence_top_score": 0.1}, "NO_TRIGGER"),
    ],
)
async def test_settings_decide(settings: dict[str, Any], code: str) -> None:
    assert (await told(occasion(), **settings))["reason_codes"] == [code]


@pytest.mark.usefixtures("installed")
async def test_neither_question_nor_person_is_in_the_log(written: pytest.LogCaptureFixture) -> None:
    await told(occasion())
    assert "secret pump" not in written.text
    assert "anna" not in written.text
