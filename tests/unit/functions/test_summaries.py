"""Tests for summaries over HTTP with in-memory services. The tests drive the orchestration."""

from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from shared.answering.steps import OpenSummary
from shared.platform.errors import DependencyError, ModelFixableError
from shared.platform.tokens import CHARS_PER_TOKEN
from shared.runs.run_store import record_of
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel, scripted
from tests.fakes.services import fake_services
from tests.unit.answering.summarising import by_rule, performed
from tests.unit.functions.http_app import (
    as_user,
    connect,
    end_streams_soon,
    make_app,
    problem_of,
    settings_of_tests,
)
from tests.unit.functions.summarising_app import SummarisingClient
from tests.world import add_corpus


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    fakes = fake_services(settings=settings_of_tests(), chat_model=ScriptedChatModel(answer=by_rule))
    await add_corpus(fakes)
    return connect(monkeypatch, fakes)


@pytest.fixture
def durable(services: Services) -> SummarisingClient:
    return SummarisingClient(services)


@pytest.fixture
def app(durable: SummarisingClient) -> ASGIApp:
    return make_app(durable)


ORDER = {"doc_ids": ["manual", "report-2024"]}


async def test_a_summary_is_begun_and_read(anna: httpx.AsyncClient) -> None:
    response = await anna.post("/summaries", json=ORDER)
    assert response.status_code == 200  # already completed
    view = (await anna.get(response.headers["Location"].removeprefix("/api"))).json()
    assert view["status"] == "completed"
    assert "15 bar" in view["result"]["citations"][0]["quote"]


async def test_while_it_runs_the_answer_is_202_with_its_address(
    anna: httpx.AsyncClient, durable: SummarisingClient
) -> None:
    end_streams_soon(durable.services)
    durable.holds = True
    response = await anna.post("/summaries", json=ORDER, headers={"Prefer": "respond-async, wait=5"})
    assert response.status_code == 202
    assert response.json()["status"] == "running"
    assert [child["status"] for child in response.json()["children"]] == ["waiting", "waiting"]


