"""Tests for runs that ask for a document, with fake services: answers in time, late answers and timeouts."""

import asyncio
from typing import Any

import pytest

from shared.answering.agent import Agent
from shared.answering.clarification_steps import answer_clarification
from shared.answering.inline import run_to_end, waits
from shared.answering.runs import begin_run, view_run
from shared.answering.script import StepResults
from shared.answering.steps import AnswerArrived, AnswerTimedOut, Prepare, StepInput, TakeAnswer, UserAsked
from shared.platform.errors import CallerError, ConflictError
from shared.platform.names import WORK
from shared.runs.events import RunEvent
from shared.runs.models import ChatRequest, ClarificationAnswer, RunView
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.models import scripted
from tests.fakes.services import fake_settings
from tests.scripts import next_action, observe, perform
from tests.world import ANNA, Model, corpus_services, events_of, plan

QUESTION = "What was the revenue in the report?"
REVENUE = Model(
    plan(standalone_question=QUESTION, search_queries=("revenue",), document_references=("report",)),
    answer='It was 53. <cite doc_id="report-2024" quote="Revenue was 53 million euros."/>',
)


async def asking(**settings: Any) -> tuple[Services, str, StepResults]:
    """Return a run that waits for the user's answer."""
    services = await corpus_services(REVENUE, settings=fake_settings(**settings))
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    state = await run_to_end(request.run_id, services)
    assert waits(state)
    return services, request.run_id, state


async def view_of(services: Services, run_id: str) -> RunView:
    return await view_run(await owned_run(run_id, ANNA, services.runs), services)


async def answer(services: Services, run_id: str, **body: Any) -> bool:
    record = await owned_run(run_id, ANNA, services.runs)
    return await answer_clarification(record, ClarificationAnswer.model_validate(body), ANNA, services)


def last_prompt(services: Services) -> str:
    return scripted(services.chat_model).prompts[-1].user


async def test_the_options_are_in_the_stream_and_in_the_run() -> None:
    services, run_id, _ = await asking()
    (question_event,) = [event for event in events_of(services, run_id) if event.name == "ASK_USER"]
    assert [(option["number"], option["filename"]) for option in question_event.data["options"]] == [
        (1, "report-2023.pdf"),
        (2, "report-2024.pdf"),
    ]
    view = await view_of(services, run_id)
    assert view.status == "waiting"
    assert view.clarification is not None
    assert view.clarification.question == question_event.data["question"]


async def test_the_run_goes_on_with_the_document_that_was_chosen() -> None:
    services, run_id, state = await asking()
    assert await answer(services, run_id, text="the 2024 one")
    await run_to_end(run_id, services, observe(state, AnswerArrived()))
    view = await view_of(services, run_id)
    assert (view.status, view.clarification) == ("completed", None)
    assert view.answer is not None
    assert [citation.doc_id for citation in view.answer.citations] == ["report-2024"]
    assert "report-2023.pdf" not in last_prompt(services)


async def test_an_option_that_is_not_there_leaves_the_run_waiting() -> None:
    services, run_id, _ = await asking()
    with pytest.raises(CallerError, match="no option 3") as refused:
        await answer(services, run_id, choice=3)
    assert len(refused.value.hints) == 2
    assert (await view_of(services, run_id)).status == "waiting"
    assert await answer(services, run_id, choice=1)


async def test_the_same_answer_may_come_again_and_another_one_may_not() -> None:
    services, run_id, state = await asking()
    assert await answer(services, run_id, choice=2)
    assert await answer(services, run_id, text="the second")
    with pytest.raises(ConflictError):
        await answer(services, run_id, choice=1)
    await run_to_end(run_id, services, observe(state, AnswerArrived()))
    assert not await answer(services, run_id, choice=2)
    with pytest.raises(ConflictError):
        await answer(services, run_id, choice=1)


async def test_words_that_choose_nothing_widen_the_question_to_all_options() -> None:
    services, run_id, state = await asking()
    await answer(services, run_id, text="in the region of Bavaria")
    await run_to_end(run_id, services, observe(state, AnswerArrived()))
    prompt = last_prompt(services)
    assert f"{QUESTION} (in the region of Bavaria)" in prompt
    assert "report-2023.pdf" in prompt
    assert "report-2024.pdf" in prompt
    assert "manual.pdf" not in prompt


