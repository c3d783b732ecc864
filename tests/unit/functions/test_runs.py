"""Tests for runs over HTTP: cancelled, orphaned and rated runs."""

import json
import logging
from collections.abc import Sequence

import pytest

from functions import reconciliation as reconciliation_timer
from shared.access.models import UserContext
from shared.answering.runs import begin_run
from shared.answering.subagent_models import Delegation
from shared.ingestion import reconciliation
from shared.platform.errors import DependencyError
from shared.platform.names import RUN_LOG
from shared.platform.telemetry import LOGGER_NAME
from shared.runs.models import ChatRequest, RunStatus
from shared.runs.run_files import answer_path
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests
from tests.unit.subagents.delegation_requests import decided, summary
from tests.unit.subagents.lines import keep_delegation

ANNA = UserContext(user_id="anna")


class Client:
    """A durable client that records the instances it ends."""

    def __init__(self, *, fails: bool = False) -> None:
        self.ended: list[str] = []
        self._fails = fails

    async def terminate(self, instance_id: str, reason: str) -> None:
        self.ended.append(instance_id)
        if self._fails:
            raise ConnectionError("nobody is there")


async def delegated(services: Services) -> tuple[str, Delegation]:
    """Return a run with two readers in progress."""
    request = await begin_run(ChatRequest(question="Sum up both."), ANNA, services)
    delegation = (await decided(summary("a", "b"), fake_services(settings=fake_settings()))).delegation
    assert delegation is not None
    tasks = tuple(
        task.model_copy(update={"run_id": request.run_id, "child_id": f"{request.run_id}:s004c{task.index}"})
        for task in delegation.tasks
    )
    stored = delegation.model_copy(update={"tasks": tasks})
    return request.run_id, await keep_delegation(services, request.run_id, stored)


@pytest.mark.parametrize("fails", [False, True])
async def test_cancelling_ends_the_run_first_and_then_its_sub_agents(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    services = fake_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    run_id, delegation = await delegated(services)
    client = Client(fails=fails)
    app = make_app(client)
    async with as_user(app, ANNA.user_id) as http:
        answered = await http.post(f"/runs/{run_id}/cancel")
    assert (answered.status_code, answered.json()["status"]) == (200, "cancelled")
    assert client.ended == [run_id, *(task.child_id for task in delegation.tasks)]


@pytest.mark.parametrize(("status", "answered"), [("completed", 409), ("cancelled", 200)])
async def test_a_run_that_ended_so_long_ago_that_its_log_is_gone_is_one_that_has_ended(
    monkeypatch: pytest.MonkeyPatch, status: RunStatus, answered: int
) -> None:
    services = fake_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    request = await begin_run(ChatRequest(question="Why?"), ANNA, services)
    record = await services.runs.get(request.run_id)
    assert record is not None
    ended = {"status": status, "finished_at": request.created_at, "has_log": False}
    await services.runs.replace(record.model_copy(update=ended))
    await services.run_log.delete(request.run_id)
    await services.blobs.write(RUN_LOG, answer_path(request.run_id), b'{"run_id": "r", "text": "Because."}')
    async with as_user(make_app(Client()), ANNA.user_id) as http:
        assert (await http.post(f"/runs/{request.run_id}/cancel")).status_code == answered


GHOSTS = [f"ghost-{number}" for number in range(3)]


async def leave_blocks_of_ghosts(services: Services) -> None:
    rows = [{"block_id": f"{ghost}-1-0", "doc_id": ghost} for ghost in GHOSTS]
    await services.content_index.upload(rows)


async def test_a_row_that_cannot_be_removed_stops_no_other_and_is_told(
    services: Services,
    durable: IngestingClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    await leave_blocks_of_ghosts(services)
    delete = services.content_index.delete

    async def refusing(keys: Sequence[str]) -> None:
        if f"{GHOSTS[0]}-1-0" in keys:
            raise DependencyError("The search service is not reached.", "Try again.")
        await delete(keys)

    monkeypatch.setattr(services.content_index, "delete", refusing)
    report = await reconciliation_timer.reconcile(durable)
    assert (report.removed_orphans, report.left) == (2, 1)
    events = [json.loads(record.getMessage())["event"] for record in caplog.records]
    assert {"document.reconcile_failed", "documents.reconciled"} <= set(events)


async def test_removals_are_begun_for_a_while_only_and_the_rest_is_counted(
    services: Services, durable: IngestingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "REMOVALS_S", 0.0)
    await leave_blocks_of_ghosts(services)
    report = await reconciliation_timer.reconcile(durable)
    assert (report.removed_orphans, report.left) == (0, len(GHOSTS))


async def test_rows_of_a_file_that_is_sent_again_meanwhile_stay(
    services: Services, durable: IngestingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, fresh = {"block_id": "ghost-1-0", "doc_id": "ghost"}, {"block_id": "ghost-2-0", "doc_id": "ghost"}
    await services.content_index.upload([old])
    delete = services.content_index.delete

    async def shown_a_while_longer(keys: Sequence[str]) -> None:
        await delete([key for key in keys if key != old["block_id"]])
        await services.content_index.upload([fresh])

    monkeypatch.setattr(services.content_index, "delete", shown_a_while_longer)
    await reconciliation_timer.reconcile(durable)
    assert fresh["block_id"] in services.content_index.rows  # type: ignore[attr-defined]
