"""Tests for runs of agents, which use the normal loop with fewer documents and tools and a smaller budget."""

from typing import Any

from shared.answering.effects import perform_metered
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run, renew_run, view_run
from shared.answering.steps import Prepare, StepInput
from shared.platform.errors import CallTimeoutError
from shared.platform.language_models.models import Message, ModelTurn, ToolCall
from shared.runs.agents import AgentDefinition
from shared.runs.models import ChatRequest, Choice, RunView
from shared.runs.run_files import RunFiles
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_settings
from tests.world import ANNA, BEN, corpus_services, plan

CITED = 'It runs at 15 bar. <cite doc_id="manual" quote="The pump runs at 15 bar."/>'


def agent(**changes: Any) -> AgentDefinition:
    values = {
        "name": "helper",
        "description": "Helps.",
        "instructions": "You are kind to pumps.",
        "tools": ["rag_semantic_search"],
        "access": ["*"],
    }
    return AgentDefinition.model_validate({**values, **changes})


async def ask_agent(
    services: Services, asks: AgentDefinition, question: str = "At what pressure?"
) -> RunView:
    """Run a question to an agent to its end and return the run."""
    request = await begin_run(ChatRequest(question=question), ANNA, services)
    files = RunFiles(services.blobs, request.run_id)
    narrowed = {"agent": asks, "user": asks.restrict_user(ANNA)}
    await files.put_request(request.model_copy(update=narrowed))
    await run_to_end(request.run_id, services)
    record = await services.runs.get(request.run_id)
    assert record is not None
    return await view_run(record, services, ANNA)


def call(name: str, arguments: str = '{"query": "pump"}') -> ModelTurn:
    return ModelTurn(tool_calls=(ToolCall(call_id="c", name=name, arguments=arguments),))


def material(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.text for message in messages)


async def test_an_agent_proves_its_answer_as_every_answer_does() -> None:
    model = ScriptedChatModel(plan(), CITED)
    view = await ask_agent(await corpus_services(chat_model=model), agent())
    assert view.answer is not None
    assert [cited.verified for cited in view.answer.citations] == [True]
    system = model.conversations[0][0].text
    assert "You are kind to pumps." in system
    assert "only from its documents" in system
    assert [tool.name for tool in model.tools[0]] == ["rag_semantic_search"]


async def test_small_talk_with_an_agent_needs_no_proof() -> None:
    small_talk = plan(query_type="CONVERSATION", reply="You are welcome.", todo=())
    view = await ask_agent(
        await corpus_services(chat_model=ScriptedChatModel(small_talk)), agent(), "Thanks!"
    )
    assert view.answer is not None
    outcome = (view.answer.text, view.answer.unsupported_claims, view.answer.abstained, view.answer.warnings)
    assert outcome == ("You are welcome.", 0, False, ())
    model = ScriptedChatModel(small_talk, "<answer>Ahoy!")
    view = await ask_agent(await corpus_services(chat_model=model), agent(proof="optional"), "Thanks!")
    assert view.answer is not None
    assert view.answer.text == "Ahoy!"


async def test_a_tool_that_it_does_not_have_cannot_be_called() -> None:
    model = ScriptedChatModel(plan(), call("rag_list_documents", "{}"), CITED)
    view = await ask_agent(await corpus_services(chat_model=model), agent())
    assert view.answer is not None
    assert "There is no tool" in model.conversations[1][-1].text


async def test_a_tool_that_was_switched_off_since_is_gone() -> None:
    model = ScriptedChatModel(call("python", '{"code": "1"}'), "<answer>One.")
    await ask_agent(
        await corpus_services(chat_model=model), agent(tools=["python", "rag_facets"], proof="optional")
    )
    assert [tool.name for tool in model.tools[0]] == ["rag_facets"]
    assert "There is no tool" in model.conversations[1][-1].text


async def test_questions_without_an_agent_have_the_tools_that_are_switched_on() -> None:
    settings = fake_settings(agent_tools="python", subagents_enabled=False)
    model = ScriptedChatModel(plan(), CITED)
    services = await corpus_services(chat_model=model, settings=settings)
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    await run_to_end(request.run_id, services)
    assert [tool.name for tool in model.tools[0]][-1] == "python"


