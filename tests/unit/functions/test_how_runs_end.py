"""Tests for every way a run can end: model calls are charged once, and the shown answer is recorded."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from shared.answering.effects import perform_metered
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run, close_dead_run
from shared.answering.script import RunEnd, StepResults
from shared.answering.steps import StepFields, StepInput
from shared.platform.errors import DefectError, DependencyError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.runs.models import ChatRequest
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.models import Reply, ScriptedChatModel
from tests.scripts import next_action, observe, start, tokens_of
from tests.unit.functions.http_app import as_user, connect, make_app, settings_of_tests
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.stored_child import GOOD, READY, stored_child
from tests.world import ANNA, Model, corpus_services, events_of, plan

pytestmark = pytest.mark.attack("limits")

QUESTION = "At what pressure does the pump run?"
ANSWER = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/> '


class Client:
    """A durable client without any instances."""

    async def terminate(self, instance_id: str, reason: str) -> None:
        pass


class Pausing(ScriptedChatModel):
    """A model that pauses in the middle of its answer until `goes_on` is set."""

    def __init__(self, beginning: str = ANSWER) -> None:
        super().__init__(plan())
        self._beginning = beginning
        self.is_paused = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def stream(self, prompt: Prompt, limits: CallLimits) -> AsyncGenerator[str, None]:
        yield self._beginning
        await asyncio.sleep(0.2)  # longer than the writer buffers text
        yield "So much "
        self.is_paused.set()
        await self.goes_on.wait()
        for _ in range(50):
            yield "for the pump. "


@pytest.fixture
def make_http(monkeypatch: pytest.MonkeyPatch) -> Callable[[Services], httpx.AsyncClient]:
    def make(services: Services) -> httpx.AsyncClient:
        connect(monkeypatch, services)
        return as_user(make_app(Client()), ANNA.user_id, groups=["engineering"])

    return make


async def charged(http: httpx.AsyncClient) -> int:
    today = (await http.get("/me")).json()["today"]
    return int(next(one["used"] for one in today if one["resource"] == "chat_tokens"))


async def test_run_cancelled_while_its_answer_is_read_is_charged(
    make_http: Callable[[Services], httpx.AsyncClient],
) -> None:
    model = Pausing()
    services = await corpus_services(chat_model=model, settings=settings_of_tests(subagents_enabled=False))
    async with make_http(services) as http:
        request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
        run = asyncio.create_task(run_to_end(request.run_id, services))
        await model.is_paused.wait()
        assert any(event.name == "CITATION" for event in events_of(services, request.run_id))
        assert (await http.post(f"/runs/{request.run_id}/cancel")).status_code == 200
        assert await charged(http) > 1000, "the prompts that were read"
        model.goes_on.set()
        await run
        assert 1000 < await charged(http) < 10_000, "what the call didn't use is given back"


async def acts(app: ASGIApp) -> list[tuple[str, list[str]]]:
    async with as_user(app, "olga", roles=["admin"]) as olga:
        entries = (await olga.get("/audit?user_id=anna")).json()["entries"]
    return [(one["action"], one["doc_ids"]) for one in reversed(entries)]


@pytest.mark.parametrize(
    "quoting", ['<cite doc_id="manual" quote="The pump runs at 15 bar."/> ', "And so on. "]
)
async def test_answer_read_from_the_stream_of_a_cancelled_run_is_on_record(
    monkeypatch: pytest.MonkeyPatch, quoting: str
) -> None:
    model = Pausing(f"<answer>It runs at 15 bar. {quoting}")
    services = await corpus_services(chat_model=model, settings=settings_of_tests(subagents_enabled=False))
    connect(monkeypatch, services)
    app = make_app(Client())
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    run = asyncio.create_task(run_to_end(request.run_id, services))
    await model.is_paused.wait()
    streamed_text = "".join(
        event.data["text"] for event in events_of(services, request.run_id) if event.name == "TOKEN"
    )
    assert "15 bar" in streamed_text
    async with as_user(app, ANNA.user_id, groups=["engineering"]) as anna:
        for _ in range(2):
            assert (await anna.post(f"/runs/{request.run_id}/cancel")).status_code == 200
    model.goes_on.set()
    await run
    actions = await acts(app)
    cited = [("answer", ["manual"])] if "<cite" in quoting else []
    assert actions[:-1] == cited
    action, doc_ids = actions[-1]
    assert (action, "manual" in doc_ids) == ("cancel", True)


async def driven(services: Services, run_id: str, perform: Callable[[StepInput], Any]) -> StepResults:
    """Run a question step by step with `perform`."""
    state = start()
    while not isinstance(action := next_action(state), RunEnd):
        assert isinstance(action, StepFields)
        values = {"run_id": run_id, "action": action.model_dump(), "tokens": tokens_of(state)}
        result = await perform(StepInput.model_validate(values))
        state = observe(state, result.observation, result.tokens)
    return state


async def test_completed_run_is_charged_what_it_used_even_if_every_step_is_repeated(
    make_http: Callable[[Services], httpx.AsyncClient],
) -> None:
    services = await corpus_services(settings=settings_of_tests(subagents_enabled=False))

    async def twice(step_input: StepInput) -> Any:
        result = await perform_metered(step_input, services)
        await perform_metered(step_input, services)
        return result

    async with make_http(services) as http:
        request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
        state = await driven(services, request.run_id, twice)
        assert await charged(http) == tokens_of(state) > 1000


class Killed(BaseException):
    """A worker crash that discards the result of the step."""


@pytest.mark.parametrize("error", [Killed(), DefectError("A bug."), DependencyError("Out of service.")])
async def test_run_that_ends_without_an_answer_is_charged_for_the_calls_it_made(
    make_http: Callable[[Services], httpx.AsyncClient], error: BaseException
) -> None:
    def answer(prompt: Prompt) -> Reply:
        if prompt.name == "plan":
            return plan()
        raise error

    services = await corpus_services(
        chat_model=ScriptedChatModel(answer=answer), settings=settings_of_tests(subagents_enabled=False)
    )
    async with make_http(services) as http:
        request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
        try:
            await run_to_end(request.run_id, services)
        except (Killed, DefectError):
            await close_dead_run(request.run_id, "The worker died.", services)
        record = await owned_run(request.run_id, ANNA, services.runs)
        assert record.status in ("failed", "completed")
        assert await charged(http) > 1000


async def test_sub_agent_is_charged_for_what_it_used(
    make_http: Callable[[Services], httpx.AsyncClient],
) -> None:
    child = await stored_child(CountedModel(READY, GOOD), settings=settings_of_tests())
    async with make_http(child.services) as http:
        end = await child.run()
        assert await charged(http) == end.tokens == 1050 + 1600


async def test_failed_call_is_not_charged(make_http: Callable[[Services], httpx.AsyncClient]) -> None:
    services = await corpus_services(
        Model(DependencyError("No.")), settings=settings_of_tests(subagents_enabled=False)
    )
    async with make_http(services) as http:
        request = await begin_run(ChatRequest(question="Hello"), ANNA, services)
        state = await run_to_end(request.run_id, services)
        assert await charged(http) == tokens_of(state)
