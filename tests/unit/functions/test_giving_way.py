"""Tests for uploads that wait for running questions if their sender already has files in progress."""

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from orchestrations import activities
from orchestrations.payloads import Payload
from shared import wiring
from shared.answering.steps import Prepare, StepFailed, StepInput, StepResult
from shared.answering.subagent_models import TakeSubagentTurn
from shared.documents.ids import sender_of
from shared.ingestion import fair_turns
from shared.ingestion.fair_turns import Shares
from shared.ingestion.uploads import uploads_of
from tests.fakes.services import fake_services
from tests.unit.functions.asking_app import AskingClient
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests
from tests.world import corpus_services


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> Shares:
    fair_shares = Shares(12)
    monkeypatch.setattr(fair_turns, "SHARES", fair_shares)
    return fair_shares


async def test_an_upload_gives_way_to_a_question_if_its_senders_files_are_at_work(
    monkeypatch: pytest.MonkeyPatch, shares: Shares, durable: IngestingClient, user: AsUser
) -> None:
    monkeypatch.setattr(fair_turns, "_GIVE_WAY_S", 3600.0)
    with ExitStack() as at_work:
        for _ in range(2):
            at_work.enter_context(shares.hold(sender_of(uploads_of("anna"))))
        with shares.answering():
            file = {"file": ("guide.md", b"The pump runs at 15 bar.")}
            waiting = asyncio.create_task(user("anna").post("/documents", files=file))
            await asyncio.sleep(0.1)  # enough time for Anna's upload to start
            assert (await user("ben").post("/documents", files=file)).status_code == 202
            assert len(durable.started) == 1
            assert not waiting.done()
        assert (await waiting).status_code == 202


async def test_a_question_counts_from_its_request_on(monkeypatch: pytest.MonkeyPatch, shares: Shares) -> None:
    class WatchingClient(AskingClient):
        async def start_new(self, name: str, instance_id: str, payload: dict[str, Any]) -> str:
            was_busy.append(shares.is_busy_for_others("anna"))
            return await super().start_new(name, instance_id, payload)

    was_busy = list[bool]()
    services = await corpus_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    anna = as_user(make_app(WatchingClient(services)), "anna", groups=["engineering"])
    await anna.post("/chat", json={"question": "At what pressure does the pump run?", "stream": False})
    assert was_busy == [True]


async def test_steps_of_questions_and_of_sub_agents_count(
    monkeypatch: pytest.MonkeyPatch, shares: Shares
) -> None:
    async def step(*_: object) -> StepResult:
        was_busy.append(shares.is_busy_for_others("anna"))
        return StepResult(observation=StepFailed(error_type="X", message="", retryable=False))

    was_busy = list[bool]()
    monkeypatch.setattr(wiring, "get_services", fake_services)
    monkeypatch.setattr(activities, "perform_metered", step)
    monkeypatch.setattr(fair_turns, "_BETWEEN_STEPS_S", 0.0)
    step_input = StepInput(run_id="r", action=Prepare(step=1))
    await activities.perform_step(Payload(step_input.model_dump(mode="json")))
    assert not shares.is_busy_for_others("anna")
    turn = TakeSubagentTurn(turn=1, attempt=0, profile="doc_reader", closing=False)
    of_child = StepInput(run_id="r", path="s001c0", action=turn)
    await activities.perform_step(Payload(of_child.model_dump(mode="json")))
    assert was_busy == [True, True]
