"""Tests for cancelled runs and for steps performed twice at once: stored and shown answers agree."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from shared.answering.inline import run_to_end
from shared.answering.models import Turn
from shared.answering.run_end import cancel_run
from shared.answering.runs import begin_run
from shared.answering.shown_answer import shown_text
from shared.answering.steps import AnswerWritten, CommitAnswer, RunClosed, StepFields, StepInput, TakeTurn
from shared.platform.errors import ConflictError
from shared.runs.event_log import open_event_log
from shared.runs.journal import read_journal
from shared.runs.log_lines import LogSlice
from shared.runs.models import ChatRequest
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.services import fake_settings
from tests.scripts import next_action, observe, perform, start
from tests.world import ANNA, Model, corpus_services, events_of, plan

WRITE = TakeTurn(step=2, prepared_step=1)
ANSWERED = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'
OTHER = 'It is 15 bar, then. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'


async def start_run(services: Services, steps: int = 0) -> str:
    """Start a run, perform its first `steps` steps, and return its id."""
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    state = start()
    for _ in range(steps):
        action = next_action(state)
        assert isinstance(action, StepFields)
        step_input = StepInput.model_validate({"run_id": request.run_id, "action": action.model_dump()})
        state = observe(state, await perform(step_input, services))
    return request.run_id


async def complete(services: Services, run_id: str, text: str) -> None:
    """Complete the turn as a concurrent attempt would."""
    model = Model(plan(), answer=text).chat_model()
    await perform(StepInput(run_id=run_id, action=WRITE), replace(services, chat_model=model))


async def stored_turn(services: Services, run_id: str) -> Turn | None:
    journal = await read_journal(services.run_log, services.blobs, run_id)
    return await journal.find(2, Turn, "turn") if journal.completion(2) else None


async def status(services: Services, run_id: str) -> str:
    return (await owned_run(run_id, ANNA, services.runs)).status


async def test_a_cancelled_run_ends_with_its_event_and_no_step_adds_to_it() -> None:
    services = await corpus_services()
    run_id = await start_run(services, steps=1)
    for _ in range(2):
        assert (await cancel_run(run_id, services)).status == "cancelled"
    seen = events_of(services, run_id)
    assert (seen[-1].name, seen[-1].data["type"]) == ("ERROR", "RunCancelledError")
    assert isinstance(await perform(StepInput(run_id=run_id, action=WRITE), services), RunClosed)
    assert events_of(services, run_id) == seen
    assert await stored_turn(services, run_id) is None


async def test_a_run_that_is_cancelled_while_it_writes_stops_writing() -> None:
    services = await corpus_services()
    run_id = await start_run(services, steps=1)

    class Cancelled(ScriptedChatModel):
        async def stream(self, prompt: Any, limits: Any) -> AsyncGenerator[str, None]:
            yield "It runs at 15 bar. And"
            await cancel_run(run_id, services)
            for _ in range(50):
                yield " so it goes on and on."

    step = StepInput(run_id=run_id, action=WRITE)
    assert isinstance(await perform(step, replace(services, chat_model=Cancelled())), RunClosed)
    assert events_of(services, run_id)[-1].name == "ERROR"


async def test_a_commit_that_was_overtaken_does_not_make_a_cancelled_run_look_completed() -> None:
    services = await corpus_services()
    run_id = await start_run(services, steps=2)

    class CancelledBetween(InMemoryRunLog):
        """A run store in which the owner cancels right after the record is marked as completed."""

        async def append(self, run_id: str, events: Any, *, at_offset: int | None = None) -> int:
            if any(event.name == "COMPLETE" for event in events):
                await cancel_run(run_id, services)
            return await super().append(run_id, events, at_offset=at_offset)

    log = CancelledBetween()
    assert isinstance(services.run_log, InMemoryRunLog)
    log.logs = services.run_log.logs
    commit = CommitAnswer(step=3, answer_step=2, todo=())
    ended = await perform(StepInput(run_id=run_id, action=commit), replace(services, run_log=log))
    assert isinstance(ended, RunClosed)
    assert await status(services, run_id) == "cancelled"
    assert [event.name for event in events_of(services, run_id)].count("COMPLETE") == 0


async def test_a_run_that_has_ended_cannot_be_cancelled() -> None:
    services = await corpus_services()
    run_id = await start_run(services)
    await run_to_end(run_id, services)
    with pytest.raises(ConflictError, match="ended already"):
        await cancel_run(run_id, services)
    assert await status(services, run_id) == "completed"


async def test_of_two_answers_to_one_step_the_first_that_is_complete_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.answering.attempts.POLL_S", 0.01)
    services = await corpus_services()
    run_id = await start_run(services, steps=1)
    step = StepInput(run_id=run_id, action=WRITE)

    class Slower(ScriptedChatModel):
        """A model that lets another attempt finish between its last token and its result."""

        async def stream(self, prompt: Any, limits: Any) -> AsyncGenerator[str, None]:
            yield OTHER
            await complete(services, run_id, f"The other attempt: {ANSWERED}")

    result = await perform(step, replace(services, chat_model=Slower()))
    assert result == AnswerWritten(abstained=False)
    stored = await stored_turn(services, run_id)
    assert stored is not None
    assert stored.answer.text.startswith("The other attempt: ")
    assert shown_text(events_of(services, run_id)) == stored.answer.text


async def test_attempts_side_by_side_leave_one_answer_that_everybody_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.answering.attempts.POLL_S", 0.01)
    services = await corpus_services()
    run_id = await start_run(services, steps=1)
    step = StepInput(run_id=run_id, action=WRITE)

    class Saying(ScriptedChatModel):
        async def stream(self, prompt: Any, limits: Any) -> AsyncGenerator[str, None]:
            for word in OTHER.replace("then", self.word).split(" "):
                await asyncio.sleep(0.001)
                yield f"{word} "

        word = ""

    models = [Saying() for _ in range(4)]
    for number, model in enumerate(models):
        model.word = f"says {number}"
    results = await asyncio.gather(*(perform(step, replace(services, chat_model=model)) for model in models))
    stored = await stored_turn(services, run_id)
    assert stored is not None
    assert shown_text(events_of(services, run_id)) == stored.answer.text
    assert len({result.model_dump_json() for result in results}) == 1


async def test_an_overtaken_attempt_of_a_run_that_is_erased_waits_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.answering.attempts.POLL_S", 0.01)
    services = await corpus_services()
    run_id = await start_run(services, steps=1)

    class ErasedSoon(InMemoryRunLog):
        """A log that deletes the run when `reads_left` reaches zero."""

        reads_left: int | None = None

        async def read(self, run_id: str, offset: int = 0) -> LogSlice:
            if self.reads_left == 0:
                await self.delete(run_id)
            elif self.reads_left is not None:
                self.reads_left -= 1
            return await super().read(run_id, offset)

    log = ErasedSoon()
    assert isinstance(services.run_log, InMemoryRunLog)
    log.logs = services.run_log.logs

    class Overtaken(ScriptedChatModel):
        async def stream(self, prompt: Any, limits: Any) -> AsyncGenerator[str, None]:
            yield OTHER
            await open_event_log(log, run_id, WRITE.step)
            log.reads_left = 1

    async with asyncio.timeout(60):  # an attempt waits for two minutes
        step = StepInput(run_id=run_id, action=WRITE)
        ended = await perform(step, replace(services, run_log=log, chat_model=Overtaken()))
    assert isinstance(ended, RunClosed)


ABSTAINING = '<gap missing="the pressure" next_step="Ask."/>'


async def test_one_attempt_is_enough_when_a_setting_says_so() -> None:
    settings = fake_settings(max_retrieval_attempts=1, subagents_enabled=False)
    services = await corpus_services(Model(plan(), answer=ABSTAINING), settings=settings)
    run_id = await start_run(services)
    await run_to_end(run_id, services)
    assert [event.name for event in events_of(services, run_id)].count("TOOL_STARTED") == 1
