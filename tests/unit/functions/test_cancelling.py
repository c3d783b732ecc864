"""Cancelling a run over HTTP ends its orchestration, and those of its sub-agents."""

from typing import cast

import pytest

from functions import runs
from shared.access.models import UserContext
from shared.answering.runs import begin_run
from shared.platform.names import RUN_LOG
from shared.runs.models import ChatRequest, RunStatus
from shared.runs.working_memory import answer_path
from shared.subagents.artifacts import put_delegation
from shared.subagents.models import Delegation
from shared.wiring import Services
from tests.fakes.services import fake_services, fake_settings
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests
from tests.unit.subagents.delegation_requests import decided, summary

ANNA = UserContext(user_id="anna")


class Client:
    """A durable client that notes whom it ends."""

    def __init__(self, *, fails: bool = False) -> None:
        self.ended: list[str] = []
        self._fails = fails

    async def terminate(self, instance_id: str, reason: str) -> None:
        self.ended.append(instance_id)
        if self._fails:
            raise ConnectionError("nobody is there")


async def delegated(services: Services) -> tuple[str, Delegation]:
    """A run with two readers at work."""
    request = await begin_run(ChatRequest(question="Sum up both."), ANNA, services)
    made = (await decided(summary("a", "b"), fake_services(settings=fake_settings()))).delegation
    assert made is not None
    tasks = tuple(
        task.model_copy(update={"run_id": request.run_id, "child_id": f"{request.run_id}:s004c{task.index}"})
        for task in made.tasks
    )
    stored = made.model_copy(update={"tasks": tasks})
    return request.run_id, await put_delegation(services.blobs, request.run_id, stored)


@pytest.mark.parametrize("fails", [False, True])
async def test_cancelling_ends_the_run_first_and_then_its_sub_agents(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    services = fake_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    run_id, made = await delegated(services)
    client = Client(fails=fails)
    app = make_app([runs], cast("IngestingClient", client))
    async with as_user(app, ANNA.user_id) as http:
        answered = await http.post(f"/runs/{run_id}/cancel")
    assert (answered.status_code, answered.json()["status"]) == (200, "cancelled")
    assert client.ended == [run_id, *(task.child_id for task in made.tasks)]


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
    async with as_user(make_app([runs], cast("IngestingClient", Client())), ANNA.user_id) as http:
        assert (await http.post(f"/runs/{request.run_id}/cancel")).status_code == answered