async def test_without_search_it_sees_no_document_unasked() -> None:
    model = ScriptedChatModel(call("rag_list_documents", "{}"), "<answer>The manual.")
    services = await corpus_services(chat_model=model)
    view = await ask_agent(services, agent(tools=["rag_list_documents"], proof="optional"))
    assert "15 bar" not in material(model.conversations[0])
    assert "manual.pdf" in material(model.conversations[1])
    assert view.answer is not None
    assert (view.answer.text, view.answer.unsupported_claims) == ("The manual.", 0)


async def test_filters_narrow_every_tool() -> None:
    model = ScriptedChatModel(
        plan(),
        call("rag_semantic_search", '{"query": "pump", "filters": {"project_id": "other"}}'),
        call("rag_list_documents", "{}"),
        "<answer>Nothing here.",
    )
    tools = ["rag_semantic_search", "rag_list_documents"]
    filtered = agent(tools=tools, proof="optional", filters={"project_id": ["none"]})
    view = await ask_agent(await corpus_services(chat_model=model), filtered)
    assert view.answer is not None
    assert view.answer.citations == ()
    for conversation in model.conversations:
        assert "15 bar" not in material(conversation)
        assert "manual.pdf" not in material(conversation)


async def test_filters_hold_after_a_wait_and_when_a_run_begins_late() -> None:
    services = await corpus_services()
    filtered = agent(filters={"department": ["hr"]})
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    files = RunFiles(services.blobs, request.run_id)
    await files.put_request(request.model_copy(update={"agent": filtered}))
    await renew_run(request.run_id, BEN, request.created_at, services)
    renewed = await files.request()
    assert (renewed.user.user_id, renewed.user.within) == ("ben", {"department": ("hr",)})
    answered = renewed.with_rights_of(Choice(asker=ANNA).asker)
    assert (answered.user.user_id, answered.user.within) == ("anna", {"department": ("hr",)})


async def test_its_limits_end_its_work() -> None:
    forever = (call("rag_list_documents", f'{{"limit": {number}}}') for number in range(1, 9))
    model = ScriptedChatModel(*forever)
    limited = agent(tools=["rag_list_documents"], limits={"turns": 3}, proof="optional")
    view = await ask_agent(await corpus_services(chat_model=model), limited)
    assert view.status in ("completed", "failed")
    assert len(model.conversations) <= 4  # the last turn is retried once


async def test_calls_beyond_its_limit_are_refused() -> None:
    model = ScriptedChatModel(
        call("rag_list_documents", '{"limit": 1}'), call("rag_list_documents", '{"limit": 2}'), "<answer>One."
    )
    limited = agent(tools=["rag_list_documents"], limits={"calls": 1}, proof="optional")
    await ask_agent(await corpus_services(chat_model=model), limited)
    assert "No more tools can be called" in model.conversations[2][-1].text


async def test_limits_only_lower_those_of_the_settings() -> None:
    settings = (await corpus_services()).settings
    limited = agent(limits={"turns": 20, "tokens": 10**9, "seconds": 10**6}).limit_settings(settings)
    assert limited.budgets == settings.budgets
    assert limited.answering.max_agent_turns == settings.answering.max_agent_turns


async def test_tokens_of_an_agent_are_counted_against_its_limit() -> None:
    services = await corpus_services()
    limited = agent(limits={"tokens": 1000})
    request = await begin_run(ChatRequest(question="x"), ANNA, services)
    await RunFiles(services.blobs, request.run_id).put_request(request.model_copy(update={"agent": limited}))
    step = StepInput(run_id=request.run_id, action=Prepare(step=1), tokens=1000)
    result = await perform_metered(step, services)
    assert result.tokens == 0, "no call is made that there are no tokens for"


async def test_its_model_is_asked() -> None:
    own = ScriptedChatModel("<answer>Hello.")
    services = await corpus_services(other_models={"small": own}.__getitem__)
    view = await ask_agent(services, agent(tools=[], proof="optional", model="small"))
    assert view.answer is not None
    assert view.answer.text == "Hello."


async def test_when_its_model_fails_there_is_no_invented_answer() -> None:
    model = ScriptedChatModel(*(CallTimeoutError("late") for _ in range(9)))
    view = await ask_agent(await corpus_services(chat_model=model), agent(tools=[], proof="optional"))
    assert (view.status, view.answer) == ("failed", None)
