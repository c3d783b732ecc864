"""Runs that ask which document is meant, and cancelled runs, through the whole stack."""

import time
from typing import Any

import httpx
import pytest

from local.run_all.api_client import ApiClient, StreamEvent
from local.run_all.stack import LocalStack
from samples.acl import ANNA
from samples.questions import FIRST_QUESTION
from tests.e2e.stack_client import client_of, eventually
from tests.e2e.sub_agents.hosts import MODEL, configured

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

AMBIGUOUS = "What was the total revenue according to the annual report?"


def begin(client: httpx.Client, question: str) -> str:
    started = client.post("/chat", json={"question": question}, headers={"Prefer": "respond-async"})
    assert started.status_code == 202
    return str(started.json()["run_id"])


def waiting_run(client: httpx.Client) -> str:
    run_id = begin(client, AMBIGUOUS)
    until(client, run_id, "waiting")
    return run_id


def until(client: httpx.Client, run_id: str, status: str) -> dict[str, Any]:

    def reached() -> dict[str, Any] | None:
        view: dict[str, Any] = client.get(f"/runs/{run_id}").json()
        assert view["status"] in (status, "running", "waiting"), view
        return view if view["status"] == status else None

    return eventually(reached, f"status {status} of the run")


def read(stack: LocalStack, run_id: str, after: int = 0, *, to: str = "") -> list[StreamEvent]:
    """Return the events of a run after number `after`, up to the first event named `to` or to the end of the
    run.
    """
    events = []
    for event in ApiClient(stack.base_url, stack.token(ANNA)).resume(run_id, after):
        events.append(event)
        if event.name == to:
            break
    return events


def cited(view: dict[str, Any]) -> set[str]:
    return {citation["filename"] for citation in view["answer"]["citations"]}


def test_the_stream_asks_and_goes_on_with_the_answer(stack: LocalStack, anna: httpx.Client) -> None:
    events = []
    for event in ApiClient(stack.base_url, stack.token(ANNA)).resume(begin(anna, AMBIGUOUS), 0):
        events.append(event)
        if event.name == "ask_user":
            options = {option["filename"]: option["number"] for option in event.data["options"]}
            assert set(options) == {"annual-report-2023.pdf", "annual-report-2024.pdf"}
            run_id = events[0].data["run_id"]
            choice = {"choice": options["annual-report-2023.pdf"]}
            assert anna.post(f"/runs/{run_id}/answer", json=choice).status_code == 202
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert events[-1].name == "complete"
    assert "restarted" not in [event.data.get("state") for event in events]
    view = until(anna, run_id, "completed")
    assert cited(view) == {"annual-report-2023.pdf"}
    assert "48.2 million" in view["answer"]["text"]


def test_a_host_killed_while_a_run_waits_forgets_nothing(stack: LocalStack, anna: httpx.Client) -> None:
    run_id = waiting_run(anna)
    before = read(stack, run_id, to="ask_user")
    stack.kill_host()
    stack.start_host()
    with client_of(stack, ANNA) as again:
        view = again.get(f"/runs/{run_id}").json()
        assert view["status"] == "waiting"
        assert len(view["clarification"]["options"]) == 2
        assert again.post(f"/runs/{run_id}/answer", json={"choice": 2}).status_code == 202
        after = read(stack, run_id, before[-1].number)
        assert [event.number for event in before + after] == list(range(1, len(before + after) + 1))
        assert after[-1].name == "complete"
        assert len(cited(until(again, run_id, "completed"))) == 1


@pytest.mark.nightly
def test_a_host_killed_right_after_the_answer_goes_on_with_it(stack: LocalStack, anna: httpx.Client) -> None:
    run_id = waiting_run(anna)
    assert anna.post(f"/runs/{run_id}/answer", json={"text": "2023"}).status_code == 202
    stack.kill_host()
    stack.start_host()
    assert read(stack, run_id)[-1].name == "complete"
    with client_of(stack, ANNA) as again:
        assert cited(until(again, run_id, "completed")) == {"annual-report-2023.pdf"}


def test_a_run_that_waits_can_be_cancelled(stack: LocalStack, anna: httpx.Client) -> None:
    run_id = waiting_run(anna)
    for _ in range(2):
        cancelled = anna.post(f"/runs/{run_id}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    last = read(stack, run_id)[-1]
    assert (last.name, last.data["type"]) == ("error", "RunCancelledError")
    assert anna.post(f"/runs/{run_id}/answer", json={"choice": 1}).status_code == 409


def test_without_an_answer_in_time_all_documents_are_read(stack: LocalStack) -> None:
    with configured(stack, CLARIFICATION_TIMEOUT_S="2"), client_of(stack, ANNA) as anna:
        run_id = begin(anna, AMBIGUOUS)
        events = read(stack, run_id)
        assert "ask_user" in [event.name for event in events]
        assert events[-1].name == "complete"
        either = {"annual-report-2023.pdf", "annual-report-2024.pdf"}
        assert cited(until(anna, run_id, "completed")) <= either
        assert anna.post(f"/runs/{run_id}/answer", json={"choice": 1}).status_code == 409


def test_a_run_that_writes_is_cancelled_and_writes_nothing_more(stack: LocalStack) -> None:
    # Slower models do not finish their plan in time.
    slow = {"CHAT_MODEL": f"{MODEL}@tps=12", "MAX_TOTAL_LATENCY_MS": "240000"}
    with configured(stack, **slow), client_of(stack, ANNA) as anna:
        run_id = begin(anna, FIRST_QUESTION.text)
        read(stack, run_id, to="token")
        assert anna.post(f"/runs/{run_id}/cancel").json()["status"] == "cancelled"
        ended = read(stack, run_id)
        assert ended[-1].data["type"] == "RunCancelledError"
        time.sleep(3)  # the model would need more time than that to finish
        assert [event.frame for event in read(stack, run_id)] == [event.frame for event in ended]
        assert anna.get(f"/runs/{run_id}").json()["status"] == "cancelled"