async def test_without_an_answer_in_time_all_options_are_read_and_it_is_said() -> None:
    services, run_id, state = await asking()
    await run_to_end(run_id, services, observe(state, AnswerTimedOut()))
    assert (await view_of(services, run_id)).status == "completed"
    assert "report-2023.pdf" in last_prompt(services)
    assert any(
        "No answer came in time" in str(event.data.get("text")) for event in events_of(services, run_id)
    )
    with pytest.raises(ConflictError):
        await answer(services, run_id, choice=1)


async def test_an_answer_at_the_last_moment_counts_although_the_time_is_over() -> None:
    services, run_id, state = await asking()
    await answer(services, run_id, choice=1)
    await run_to_end(run_id, services, observe(state, AnswerTimedOut()))
    assert "report-2024.pdf" not in last_prompt(services)


async def test_nobody_answers_what_was_not_asked() -> None:
    services = await corpus_services()
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    with pytest.raises(ConflictError, match="no open clarifying question"):
        await answer(services, request.run_id, choice=1)


async def test_steps_of_a_question_back_may_run_twice() -> None:
    services, run_id, state = await asking()
    before = events_of(services, run_id)
    ask = Prepare(step=1)
    assert isinstance(await perform(StepInput(run_id=run_id, action=ask), services), UserAsked)
    assert events_of(services, run_id) == before
    await answer(services, run_id, choice=2)
    action = next_action(observe(state, AnswerArrived()))
    assert isinstance(action, TakeAnswer)
    results = [await perform(StepInput(run_id=run_id, action=action), services) for _ in range(2)]
    assert results[0] == results[1]


async def test_the_todo_list_of_a_run_that_waits_is_seen() -> None:
    services, run_id, _ = await asking()
    assert [item.status for item in (await view_of(services, run_id)).todo] == ["in_progress"] * 2


async def messages(agent: Agent, text: str) -> list[RunEvent]:
    return [event async for event in agent.execute(text, "session-1")]


async def test_the_next_message_of_a_session_answers_what_the_last_one_was_asked() -> None:
    agent = Agent.create_rag_agent(await corpus_services(REVENUE), ANNA)
    question_event = (await messages(agent, QUESTION))[-1]
    assert question_event.name == "ASK_USER"
    again = await messages(agent, "7")
    assert [event.name for event in again] == ["ASK_USER"]
    assert "no option 7" in again[0].data["question"]
    done = (await messages(agent, "the second"))[-1]
    assert done.name == "COMPLETE"
    assert [cited["doc_id"] for cited in done.data["answer"]["citations"]] == ["report-2024"]


async def test_a_question_back_that_nobody_answered_in_time_is_forgotten_by_its_session() -> None:
    settings = fake_settings(clarification_timeout_s=0.001)
    agent = Agent.create_rag_agent(await corpus_services(REVENUE, settings=settings), ANNA)
    await messages(agent, QUESTION)
    assert (await messages(agent, QUESTION))[0].name == "THOUGHT"


async def test_run_whose_question_back_expired_leaves_nothing_behind() -> None:
    services = await corpus_services(REVENUE, settings=fake_settings(clarification_timeout_s=0.001))
    agent = Agent.create_rag_agent(services, ANNA)
    runs: list[set[str]] = []
    for _ in range(2):
        await messages(agent, QUESTION)
        await asyncio.sleep(0.01)  # until the question has expired
        names = [blob.name async for blob in services.blobs.list_blobs(WORK, "runs/")]
        runs.append({name.split("/")[1] for name in names})
    first, second = runs
    assert len(first) == len(second) == 1
    assert first.isdisjoint(second)


async def test_a_session_is_its_users_own() -> None:
    services = await corpus_services(REVENUE)
    await messages(Agent.create_rag_agent(services, ANNA), QUESTION)
    other = ANNA.model_copy(update={"user_id": "carl"})
    assert (await messages(Agent.create_rag_agent(services, other), "2"))[0].name == "THOUGHT"
