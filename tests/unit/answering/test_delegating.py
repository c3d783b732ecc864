"""Tests for answers with sub-agents, from the decision to the merged findings and failures."""

import json
import logging
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.answering.inline import RunChildren
from shared.answering.runs import begin_run
from shared.answering.script import StepResults
from shared.answering.services import AnsweringServices
from shared.answering.steps import (
    DelegationDeferred,
    Observation,
    StepFields,
    StepInput,
    SubagentsChosen,
    TakeTurn,
)
from shared.answering.subagent_models import Finding, FoundProof, SubagentEnd, SubagentStart, SubagentState
from shared.platform.errors import DependencyError
from shared.platform.language_models.models import ModelTurn, ToolCall
from shared.platform.telemetry import LOGGER_NAME
from shared.quality.models import AnswerRecord
from shared.retrieval.models import Hit
from shared.runs.events import RunEvent
from shared.runs.models import ChatRequest, ChildStatus, RunView
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel, scripted
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.services import fake_settings
from tests.fakes.stores_quality import InMemoryQualityStore
from tests.scripts import delay_s, next_action, observe, perform, start
from tests.unit.subagents.delegation_cases import EVENT_FIELDS
from tests.unit.subagents.lines import keep_state, stored_delegation
from tests.world import ANNA, Model, add_document, corpus_services, events_of, plan
from tests.world import ask as run_question

NAME = "delegation_policy_decision"
PROVED = "The pump runs at 15 bar."


async def delegating_world(**settings: Any) -> Services:
    return await corpus_services(settings=fake_settings(**settings))


async def ask(
    services: Services, run_children: RunChildren | None = None, **body: Any
) -> tuple[RunView, list[RunEvent]]:
    chat = {"deep": True, **body}
    view, events = await run_question(services, children=run_children or silent, **chat)
    assert view.status == "completed"
    return view, events


async def silent(
    starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
) -> tuple[SubagentEnd, ...]:
    """Finish every sub-agent without storing anything."""
    return tuple(SubagentEnd(child_id=one.child_id, status="late") for one in starts)


def finding(text: str, status: ChildStatus = "done", page: str = "") -> RunChildren:
    """Return sub-agents that each store one finding, proved by a passage of their own or by a web page."""

    async def run(
        starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
    ) -> tuple[SubagentEnd, ...]:
        for one in starts:
            passage = Hit(
                block_id="manual-9", doc_id="manual", filename="manual.pdf", page_number=9, score=0.9
            )
            state = SubagentState(
                child_id=one.child_id,
                profile=one.profile,
                status=status,
                started_at=datetime.now(UTC),
                ended_at=datetime.now(UTC),
                turns_ended=1,
                tokens=500,
                hits=(passage.model_copy(update={"content": text}),),
                findings=(
                    Finding(
                        kind="web" if page else "claim",
                        text=text,
                        proofs=(
                            FoundProof(quote=text, url=page)
                            if page
                            else FoundProof(quote=text, doc_id="manual", block_id="manual-9"),
                        ),
                    ),
                ),
            )
            await keep_state(services, one.run_id, one.step, state, one.index)
        return tuple(SubagentEnd(child_id=one.child_id, status=status) for one in starts)

    return run


def facts_of(services: Services) -> AnswerRecord:
    """Return the quality record of the only run."""
    assert isinstance(services.quality, InMemoryQualityStore)
    (record,) = services.quality.records.values()
    assert isinstance(record, AnswerRecord)
    return record


def decisions(events: list[RunEvent]) -> list[dict[str, Any]]:
    return [event.data for event in events if event.data.get("state") == "delegation"]


async def test_each_answer_has_one_decision_in_the_stream_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    _, events = await ask(await corpus_services())
    (decision,) = decisions(events)
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == LOGGER_NAME]
    (line,) = [line for line in lines if line["event"] == NAME]
    contract = EVENT_FIELDS
    known_of_each_line = {"timestamp", "level", "run_id", "thread_id", "user_id"}
    assert line.keys() - known_of_each_line == contract
    assert decision.keys() == contract | {"step", "at", "state", "reasons"}
    assert {name: decision[name] for name in contract} == {name: line[name] for name in contract}
    position = [event.data.get("state") for event in events].index("delegation")
    writing = [event.name for event in events].index("TOKEN")
    assert position < writing