async def test_a_key_starts_one_orchestration(anna: httpx.AsyncClient, durable: SummarisingClient) -> None:
    durable.holds = True
    first, second = [
        await anna.post("/summaries", json=ORDER, headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["summary_id"] == second.json()["summary_id"]
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert len(durable.started) == 1
    other = await anna.post("/summaries", json={"doc_ids": ["manual"]}, headers={"Idempotency-Key": "k"})
    assert problem_of(other) == (422, "IdempotencyKeyReusedError")
    bad = await anna.post("/summaries", json=ORDER, headers={"Idempotency-Key": "a b"})
    assert problem_of(bad) == (400, "InvalidRequestError")


async def test_one_that_could_not_be_started_is_closed_and_its_key_begins_another(
    anna: httpx.AsyncClient, durable: SummarisingClient, services: Services
) -> None:
    durable.refuses = True
    refused = await anna.post("/summaries", json=ORDER, headers={"Idempotency-Key": "k"})
    assert problem_of(refused) == (500, "InternalError")
    (record,) = [record_of(row) for row in services.runs._table.rows.values()]  # type: ignore[attr-defined]
    assert (record.status, record.error_type) == ("failed", "InternalError")
    assert services.user_limits.rows["anna"].slots == ()  # type: ignore[attr-defined]
    durable.refuses = False
    again = await anna.post("/summaries", json=ORDER, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()["status"]) == (200, "completed")


async def test_a_summary_counts_for_each_of_its_documents_and_holds_a_slot_until_its_end(
    anna: httpx.AsyncClient, durable: SummarisingClient, services: Services
) -> None:
    durable.holds = True
    response = await anna.post("/summaries", json={"doc_ids": ["manual", "report-2024", "manual"]})
    assert response.headers["ratelimit-remaining"] == "58"
    rows = services.user_limits.rows  # type: ignore[attr-defined]
    assert [slot.work_id for slot in rows["anna"].slots] == [response.json()["summary_id"]]
    await anna.post(f"/summaries/{response.json()['summary_id']}/cancel")
    assert rows["anna"].slots == ()
    durable.holds = False
    await anna.post("/summaries", json=ORDER)
    assert rows["anna"].slots == ()


async def test_a_deleted_summary_is_not_made_again_by_a_repeat(anna: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "k"}
    summary_id = (await anna.post("/summaries", json=ORDER, headers=headers)).json()["summary_id"]
    await anna.delete(f"/summaries/{summary_id}")
    again = await anna.post("/summaries", json=ORDER, headers=headers)
    assert problem_of(again) == (404, "NotFoundError")


async def test_one_whose_orchestration_died_says_so(
    anna: httpx.AsyncClient, durable: SummarisingClient
) -> None:
    durable.holds = True
    path = f"/summaries/{(await anna.post('/summaries', json=ORDER)).json()['summary_id']}"
    assert (await anna.get(path)).json()["status"] == "running"
    durable.states[durable.started[0]] = "Terminated"
    view = (await anna.get(path)).json()
    assert (view["status"], view["error_type"]) == ("failed", "InternalError")


async def test_one_that_its_host_lost_begins_again(
    anna: httpx.AsyncClient, durable: SummarisingClient
) -> None:
    durable.holds = True
    path = f"/summaries/{(await anna.post('/summaries', json=ORDER)).json()['summary_id']}"
    durable.states[durable.started[0]] = "Failed"
    assert (await anna.get(path)).json()["status"] == "running"
    assert durable.states[durable.started[0]] == "Running"


async def test_cancelling_ends_parent_and_children(
    anna: httpx.AsyncClient, durable: SummarisingClient
) -> None:
    durable.holds = True
    summary_id = (await anna.post("/summaries", json=ORDER)).json()["summary_id"]
    durable.states[f"{summary_id}:s001c0"] = "Running"
    await performed(durable.services, summary_id, OpenSummary(step=1))
    cancelled = await anna.post(f"/summaries/{summary_id}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert set(durable.states.values()) == {"Terminated"}


async def test_deleting_leaves_neither_blobs_nor_histories(
    anna: httpx.AsyncClient, durable: SummarisingClient
) -> None:
    summary_id = (await anna.post("/summaries", json=ORDER)).json()["summary_id"]
    assert (await anna.delete(f"/summaries/{summary_id}")).status_code == 204
    assert durable.purged[0] == summary_id
    assert problem_of(await anna.get(f"/summaries/{summary_id}")) == (404, "NotFoundError")


async def test_others_find_nothing(anna: httpx.AsyncClient, ben: httpx.AsyncClient) -> None:
    summary_id = (await anna.post("/summaries", json=ORDER)).json()["summary_id"]
    for method, path in (("GET", ""), ("POST", "/cancel"), ("DELETE", "")):
        answered = await ben.request(method, f"/summaries/{summary_id}{path}")
        assert problem_of(answered) == (404, "NotFoundError")
    assert (await anna.get(f"/summaries/{summary_id}")).status_code == 200


async def test_nothing_that_the_caller_may_read_is_a_404(ben: httpx.AsyncClient) -> None:
    failed = await ben.post("/summaries", json={"doc_ids": ["manual"]})
    assert (failed.status_code, failed.json()["error_type"]) == (404, "DocumentNotFoundError")


async def slots_of(services: Services, user_id: str = "anna") -> int:
    return len((await services.user_limits.read(user_id)).slots)


async def test_a_repeat_of_an_order_whose_end_was_not_noted_costs_a_call_and_holds_no_slot(
    anna: httpx.AsyncClient, services: Services, durable: SummarisingClient
) -> None:
    """Check that a repeated request finds the summary even if its key was not marked as done."""
    key = {"Idempotency-Key": "k"}
    first = await anna.post("/summaries", json=ORDER, headers=key)
    claim = await services.idempotency.get("anna", "k")
    assert claim is not None
    await services.idempotency.write("anna", "k", claim.model_copy(update={"is_done": False}))
    again = await anna.post("/summaries", json=ORDER, headers=key)
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert first.headers["ratelimit-remaining"] == "58"  # one call per document
    assert again.headers["ratelimit-remaining"] == "57"
    assert len(durable.started) == 1
    assert await slots_of(services) == 0


async def forget_work(run_id: str, services: Services) -> None:
    """Reset a summary to its state right after it was stored, before any work."""
    record = await services.runs.get(run_id)
    assert record is not None
    changes = {"status": "running", "finished_at": None}
    await services.runs.replace(record.model_copy(update=changes))
    log: Any = services.run_log
    del log.logs[run_id][log.logs[run_id].index(b"\n") + 1 :]


async def test_an_order_that_was_stored_and_never_begun_is_begun_by_its_repeat(
    anna: httpx.AsyncClient, services: Services, durable: SummarisingClient
) -> None:
    key = {"Idempotency-Key": "k"}
    await anna.post("/summaries", json=ORDER, headers=key)
    claim = await services.idempotency.get("anna", "k")
    assert claim is not None
    await services.idempotency.write("anna", "k", claim.model_copy(update={"is_done": False}))
    await forget_work(claim.resource_id, services)
    durable.states.clear()
    again = await anna.post("/summaries", json=ORDER, headers=key)
    assert again.json()["status"] == "completed"
    assert durable.started == [claim.resource_id] * 2


async def test_an_order_that_cannot_be_stored_holds_no_slot(
    anna: httpx.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def out_of_reach(*_: object) -> bool:
        raise DependencyError("The storage is out of reach.")

    monkeypatch.setattr(services.blobs, "create", out_of_reach)
    assert (await anna.post("/summaries", json=ORDER)).status_code == 503
    assert await slots_of(services) == 0


async def chat_tokens(http: httpx.AsyncClient) -> int:
    today = (await http.get("/me")).json()["today"]
    return int(next(one["used"] for one in today if one["resource"] == "chat_tokens"))


@pytest.mark.attack("limits")
async def test_summary_is_charged_to_its_owner(anna: httpx.AsyncClient, services: Services) -> None:
    await anna.post("/summaries", json=ORDER)
    prompts = scripted(services.chat_model).prompts
    read = sum(len(prompt.system) + len(prompt.user) for prompt in prompts) / CHARS_PER_TOKEN
    assert read < await chat_tokens(anna) < 2 * read


@pytest.mark.attack("limits")
async def test_summary_that_fails_is_charged_for_the_calls_it_made(
    anna: httpx.AsyncClient, services: Services
) -> None:
    services.chat_model = ScriptedChatModel(answer=lambda _: ModelFixableError("No JSON."))
    failed = await anna.post("/summaries", json=ORDER)
    assert failed.json()["status"] == "failed"
    assert await chat_tokens(anna) > 1000


@pytest.mark.attack("audit trail")
@pytest.mark.parametrize("waits", [True, False])
async def test_summary_that_is_shown_is_in_the_audit_trail(
    anna: httpx.AsyncClient, app: ASGIApp, durable: SummarisingClient, *, waits: bool
) -> None:
    durable.holds = not waits
    response = await anna.post("/summaries", json=ORDER, headers={"Prefer": "wait=1"} if waits else {})
    summary_id = response.json()["summary_id"]
    assert (response.json()["result"] is not None) is waits
    async with as_user(app, "olga", roles=["admin"]) as olga:
        entries = (await olga.get("/audit?user_id=anna")).json()["entries"]
    actions = [(one["action"], sorted(one["doc_ids"]), one["run_id"]) for one in entries]
    assert actions == ([("summary", ["manual", "report-2024"], summary_id)] if waits else [])
