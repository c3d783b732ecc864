"""Tests that evidence of earlier steps is used only while the document row still admits the user."""

from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest

from shared.answering.effects import perform_metered
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run, view_run
from shared.answering.services import AnsweringServices
from shared.answering.steps import StepFields, StepInput
from shared.answering.subagent_models import SubagentEnd, SubagentStart
from shared.documents.state import Rights
from shared.runs.models import ChatRequest, RunView
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel, scripted
from tests.fakes.services import fake_settings
from tests.scripts import next_action, observe, start
from tests.unit.answering.test_delegating import delegate_call, finding
from tests.world import ANNA, QUESTION, World, ask, plan, remove_row

Change = Callable[[Services, str], Awaitable[None]]


async def narrow(services: AnsweringServices, doc_id: str) -> None:
    """Revoke access to a document in its row, before the indexes are updated."""
    state = await services.documents.get(doc_id)
    assert state is not None
    closed = Rights(acl=("somebody",))
    await services.documents.replace(state.model_copy(update={"rights": closed, "wanted_rights": closed}))


async def publish(services: AnsweringServices, doc_id: str) -> None:
    """Publish a new version of a document."""
    state = await services.documents.get(doc_id)
    assert state is not None
    await services.documents.replace(state.model_copy(update={"version": state.version + 1}))


async def two_pumps(model: ScriptedChatModel | None = None) -> Services:
    world = World(model, settings=fake_settings())
    await world.add("manual", "The pump runs at 15 bar.")
    await world.add("leaflet", "The pump weighs 3 kg.")
    return world.services


async def asked_with(change: Change, services: Services) -> RunView:
    """Run a question and change the manual between the search step and the turn."""
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services)
    action = next_action(start())
    assert isinstance(action, StepFields)
    step = StepInput.model_validate({"run_id": request.run_id, "action": action.model_dump(), "tokens": 0})
    prepared = await perform_metered(step, services)
    await change(services, "manual")
    await run_to_end(request.run_id, services, observe(start(), prepared.observation, prepared.tokens))
    return await view_run(await owned_run(request.run_id, ANNA, services.runs), services, ANNA)


@pytest.mark.parametrize("change", [narrow, remove_row, publish])
async def test_a_document_that_changes_before_the_turn_is_neither_shown_nor_cited(change: Change) -> None:
    services = await two_pumps()
    view = await asked_with(change, services)
    prompt = scripted(services.chat_model).prompts[-1]
    assert prompt.name == "answer"
    assert "3 kg" in prompt.user
    assert "15 bar" not in prompt.user
    assert view.answer is not None
    assert view.answer.citations == ()


async def find_and_narrow(
    starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
) -> tuple[SubagentEnd, ...]:
    """Store findings of sub-agents about the manual, and revoke access to it before they end."""
    ends = await finding("The pump was built in 1987.")(starts, until, services)
    await narrow(services, "manual")
    return ends


async def test_a_document_that_changes_while_sub_agents_work_is_neither_shown_nor_cited() -> None:
    services = await two_pumps()
    view, _ = await ask(services, children=find_and_narrow, deep=True)
    prompt = scripted(services.chat_model).prompts[-1]
    assert prompt.name == "answer"
    assert "3 kg" in prompt.user
    assert not any(text in prompt.user for text in ("15 bar", "1987"))
    assert view.answer is not None
    assert view.answer.citations == ()


async def test_a_document_that_changes_during_a_delegation_is_missing_from_its_result() -> None:
    cited = '<answer>In 1987. <cite doc_id="manual" quote="The pump was built in 1987."/>'
    model = ScriptedChatModel(plan(intent="exploratory"), delegate_call(), cited)
    services = await two_pumps(model)
    view, _ = await ask(services, children=find_and_narrow)
    (result,) = [message.text for message in model.conversations[-1] if message.call_id == "d1"]
    assert "1987" not in result
    assert view.answer is not None
    assert [citation for citation in view.answer.citations if citation.verified] == []
    assert not any("15 bar" in message.text for message in model.conversations[-1])