async def test_a_listing_is_decided_on_too() -> None:
    listing = Model(plan(query_type="LISTING"), answer="Three documents.")
    _, events = await ask(await corpus_services(listing))
    assert len(decisions(events)) == 1


async def test_an_answer_is_written_from_what_sub_agents_found() -> None:
    services = await delegating_world()
    view, events = await ask(services, finding("The pump was built in 1987."))
    prompt = scripted(services.chat_model).prompts[-1]
    assert prompt.name == "answer"
    assert "built in 1987" in prompt.user
    assert view.answer is not None
    assert view.answer.text.startswith("It runs at 15 bar.")
    assert [(one.profile, one.status, one.claims) for one in view.answer.sub_agents] == [
        ("evidence_builder", "done", 1)
    ]
    assert view.answer.warnings == ()
    assert [data["decision"] for data in decisions(events)] == ["delegate"]
    facts = facts_of(services)
    assert [(one.decision, one.profile) for one in facts.decisions] == [("delegate", "evidence_builder")]
    (child,) = facts.children
    assert (child.selected, child.profile, child.status, child.timed_out) == (
        "evidence_builder",
        "evidence_builder",
        "done",
        False,
    )
    assert (child.turns, child.tokens, child.claims, child.proved) == (1, 500, 1, 1)


async def test_readers_learn_of_the_decision_before_the_sub_agents_have_ended() -> None:
    services = await delegating_world()
    seen: list[RunEvent] = []

    async def looking(
        starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
    ) -> tuple[SubagentEnd, ...]:
        seen.extend(events_of(services, starts[0].run_id))
        return await silent(starts, until, services)

    await ask(services, looking)
    assert [data["decision"] for data in decisions(seen)] == ["delegate"]
    assert not [event for event in seen if event.name == "TOKEN"]


async def test_sub_agents_that_bring_nothing_cost_a_warning_and_not_the_answer() -> None:
    services = await delegating_world()
    view, events = await ask(services, silent)
    assert view.answer is not None
    assert view.answer.text.startswith("It runs at 15 bar.")
    assert view.answer.warnings
    warnings = [event.data["text"] for event in events if event.data.get("state") == "warning"]
    assert tuple(warnings) == view.answer.warnings
    assert not any(warning in view.answer.text for warning in warnings)
    (child,) = facts_of(services).children
    assert (child.status, child.latency_ms, child.claims) == ("failed", None, 0)


async def test_what_sub_agents_brought_is_taken_once_however_many_turns_follow() -> None:
    call = ToolCall(call_id="c1", name="rag_semantic_search", arguments='{"query": "revenue"}')
    model = ScriptedChatModel(
        plan(), ModelTurn(tool_calls=(call,)), '<answer>15 <cite doc_id="manual" quote="runs at 15 bar"/>'
    )
    services = await corpus_services(chat_model=model, settings=fake_settings())
    view, events = await ask(services, silent)
    assert view.answer is not None
    warnings = [event.data["text"] for event in events if event.data.get("state") == "warning"]
    assert len(warnings) == len(set(warnings)) == len(view.answer.warnings) == 2
    first, second = model.conversations
    assert second[: len(first)] == first


async def test_what_a_finding_proves_counts_as_proof_even_if_it_was_not_shown() -> None:
    cited = '<answer>Built in 1987. <cite doc_id="manual" quote="The pump was built in 1987."/>'
    services = await corpus_services(Model(plan(), answer=cited), settings=fake_settings(answer_blocks=1))
    view, _ = await ask(services, finding("The pump was built in 1987."))
    assert view.answer is not None
    assert [citation.verified for citation in view.answer.citations] == [True]


async def test_what_the_web_says_outlives_a_second_attempt_and_further_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.answering.script._FIRST_DELAY_S", 0.0)
    call = ToolCall(call_id="c1", name="rag_semantic_search", arguments='{"query": "revenue"}')
    cited = '<answer>15 <cite doc_id="manual" quote="runs at 15 bar"/>'
    model = ScriptedChatModel(plan(), DependencyError("HTTP 503"), ModelTurn(tool_calls=(call,)), cited)
    services = await corpus_services(chat_model=model, settings=fake_settings())
    view, _ = await ask(services, finding("It is out of production.", page="https://maker.example/p"))
    assert len(model.conversations) == 3
    assert view.answer is not None
    assert view.answer.text.count("https://maker.example/p") == 1
    assert [one.profile for one in view.answer.sub_agents] == ["evidence_builder"]


