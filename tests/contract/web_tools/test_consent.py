"""The user is asked once per thread before anything is sent to the web, and sees the text to be sent."""

from typing import Any

import pytest

from shared.answering.agent import Agent
from shared.answering.clarification_steps import answer_clarification
from shared.answering.inline import run_to_end, waits
from shared.answering.runs import begin_run, view_run
from shared.answering.script import StepResults
from shared.answering.steps import AnswerArrived, AnswerTimedOut, StepFields, StepInput
from shared.answering.subagent_models import SubagentEnd
from shared.platform.language_models.models import ModelTurn
from shared.runs.models import ChatRequest, ClarificationAnswer, RunView
from shared.runs.run_store import owned_run
from tests.contract.web_tools.conftest import MakeWeb, Web, calls
from tests.scripts import next_action, observe, perform, start
from tests.world import ANNA, events_of, plan

pytestmark = pytest.mark.attack("exfiltration")

PUMPS = "http://pumps.example/pumps"
SEARCH = calls(("web_search", {"query": "pump pressure standard"}))
READ = calls(("web_fetch", {"url": PUMPS}))
ANSWER = '<answer>At 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'


async def begin(web: Web, thread_id: str | None = None) -> tuple[str, StepResults]:
    """Start a run, and return when it ends or waits for the user."""
    chat = ChatRequest(question="At what pressure may pumps run?", thread_id=thread_id)
    request = await begin_run(chat, ANNA, web.services)
    return request.run_id, await run_to_end(request.run_id, web.services, children=no_children)


async def view_of(web: Web, run_id: str) -> RunView:
    return await view_run(await owned_run(run_id, ANNA, web.services.runs), web.services, ANNA)


async def answer(web: Web, run_id: str, state: StepResults, **answer_fields: Any) -> StepResults:
    record = await owned_run(run_id, ANNA, web.services.runs)
    await answer_clarification(record, ClarificationAnswer.model_validate(answer_fields), ANNA, web.services)
    state = observe(state, AnswerArrived())
    return await run_to_end(run_id, web.services, state, children=no_children)


async def no_children(starts: Any, until: Any, services: Any) -> tuple[SubagentEnd, ...]:
    started.append([start.profile for start in starts])
    return tuple(SubagentEnd(child_id=start.child_id, status="failed") for start in starts)


started: list[list[str]] = []


async def test_nothing_is_sent_before_the_person_has_seen_it_and_agreed(web: MakeWeb) -> None:
    world = await web(SEARCH, READ, ANSWER, page_urls=(PUMPS,), web_consent="ask")
    run_id, state = await begin(world)
    assert waits(state)
    assert (world.search.queries, world.log.looked_up, world.log.dialled) == ([], [], [])
    clarification = (await view_of(world, run_id)).clarification
    assert clarification is not None
    assert "“pump pressure standard”" in clarification.question
    assert [option.number for option in clarification.options] == [1, 2]
    state = await answer(world, run_id, state, choice=1)
    assert not waits(state), "asked once, not for the page that was found"
    assert world.search.queries == ["pump pressure standard"]
    assert "16 bar" in str(world.results())
    view = await view_of(world, run_id)
    assert view.answer is not None
    assert view.answer.citations


@pytest.mark.parametrize(
    "answer_fields", [{"choice": 2}, {"text": "No!"}, {"text": "don't use the web"}, {"text": "1 or 2?"}]
)
async def test_without_a_plain_yes_nothing_is_sent(web: MakeWeb, answer_fields: dict[str, Any]) -> None:
    world = await web(SEARCH, ANSWER, web_consent="ask")
    run_id, state = await begin(world)
    state = await answer(world, run_id, state, **answer_fields)
    assert not waits(state)
    assert (world.search.queries, world.log.looked_up) == ([], [])
    assert [result["type"] for result in world.results()] == ["AccessDeniedError"]
    assert [tool.name for tool in world.model.tools[-1] if tool.name.startswith("web_")] == []
    assert (await view_of(world, run_id)).status == "completed"


@pytest.mark.parametrize(
    "answer_fields", [{"text": "Yes, please."}, {"text": "Yes, use the web in this conversation"}]
)
async def test_a_yes_in_words_is_one(web: MakeWeb, answer_fields: dict[str, Any]) -> None:
    world = await web(SEARCH, ANSWER, web_consent="ask")
    run_id, state = await begin(world)
    await answer(world, run_id, state, **answer_fields)
    assert world.search.queries == ["pump pressure standard"]


