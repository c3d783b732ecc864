"""Tests for runs that waited for a reply: the rights at the time of the reply apply, not earlier ones."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.access.models import UserContext
from shared.answering.agent import Agent
from shared.answering.clarification_steps import answer_clarification
from shared.answering.inline import run_to_end, waits
from shared.answering.runs import Arrival, begin_run, view_run
from shared.answering.script import StepResults
from shared.answering.steps import AnswerArrived, AnswerTimedOut
from shared.documents.state import Rights
from shared.runs.models import ChatRequest, ClarificationAnswer, RunView
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.models import scripted
from tests.fakes.search_index import InMemorySearchIndex
from tests.scripts import observe
from tests.unit.subagents.child_models import CountedModel
from tests.unit.subagents.delegation_requests import decided, delegation_request, services_with
from tests.unit.subagents.stored_child import GOOD, READY, stored_child
from tests.unit.teams.chat import chat
from tests.world import ANNA, Model, corpus_services, plan

QUESTION = "What was the revenue in the report?"
WITHOUT_GROUPS = UserContext(user_id=ANNA.user_id)
REVENUE = Model(
    plan(standalone_question=QUESTION, search_queries=("revenue",), document_references=("report",)),
    answer='It was 53. <cite doc_id="report-2024" quote="Revenue was 53 million euros."/>',
)
LONG_AGO = timedelta(days=2)


async def world_of_groups() -> Services:
    """Return services in which Anna may read both reports only through a group."""
    return await by_group_alone(await corpus_services(REVENUE))


async def by_group_alone(services: Services) -> Services:
    for index, key in ((services.documents_index, "doc_id"), (services.content_index, "block_id")):
        assert isinstance(index, InMemorySearchIndex)
        names = [name for name in index.rows if name.startswith("report")]
        await index.merge([{key: name, "access_control_list": ["engineering"]} for name in names])
    rights = Rights(acl=("engineering",))
    for doc_id in ("report-2023", "report-2024"):
        state = await services.documents.get(doc_id)
        assert state is not None
        await services.documents.replace(state.model_copy(update={"rights": rights, "wanted_rights": rights}))
    return services


async def waiting(services: Services, asked_before: timedelta = LONG_AGO) -> tuple[str, StepResults]:
    """Return a run that waits for a reply and was started `asked_before` ago."""
    asked_at = datetime.now(UTC) - asked_before
    request = await begin_run(ChatRequest(question=QUESTION), ANNA, services, Arrival(asked_at))
    state = await run_to_end(request.run_id, services)
    assert waits(state)
    return request.run_id, state


async def gone_on(
    services: Services, run_id: str, state: StepResults, answered_by: UserContext | None
) -> RunView:
    record = await owned_run(run_id, ANNA, services.runs)
    if answered_by is not None:
        await answer_clarification(record, ClarificationAnswer(choice=2), answered_by, services)
    await run_to_end(run_id, services, observe(state, AnswerArrived() if answered_by else AnswerTimedOut()))
    return await view_run(await owned_run(run_id, ANNA, services.runs), services)


def cited(view: RunView) -> list[str]:
    assert view.answer is not None
    return [citation.doc_id for citation in view.answer.citations]


async def test_whoever_answers_with_fewer_groups_than_they_asked_with_is_told_of_fewer_documents() -> None:
    services = await world_of_groups()
    run_id, state = await waiting(services)
    view = await gone_on(services, run_id, state, WITHOUT_GROUPS)
    assert (view.status, cited(view)) == ("completed", [])
    assert "53 million" not in scripted(services.chat_model).prompts[-1].user


async def test_whoever_answers_with_the_same_groups_is_told_as_before() -> None:
    services = await world_of_groups()
    run_id, state = await waiting(services)
    assert cited(await gone_on(services, run_id, state, ANNA)) == ["report-2024"]


async def test_without_an_answer_for_long_groups_count_no_more_and_it_is_said() -> None:
    services = await world_of_groups()
    run_id, state = await waiting(services)
    view = await gone_on(services, run_id, state, None)
    assert cited(view) == []
    assert view.answer is not None
    assert any("didn't reply in time" in warning for warning in view.answer.warnings)


async def test_without_an_answer_for_a_moment_they_still_count() -> None:
    services = await world_of_groups()
    run_id, state = await waiting(services, timedelta(seconds=1))
    view = await gone_on(services, run_id, state, None)
    assert cited(view) == ["report-2024"]
    assert view.answer is not None
    assert view.answer.warnings == ()


@pytest.mark.parametrize(("user", "documents"), [(ANNA, ["report-2024"]), (WITHOUT_GROUPS, [])])
async def test_in_process_it_is_the_agent_that_takes_the_answer_whose_user_counts(
    user: UserContext, documents: list[str]
) -> None:
    services = await world_of_groups()
    first, second = (Agent.create_rag_agent(services, one) for one in (ANNA, user))
    question_events = [event async for event in first.execute(QUESTION, "session-1")]
    assert question_events[-1].name == "ASK_USER"
    answer_events = [event async for event in second.execute("the second", "session-1")]
    assert [one["doc_id"] for one in answer_events[-1].data["answer"]["citations"]] == documents


async def test_in_a_chat_the_directory_is_asked_anew() -> None:
    bot = await chat(REVENUE)
    await by_group_alone(bot.services)
    await bot.write(QUESTION)
    directory = bot.services.directory
    assert isinstance(directory, InMemoryDirectory)
    directory.groups["anna"] = frozenset()
    (message,) = await bot.write("2")
    assert "It was 53" not in message.reply.text
    assert message.reply.citations == ()


async def test_its_sub_agents_search_as_whoever_answered() -> None:
    stored = delegation_request().stored.model_copy(update={"asker": WITHOUT_GROUPS})
    decision = await decided(replace(delegation_request(), stored=stored), services_with())
    assert decision.delegation is not None
    assert decision.delegation.asker == WITHOUT_GROUPS
    child = await stored_child(CountedModel(READY, GOOD), asker=decision.delegation.asker)
    await child.take()
    assert (await child.state()).hits == ()