async def start_until_first_turn(services: Services, *, deep: bool = True) -> tuple[str, StepResults]:
    """Start a run and perform its steps up to the first turn, which writes the answer or delegates."""
    request = await begin_run(ChatRequest(question="At what pressure?", deep=deep), ANNA, services)
    state = start()
    while not isinstance(action := next_action(state), TakeTurn):
        assert isinstance(action, StepFields)
        step_input = StepInput.model_validate({"run_id": request.run_id, "action": action.model_dump()})
        state = observe(state, await perform(step_input, services))
    return request.run_id, state


async def performed(services: Services, run_id: str, state: StepResults) -> Observation:
    action = next_action(state)
    assert isinstance(action, StepFields)
    return await perform(
        StepInput.model_validate({"run_id": run_id, "action": action.model_dump()}), services
    )


async def test_a_decision_that_was_stored_is_the_same_when_the_activity_runs_again() -> None:
    services = await delegating_world()
    run_id, state = await start_until_first_turn(services)
    first = await performed(services, run_id, state)
    assert isinstance(first, SubagentsChosen)
    without = fake_settings(subagents_enabled=False)
    again = await performed(replace(services, settings=without), run_id, state)
    assert isinstance(again, SubagentsChosen)
    assert [child.child_id for child in again.children] == [child.child_id for child in first.children]
    assert await stored_delegation(services, run_id, next_action(state).step) is not None  # type: ignore[union-attr]


async def test_a_deferred_decision_writes_no_answer_and_comes_again() -> None:
    services = await delegating_world(subagents_max_queue_depth=1, subagents_max_active=20)
    other, waiting = await start_until_first_turn(services)
    await performed(services, other, waiting)  # takes the only place in the queue
    run_id, state = await start_until_first_turn(services)
    observation = await performed(services, run_id, state)
    assert observation == DelegationDeferred(delay_s=0.75)
    action = next_action(observe(state, observation))
    assert action.kind == "turn"  # type: ignore[union-attr]
    assert delay_s(observe(state, observation)) == 0.75


