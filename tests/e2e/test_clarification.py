"""A run that asks which document is meant, and runs that are cancelled, through the whole stack."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from local.run_all.api_client import ApiClient, StreamEvent
from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from samples.questions import FIRST_QUESTION
from tests.e2e.stack_client import HANG_GUARD_S
from tests.e2e.stack_fixture import PATIENT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

AMBIGUOUS = "What was the total revenue according to the annual report?"
QUICK_MODEL = {"CHAT_MODEL": "groundwork-extractive", **PATIENT}
# Slower ones do not write their plan in time.
SLOW_MODEL = {"CHAT_MODEL": "groundwork-extractive@tps=12", "MAX_TOTAL_LATENCY_MS": "240000"}


def client_of(stack: LocalStack, user: SampleUser) -> httpx.Client:
    headers = {"Authorization": f"Bearer {stack.token(user)}"}
    return httpx.Client(base_url=f"{stack.base_url}/api", headers=headers, timeout=HANG_GUARD_S)


@pytest.fixture
def anna(stack: LocalStack) -> Iterator[httpx.Client]:
    with client_of(stack, ANNA) as client:
        yield client


def begin(client: httpx.Client, question: str) -> str:
    started = client.post("/chat", json={"question": question}, headers={"Prefer": "respond-async"})
    assert started.status_code == 202
    return str(started.json()["run_id"])


def waiting_run(client: httpx.Client) -> str:
    run_id = begin(client, AMBIGUOUS)
    until(client, run_id, "waiting")
    return run_id


def until(client: httpx.Client, run_id: str, status: str) -> dict[str, Any]:
    deadline = time.monotonic() + HANG_GUARD_S
    while time.monotonic() < deadline:
        view: dict[str, Any] = client.get(f"/runs/{run_id}").json()
        if view["status"] == status:
            return view
        assert view["status"] in ("running", "waiting"), view
        time.sleep(0.1)
    raise AssertionError(f"the run was not {status} within {HANG_GUARD_S:.0f} s: {view}")


def read(stack: LocalStack, run_id: str, after: int = 0, *, to: str = "") -> list[StreamEvent]:
    """Events of a run after a number, to its end or to the first of a name."""
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


def test_an_answer_in_words_chooses(anna: httpx.Client) -> None:
    run_id = waiting_run(anna)
    assert anna.post(f"/runs/{run_id}/answer", json={"text": "the 2024 one"}).status_code == 202
    view = until(anna, run_id, "completed")
    assert cited(view) == {"annual-report-2024.pdf"}
    assert "53.7 million" in view["answer"]["text"]


def test_what_cannot_be_an_answer_is_refused_and_the_run_waits_on(
    stack: LocalStack, anna: httpx.Client
) -> None:
    run_id = waiting_run(anna)
    answers = f"/runs/{run_id}/answer"
    unknown = anna.post(answers, json={"choice": 3})
    assert unknown.status_code == 400
    assert [hint[:2] for hint in unknown.json()["hints"]] == ["1:", "2:"]
    for body in ({}, {"choice": 1, "text": "one"}, {"choice": "one"}, {"text": ""}):
        assert anna.post(answers, json=body).status_code == 400
    with client_of(stack, BEN) as ben:
        assert ben.post(answers, json={"choice": 1}).status_code == 404
        assert ben.post(f"/runs/{run_id}/cancel").status_code == 404
    assert anna.get(f"/runs/{run_id}").json()["status"] == "waiting"
    assert anna.post(answers, json={"choice": 1}).status_code == 202
    assert anna.post(answers, json={"choice": 1}).status_code == 202
    assert anna.post(answers, json={"choice": 2}).status_code == 409
    until(anna, run_id, "completed")
    assert anna.post(answers, json={"choice": 1}).status_code == 202
    assert anna.post(answers, json={"choice": 2}).status_code == 409


def test_a_host_killed_while_a_run_waits_forgets_nothing(stack: LocalStack, anna: httpx.Client) -> None:
    run_id = waiting_run(anna)
    before = read(stack, run_id, to="ask_user")
    stack.kill_host()
    stack.start_host(QUICK_MODEL)
    with client_of(stack, ANNA) as again:
        view = again.get(f"/runs/{run_id}").json()
        assert view["status"] == "waiting"
        assert len(view["clarification"]["options"]) == 2
        assert again.post(f"/runs/{run_id}/answer", json={"choice": 2}).status_code == 202
        after = read(stack, run_id, before[-1].number)
        assert [event.number for event in before + after] == list(range(1, len(before + after) + 1))
        assert after[-1].name == "complete"
        assert len(cited(until(again, run_id, "completed"))) == 1


def test_a_host_killed_right_after_the_answer_goes_on_with_it(stack: LocalStack, anna: httpx.Client) -> None:
    run_id = waiting_run(anna)
    assert anna.post(f"/runs/{run_id}/answer", json={"text": "2023"}).status_code == 202
    stack.kill_host()
    stack.start_host(QUICK_MODEL)
    assert read(stack, run_id)[-1].name == "complete"
    with client_of(stack, ANNA) as again:
        assert cited(until(again, run_id, "completed")) == {"annual-report-2023.pdf"}


def test_without_an_answer_in_time_all_documents_are_read(stack: LocalStack) -> None:
    stack.kill_host()
    stack.start_host({**QUICK_MODEL, "CLARIFICATION_TIMEOUT_S": "2"})
    try:
        with client_of(stack, ANNA) as anna:
            run_id = begin(anna, AMBIGUOUS)
            events = read(stack, run_id)
            assert "ask_user" in [event.name for event in events]
            assert events[-1].name == "complete"
            assert cited(until(anna, run_id, "completed")) <= {
                "annual-report-2023.pdf",
                "annual-report-2024.pdf",
            }
            assert anna.post(f"/runs/{run_id}/answer", json={"choice": 1}).status_code == 409
    finally:
        stack.kill_host()
        stack.start_host({**QUICK_MODEL, "CLARIFICATION_TIMEOUT_S": "259200"})


def test_a_caller_who_wants_one_json_answer_is_told_what_is_asked(anna: httpx.Client) -> None:
    answered = anna.post("/chat", json={"question": AMBIGUOUS, "stream": False})
    assert answered.status_code == 202
    assert answered.json()["status"] == "waiting"
    assert len(answered.json()["clarification"]["options"]) == 2


def test_a_run_that_waits_can_be_cancelled(stack: LocalStack, anna: httpx.Client) -> None:
    run_id = waiting_run(anna)
    for _ in range(2):
        cancelled = anna.post(f"/runs/{run_id}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    last = read(stack, run_id)[-1]
    assert (last.name, last.data["type"]) == ("error", "RunCancelledError")
    assert anna.post(f"/runs/{run_id}/answer", json={"choice": 1}).status_code == 409


def test_a_run_that_writes_is_cancelled_and_writes_nothing_more(stack: LocalStack) -> None:
    stack.kill_host()
    stack.start_host(SLOW_MODEL)
    try:
        with client_of(stack, ANNA) as anna:
            run_id = begin(anna, FIRST_QUESTION.text)
            read(stack, run_id, to="token")
            assert anna.post(f"/runs/{run_id}/cancel").json()["status"] == "cancelled"
            ended = read(stack, run_id)
            assert ended[-1].data["type"] == "RunCancelledError"
            time.sleep(3)  # the model goes on for longer than that
            assert [event.frame for event in read(stack, run_id)] == [event.frame for event in ended]
            assert anna.get(f"/runs/{run_id}").json()["status"] == "cancelled"
    finally:
        stack.kill_host()
        stack.start_host(QUICK_MODEL)


def test_a_run_that_has_ended_cannot_be_cancelled(anna: httpx.Client) -> None:
    run_id = begin(anna, FIRST_QUESTION.text)
    until(anna, run_id, "completed")
    assert anna.post(f"/runs/{run_id}/cancel").status_code == 409
