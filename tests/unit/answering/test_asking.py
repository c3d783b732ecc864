"""Tests for questions that the model asks the user: their text, the reply, and the rights applied."""

import json
from typing import Any

import pytest

from shared.access.models import UserContext
from shared.answering.clarification_steps import answer_clarification
from shared.answering.inline import run_to_end, waits
from shared.answering.runs import begin_run, view_run
from shared.answering.script import StepResults
from shared.answering.steps import (
    AnswerArrived,
    AnswerTimedOut,
    LooksFurther,
    Observation,
    StepInput,
    TakeTurn,
)
from shared.conversations.messages import read_messages
from shared.platform.errors import CallerError
from shared.platform.language_models.models import ModelTurn, ToolCall
from shared.runs.models import ChatRequest, ClarificationAnswer, RunView
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel, scripted
from tests.fakes.run_log import InMemoryRunLog
from tests.scripts import observe, perform
from tests.unit.answering.pictures import add_pictures
from tests.world import ANNA, TEXTS, corpus_services, events_of, plan

ANSWER = '<answer>It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'


def ask_call(call_id: str = "c1", **arguments: Any) -> ToolCall:
    call_arguments = {"question": "Which pump?", "options": ["the small one", "the large one"], **arguments}
    return ToolCall(call_id=call_id, name="ask_user", arguments=json.dumps(call_arguments))


async def asking(*calls: ToolCall, then: str = ANSWER) -> tuple[Services, str, StepResults]:
    """Return a run that waits because the model asked the user a question."""
    turn = ModelTurn(text="I need to know.", tool_calls=calls or (ask_call(),))
    services = await corpus_services(chat_model=ScriptedChatModel(plan(), turn, then))
    request = await begin_run(ChatRequest(question="At what pressure does the pump run?"), ANNA, services)
    state = await run_to_end(request.run_id, services)
    assert waits(state)
    return services, request.run_id, state


async def answered(
    services: Services, run_id: str, state: StepResults, user: UserContext = ANNA, **body: Any
) -> RunView:
    """Continue the run with the user's answer, or with a timeout if `body` is empty, and return it."""
    observation: Observation = AnswerTimedOut()
    if body:
        record = await owned_run(run_id, ANNA, services.runs)
        answer = ClarificationAnswer.model_validate(body)
        assert await answer_clarification(record, answer, user, services)
        observation = AnswerArrived()
    await run_to_end(run_id, services, observe(state, observation))
    return await view_run(await owned_run(run_id, ANNA, services.runs), services)


def tool_result(services: Services) -> dict[str, Any]:
    """Return the result of the tool call as the model received it."""
    messages = scripted(services.chat_model).conversations[-1]
    (result,) = [message.text for message in messages if message.call_id == "c1"]
    return dict(json.loads(result))


async def test_the_question_is_in_the_stream_and_in_the_run() -> None:
    services, run_id, _ = await asking()
    (question_event,) = [event for event in events_of(services, run_id) if event.name == "ASK_USER"]
    assert question_event.data["question"] == "Which pump?"
    assert [(one["number"], one["title"]) for one in question_event.data["options"]] == [
        (1, "the small one"),
        (2, "the large one"),
    ]
    view = await view_run(await owned_run(run_id, ANNA, services.runs), services)
    assert view.status == "waiting"
    assert view.clarification is not None
    assert view.clarification.question == "Which pump?"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ({"choice": 2}, {"answer": "2", "chosen": ["the large one"]}),
        ({"text": "the small one"}, {"answer": "the small one", "chosen": ["the small one"]}),
        ({"text": "the one in Kiel"}, {"answer": "the one in Kiel", "chosen": []}),
        ({}, {"answer": None, "note": "The user didn't answer in time. State your assumption and continue."}),
    ],
)
async def test_the_model_goes_on_with_the_answer(body: dict[str, Any], result: dict[str, Any]) -> None:
    services, run_id, state = await asking()
    view = await answered(services, run_id, state, **body)
    assert view.answer is not None
    assert view.answer.text == "It runs at 15 bar. (Source: manual.pdf, S. 1)[1]"
    assert (view.status, view.clarification) == ("completed", None)
    assert tool_result(services) == {"success": True, **result}
    (status,) = [event.data for event in events_of(services, run_id) if event.data.get("state") == "answered"]
    assert status["timed_out"] == (not body)
    assert status.get("words") == (body.get("text") if body and not status["choice"] else None)
    (message,) = (await read_messages(view.thread_id, ANNA, services, 20)).messages
    assert message.clarification is not None
    assert message.clarification.question == "Which pump?"
    assert message.clarification.answer == (", ".join(result.get("chosen", ())) or body.get("text", ""))