@pytest.fixture
def advised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make decisions advisory, so that the model chooses whether to delegate."""


def delegate_call(**arguments: Any) -> ModelTurn:
    call_arguments = {"task": "When was the pump built?", "profile": "evidence_builder", **arguments}
    call = ToolCall(call_id="d1", name="delegate", arguments=json.dumps(call_arguments))
    return ModelTurn(text="I have it looked up.", tool_calls=(call,))


def delegate_result(model: ScriptedChatModel) -> str:
    """Return the result of the delegate call as the model received it."""
    (text,) = [message.text for message in model.conversations[-1] if message.call_id == "d1"]
    return text


@pytest.mark.usefixtures("advised")
async def test_a_call_of_the_model_sets_sub_agents_to_work_and_their_findings_are_its_result() -> None:
    cited = '<answer>In 1987. <cite doc_id="manual" quote="The pump was built in 1987."/>'
    model = ScriptedChatModel(plan(intent="exploratory"), delegate_call(), cited)
    services = await corpus_services(chat_model=model, settings=fake_settings())
    view, events = await ask(services, finding("The pump was built in 1987."), deep=False)
    assert "The pump was built in 1987." in delegate_result(model)
    assert view.answer is not None
    assert [citation.verified for citation in view.answer.citations] == [True]
    assert [one.profile for one in view.answer.sub_agents] == ["evidence_builder"]
    assert [data["decision"] for data in decisions(events)] == ["delegate", "delegate"]
    first, second = model.conversations
    assert second[: len(first)] == first


@pytest.mark.usefixtures("advised")
async def test_a_call_that_the_policy_refuses_is_answered_with_its_reasons() -> None:
    model = ScriptedChatModel(plan(intent="exploratory"), delegate_call(doc_ids=["no-such"]), "<answer>15.")
    services = await corpus_services(chat_model=model, settings=fake_settings())
    view, events = await ask(services, silent, deep=False)
    assert "TARGET_NOT_READABLE" in delegate_result(model)
    assert view.answer is not None
    assert view.answer.sub_agents == ()
    assert [data["decision"] for data in decisions(events)] == ["delegate", "no_delegate"]


@pytest.mark.usefixtures("advised")
async def test_a_turn_that_delegates_and_runs_again_starts_the_same_sub_agents_and_asks_no_model() -> None:
    model = ScriptedChatModel(plan(intent="exploratory"), delegate_call())
    services = await corpus_services(chat_model=model, settings=fake_settings())
    run_id, state = await start_until_first_turn(services, deep=False)
    chosen = await performed(services, run_id, state)
    assert isinstance(chosen, SubagentsChosen)
    assert chosen.by_model
    again = await performed(services, run_id, state)
    assert isinstance(again, SubagentsChosen)
    assert again.by_model
    assert [one.child_id for one in again.children] == [one.child_id for one in chosen.children]
    assert len(model.conversations) == 1


@pytest.mark.parametrize(("references", "is_advised"), [(("manual",), False), ((), True)])
async def test_documents_that_are_shown_whole_come_without_advice_to_delegate(
    references: tuple[str, ...], is_advised: bool
) -> None:
    question_plan = plan(intent="evidence_trace", document_references=references)
    model = Model(question_plan, answer="<answer>At 15.").chat_model()
    services = await corpus_services(chat_model=model, settings=fake_settings())
    await add_document(services, "atlas", *(f"Pressure at {depth} m: high." for depth in range(20)))
    _, events = await ask(services, silent, deep=False)
    assert [data["decision"] for data in decisions(events)] == ["delegate"]
    prompt = model.prompts[-1].user
    documents = prompt.count("<document doc_id")
    all_are_whole = prompt.count('whole="yes"') == documents > 0
    assert (all_are_whole, "<advice>" in prompt) == (not is_advised, is_advised)


async def test_a_call_with_wrong_arguments_is_answered_and_starts_nobody() -> None:
    model = ScriptedChatModel(plan(), delegate_call(profile="wizard"), "<answer>15.")
    view, _ = await ask(await corpus_services(chat_model=model, settings=fake_settings()), silent, deep=False)
    assert "InvalidQueryError" in delegate_result(model)
    assert view.status == "completed"


@pytest.mark.parametrize(
    ("query_type", "intent", "references"),
    [
        ("DOCUMENT_SUMMARY", "doc_summary", ("report 2023",)),
        ("COMPARISON", "compare_docs", ("report 2023", "report 2024")),
    ],
)
async def test_short_documents_are_read_whole_in_order_without_sub_agents(
    query_type: str, intent: str, references: tuple[str, ...]
) -> None:
    question_plan = plan(query_type=query_type, intent=intent, document_references=references)
    services = await corpus_services(
        Model(question_plan, answer="<answer>It grew."), settings=fake_settings(answer_blocks=1)
    )
    assert isinstance(services.content_index, InMemorySearchIndex)
    for doc_id in ("report-2023", "report-2024"):
        rows = [
            {
                "block_id": f"{doc_id}-{number}",
                "doc_id": doc_id,
                "filename": f"{doc_id}.pdf",
                "block_type": "text",
                "ordinal": ordinal,
                "content": f"Statement {ordinal} of {doc_id}.",
                "access_control_list": ["*"],
            }
            for number, ordinal in enumerate((5, 3, 1, 4, 2), start=2)
        ]
        await services.content_index.upload(rows)
    view, events = await ask(services, silent, deep=False)
    prompt = scripted(services.chat_model).prompts[-1]
    for name in references:
        doc_id = name.replace(" ", "-")
        order = re.findall(rf"Statement (\d) of {doc_id}\.", prompt.user)
        assert order == ["1", "2", "3", "4", "5"]
    assert prompt.user.count('whole="yes"') == len(references)
    (decided,) = decisions(events)
    assert (decided["decision"], "FITS_WHOLE" in decided["reason_codes"]) == ("no_delegate", True)
    assert view.answer is not None
    assert view.answer.sub_agents == ()


async def test_sub_agent_that_used_no_tokens_is_charged_none() -> None:
    def ending(**reported: Any) -> RunChildren:
        async def run(
            starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
        ) -> tuple[SubagentEnd, ...]:
            return tuple(
                SubagentEnd.model_validate({"child_id": one.child_id, "status": "failed", **reported})
                for one in starts
            )

        return run

    async def tokens_used(run_children: RunChildren) -> int:
        view, _ = await ask(await delegating_world(), run_children)
        assert view.answer is not None
        return view.answer.tokens

    used_none = await tokens_used(ending(tokens=0))
    assert await tokens_used(ending(tokens=500)) == used_none + 500
    assert await tokens_used(ending()) > used_none + 5_000  # unknown usage counts as the whole budget
