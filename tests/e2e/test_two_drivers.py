"""One loop, two drivers: orchestration and inline driver give the same answer to every sample question.

The durable answer comes from the running stack; the inline one from this process, with the same settings and
the same user, against the same servers.
"""

import re
from typing import Any

import pytest

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN
from samples.questions import DEMO_QUESTIONS, FIRST_QUESTION, UNANSWERABLE
from shared.answering.clarification_steps import answer_clarification
from shared.answering.inline import run_to_end, waits
from shared.answering.runs import begin_run, view_run
from shared.answering.steps import AnswerArrived
from shared.runs.models import ChatRequest, ClarificationAnswer
from shared.runs.run_files import RunFiles
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.e2e.stack_client import client_of
from tests.scripts import observe

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUESTIONS = (FIRST_QUESTION.text, *(question.text for question in DEMO_QUESTIONS), UNANSWERABLE)
AMBIGUOUS = "What was the total revenue according to the annual report?"
_OF_ONE_RUN = frozenset(
    {"expires_at", "image_url_expires_at", "child_id", "started_at", "ended_at", "duration_ms"}
)
_RUN = re.compile(r"\brun=[0-9a-f]{32}")  # a citation's address names its run
_SIGNATURE = re.compile(r"\?[^\s)\"]*\bsig=[^\s)\"]*")


def said(view: dict[str, Any]) -> dict[str, Any]:
    """An answer without what differs from run to run: ids of runs, times, signatures of addresses."""
    assert view["answer"] is not None, view
    answer = {name: value for name, value in view["answer"].items() if name != "run_id"}
    return {name: _unsigned(value) for name, value in answer.items()}


def assert_alike(inline: dict[str, Any], durable: dict[str, Any]) -> None:
    """The same answer. On a busy machine one of them may have had no time left for sub-agents."""
    one, other = said(inline), said(durable)
    workers, others = one.pop("sub_agents"), other.pop("sub_agents")
    assert one == other
    if workers and others:
        assert workers == others


def _unsigned(value: Any) -> Any:
    if isinstance(value, str):
        return _RUN.sub("run=", _SIGNATURE.sub("", value))
    if isinstance(value, list):
        return [_unsigned(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _unsigned(inner) for name, inner in value.items() if name not in _OF_ONE_RUN}
    return value


async def inline_view(durable_run: str, services: Services, choice: int | None = None) -> dict[str, Any]:
    """The question of a durable run, asked again by the same user through the inline driver."""
    asked = await RunFiles(services.blobs, durable_run).request()
    request = await begin_run(ChatRequest(question=asked.question), asked.user, services)
    state = await run_to_end(request.run_id, services)
    if choice is not None:
        assert waits(state)
        record = await owned_run(request.run_id, asked.user, services.runs)
        assert await answer_clarification(record, ClarificationAnswer(choice=choice), asked.user, services)
        await run_to_end(request.run_id, services, observe(state, AnswerArrived()))
    record = await owned_run(request.run_id, asked.user, services.runs)
    view: dict[str, Any] = (await view_run(record, services, asked.user)).model_dump(mode="json")
    return view


@pytest.mark.parametrize("question", QUESTIONS)
async def test_both_drivers_answer_alike(stack: LocalStack, services: Services, question: str) -> None:
    with client_of(stack, ANNA) as client:
        durable = client.post("/chat", json={"question": question, "stream": False}).json()
    inline = await inline_view(durable["run_id"], services)
    assert_alike(inline, durable)
    assert [item["status"] for item in inline["todo"]] == [item["status"] for item in durable["todo"]]


async def test_both_drivers_ask_back_alike_and_go_on_with_the_choice(
    stack: LocalStack, services: Services
) -> None:
    with client_of(stack, ANNA) as client:
        waiting = client.post("/chat", json={"question": AMBIGUOUS, "stream": False}).json()
        assert waiting["status"] == "waiting"
        run = f"/runs/{waiting['run_id']}"
        assert client.post(f"{run}/answer", json={"choice": 2}).status_code == 202
        with client.stream("GET", f"{run}/events") as events:
            events.read()
        durable = client.get(run).json()
    inline = await inline_view(waiting["run_id"], services, choice=2)
    assert_alike(inline, durable)


async def test_answers_to_different_people_differ(stack: LocalStack, services: Services) -> None:
    views = []
    for user in (ANNA, BEN):
        with client_of(stack, user) as client:
            body = {"question": FIRST_QUESTION.text, "stream": False}
            views.append(client.post("/chat", json=body).json())
    anna, ben = [await inline_view(view["run_id"], services) for view in views]
    assert said(anna) != said(ben)