async def test_silence_is_a_no_and_the_next_question_asks_again(web: MakeWeb) -> None:
    world = await web(SEARCH, ANSWER, plan(), SEARCH, web_consent="ask")
    run_id, state = await begin(world)
    await run_to_end(run_id, world.services, observe(state, AnswerTimedOut()))
    assert world.search.queries == []
    thread_id = (await view_of(world, run_id)).thread_id
    assert waits((await begin(world, thread_id))[1])


@pytest.mark.parametrize(("choice", "queries"), [(1, 2), (2, 0)])
async def test_the_answer_holds_for_the_thread_and_no_other(web: MakeWeb, choice: int, queries: int) -> None:
    again = (plan(), SEARCH, ANSWER)
    world = await web(SEARCH, ANSWER, *again, *again, web_consent="ask")
    run_id, state = await begin(world)
    await answer(world, run_id, state, choice=choice)
    thread_id = (await view_of(world, run_id)).thread_id
    assert not waits((await begin(world, thread_id))[1])
    assert len(world.search.queries) == queries
    assert waits((await begin(world))[1])


@pytest.mark.parametrize(("preset", "queries"), [("allow", 1), ("deny", 0)])
async def test_an_operator_may_answer_for_everyone(web: MakeWeb, preset: str, queries: int) -> None:
    world = await web(SEARCH, ANSWER, web_consent=preset)
    _, state = await begin(world)
    assert not waits(state)
    assert len(world.search.queries) == queries


async def test_two_questions_are_asked_one_after_the_other(web: MakeWeb) -> None:
    ask = calls(
        ("ask_user", {"question": "Which pump?", "options": ["X200", "X300"]}), ("web_search", {"query": "p"})
    )
    world = await web(ask, SEARCH, ANSWER, web_consent="ask")
    run_id, state = await begin(world)
    clarification = (await view_of(world, run_id)).clarification
    assert clarification is not None
    assert clarification.question == "Which pump?"
    state = await answer(world, run_id, state, choice=2)
    assert waits(state)
    clarification = (await view_of(world, run_id)).clarification
    assert clarification is not None
    assert "“pump pressure standard”" in clarification.question
    await answer(world, run_id, state, choice=1)
    assert world.search.queries == ["pump pressure standard"]


def verify(task: str) -> ModelTurn:
    return calls(("delegate", {"task": task, "profile": "web_verifier"}))


@pytest.mark.parametrize(("choice", "profiles"), [(1, [["web_verifier"]]), (2, [])])
async def test_sub_agent_of_the_web_starts_after_consent_alone(
    web: MakeWeb, choice: int, profiles: list[list[str]]
) -> None:
    started.clear()
    world = await web(
        verify("Check the standard."), ANSWER, web_consent="ask", agent_tools="", subagents_enabled=True
    )
    run_id, state = await begin(world)
    assert waits(state)
    clarification = (await view_of(world, run_id)).clarification
    assert clarification is not None
    assert "“Check the standard.”" in clarification.question
    assert not waits(await answer(world, run_id, state, choice=choice))
    assert started == profiles
    assert (await view_of(world, run_id)).status == "completed"


async def test_session_of_an_agent_in_a_program_asks_once(web: MakeWeb) -> None:
    world = await web(SEARCH, ANSWER, plan(), SEARCH, ANSWER, web_consent="ask")
    agent = Agent.create_rag_agent(world.services, ANNA)

    async def last(text: str) -> str:
        events = [event async for event in agent.execute(text, "session")]
        return events[-1].name

    assert await last("At what pressure may pumps run?") == "ASK_USER"
    assert world.search.queries == []
    assert await last("yes") == "COMPLETE"
    assert await last("And at most?") == "COMPLETE"
    assert len(world.search.queries) == 2


async def test_step_that_is_repeated_asks_once_and_sends_once(web: MakeWeb) -> None:
    world = await web(SEARCH, ANSWER, web_consent="ask")
    chat = ChatRequest(question="At what pressure may pumps run?")
    request = await begin_run(chat, ANNA, world.services)
    run_id = request.run_id

    async def twice(state: StepResults) -> StepResults:
        while isinstance(action := next_action(state), StepFields):
            step_input = StepInput.model_validate({"run_id": run_id, "action": action.model_dump()})
            await perform(step_input, world.services)
            state = observe(state, await perform(step_input, world.services))
        return state

    state = await twice(start())
    assert waits(state)
    record = await owned_run(run_id, ANNA, world.services.runs)
    await answer_clarification(record, ClarificationAnswer(choice=1), ANNA, world.services)
    await twice(observe(state, AnswerArrived()))
    names = [event.name for event in events_of(world.services, run_id)]
    assert (names.count("ASK_USER"), names[-1]) == (1, "COMPLETE")
    assert world.search.queries == ["pump pressure standard"]