async def test_a_question_without_options_takes_any_words_and_no_number() -> None:
    services, run_id, state = await asking(ask_call(options=[]))
    with pytest.raises(CallerError):
        await answered(services, run_id, state, choice=1)
    await answered(services, run_id, state, text="5")
    assert tool_result(services)["answer"] == "5"


async def test_the_rights_of_whoever_answers_count_for_what_was_found_before_too() -> None:
    services, run_id, state = await asking(then="<answer>I cannot say.")
    before = scripted(services.chat_model).conversations[0]
    assert "15 bar" in before[1].text
    view = await answered(services, run_id, state, UserContext(user_id="anna"), choice=1)
    after = scripted(services.chat_model).conversations[-1]
    assert "15 bar" not in "".join(message.text for message in after)
    assert view.answer is not None
    assert view.answer.citations == ()


async def test_they_count_for_records_that_were_looked_up_before_too() -> None:
    got = ToolCall(call_id="g1", name="rag_get_document", arguments='{"doc_id": "manual"}')
    question_turn = ModelTurn(tool_calls=(ask_call(),))
    model = ScriptedChatModel(plan(), ModelTurn(tool_calls=(got,)), question_turn, "<answer>I cannot say.")
    services = await corpus_services(chat_model=model)
    request = await begin_run(ChatRequest(question="At what pressure does the pump run?"), ANNA, services)
    state = await run_to_end(request.run_id, services)
    assert waits(state)
    assert "About manual." in "".join(message.text for message in model.conversations[-1])
    await answered(services, request.run_id, state, UserContext(user_id="anna"), choice=1)
    assert "About manual." not in "".join(message.text for message in model.conversations[-1])


async def test_they_count_for_the_records_of_a_listing_too() -> None:
    question_turn = ModelTurn(tool_calls=(ask_call(),))
    model = ScriptedChatModel(plan(query_type="LISTING"), question_turn, "<answer>I cannot say.")
    services = await corpus_services(chat_model=model)
    for doc_id in ("manual", "report-2023"):
        await add_pictures(services, doc_id, TEXTS[doc_id][1])
    request = await begin_run(ChatRequest(question="Which documents are there?"), ANNA, services)
    state = await run_to_end(request.run_id, services)
    assert waits(state)
    assert "About manual." in model.conversations[-1][1].text
    await answered(services, request.run_id, state, UserContext(user_id="anna"), choice=1)
    assert "About manual." not in model.conversations[-1][1].text
    assert "About report-2023." in model.conversations[-1][1].text


async def test_the_person_is_asked_once() -> None:
    second = ModelTurn(tool_calls=(ask_call("c2", question="And which valve?"),))
    turn = ModelTurn(tool_calls=(ask_call(), ask_call("c3", question="And where?")))
    services = await corpus_services(chat_model=ScriptedChatModel(plan(), turn, second, ANSWER))
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    state = await run_to_end(request.run_id, services)
    assert (await answered(services, request.run_id, state, choice=1)).status == "completed"
    assert [event.name for event in events_of(services, request.run_id)].count("ASK_USER") == 1
    messages = scripted(services.chat_model).conversations[-1]
    refusals = {message.call_id for message in messages if "can be asked only once" in message.text}
    assert refusals == {"c2", "c3"}


async def test_a_call_with_wrong_arguments_asks_nobody() -> None:
    turn = ModelTurn(tool_calls=(ask_call(question=""),))
    services = await corpus_services(chat_model=ScriptedChatModel(plan(), turn, ANSWER))
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    assert not waits(await run_to_end(request.run_id, services))
    assert tool_result(services)["type"] == "InvalidQueryError"


async def test_a_worker_that_died_before_it_asked_asks_when_it_comes_again() -> None:
    services, run_id, _ = await asking()
    assert isinstance(services.run_log, InMemoryRunLog)
    services.run_log.cut_last(run_id)  # the question was stored but not sent
    step = StepInput(run_id=run_id, action=TakeTurn(step=2, prepared_step=1))
    for _ in range(2):
        observation = await perform(step, services)
        assert isinstance(observation, LooksFurther)
        assert observation.expires_at
        assert [event.name for event in events_of(services, run_id)].count("ASK_USER") == 1
