"""Answers with sub-agents, through the whole loop: decided, told, run, collected, and never in the way."""

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.answering.effects import perform
from shared.answering.inline import RunChildren, run_to_end
from shared.answering.loop import LoopState, next_action, observe, start
from shared.answering.runs import begin_run, view_run
from shared.answering.services import AnsweringServices
from shared.answering.steps import DelegationDeferred, Observation, Step, StepInput, SubagentsChosen
from shared.platform.names import WORK
from shared.platform.telemetry import LOGGER_NAME
from shared.retrieval.models import Hit
from shared.runs.events import RunEvent
from shared.runs.models import ChatRequest, ChildStatus, RunView
from shared.runs.run_store import owned_run
from shared.subagents.artifacts import find_delegation, state_path
from shared.subagents.models import Finding, FoundProof, SubagentEnd, SubagentStart, SubagentState
from shared.subagents.policy_models import DelegationEvent
from shared.wiring import Services
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.services import fake_settings
from tests.unit.answering.world import ANNA, Model, plan, world

NAME = "delegation_policy_decision"
PROVED = "The pump runs at 15 bar."


async def delegating_world(**settings: Any) -> Services:
    return await world(settings=fake_settings(**settings))


async def ask(
    services: Services, run_children: RunChildren | None = None, **body: Any
) -> tuple[RunView, list[RunEvent]]:
    chat = ChatRequest.model_validate({"question": "At what pressure does the pump run?", **body})
    request = await begin_run(chat, ANNA, services)
    await run_to_end(request.run_id, services, children=run_children or silent)
    view = await view_run(await owned_run(request.run_id, ANNA, services.runs), services)
    assert view.status == "completed"
    assert isinstance(services.run_log, InMemoryRunLog)
    return view, services.run_log.events(request.run_id)


async def silent(
    starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
) -> tuple[SubagentEnd, ...]:
    """Sub-agents that store nothing."""
    return tuple(SubagentEnd(child_id=one.child_id, status="late") for one in starts)


def finding(text: str, status: ChildStatus = "done") -> RunChildren:
    """Sub-agents that each store one finding, proved by a passage that nobody else has."""

    async def run(
        starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
    ) -> tuple[SubagentEnd, ...]:
        for one in starts:
            passage = Hit(
                block_id="manual-9", doc_id="manual", filename="manual.pdf", page_number=9, score=0.9
            )
            state = SubagentState(
                child_id=one.child_id,
                profile=one.profiles[0],
                status=status,
                started_at=datetime.now(UTC),
                ended_at=datetime.now(UTC),
                turns_ended=1,
                tokens=500,
                hits=(passage.model_copy(update={"content": text}),),
                findings=(
                    Finding(
                        kind="claim",
                        text=text,
                        proofs=(FoundProof(quote=text, doc_id="manual", block_id="manual-9"),),
                    ),
                ),
            )
            path = state_path(one.run_id, one.step, one.index)
            await services.blobs.write(WORK, path, state.model_dump_json().encode())
        return tuple(SubagentEnd(child_id=one.child_id, status=status) for one in starts)

    return run


def decisions(events: list[RunEvent]) -> list[dict[str, Any]]:
    return [event.data for event in events if event.data.get("state") == "delegation"]


async def test_each_answer_has_one_decision_in_the_stream_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    _, events = await ask(await world())
    (shown,) = decisions(events)
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == LOGGER_NAME]
    (line,) = [line for line in lines if line["event"] == NAME]
    contract = set(DelegationEvent.model_fields)
    known_of_each_line = {"timestamp", "level", "run_id", "thread_id", "user_id"}
    assert line.keys() - known_of_each_line == contract
    assert shown.keys() == contract | {"step", "state", "reasons"}
    assert {name: shown[name] for name in contract} == {name: line[name] for name in contract}
    position = [event.data.get("state") for event in events].index("delegation")
    writing = [event.name for event in events].index("TOKEN")
    assert position < writing


async def test_a_listing_is_decided_on_too() -> None:
    listing = Model(plan(query_type="LISTING", intent="exploratory"), answer="Three documents.")
    _, events = await ask(await world(listing))
    assert len(decisions(events)) == 1


async def test_an_answer_that_there_is_none_counts_in_the_next_decision() -> None:
    abstaining = Model(plan(), answer='<abstain missing="the pressure" next_step="Ask."/>')
    services = await world(abstaining, settings=fake_settings(answer_blocks=1))  # the second finds another
    _, events = await ask(services)
    first, second = decisions(events)
    assert "PRIOR_FAILURES" not in first["reason_codes"]
    assert "PRIOR_FAILURES" in second["reason_codes"]


async def test_an_answer_is_written_from_what_sub_agents_found() -> None:
    services = await delegating_world()
    view, events = await ask(services, finding("The pump was built in 1987."))
    prompt = services.chat_model.prompts[-1]  # type: ignore[attr-defined]
    assert prompt.name == "answer"
    assert "built in 1987" in prompt.user
    assert view.answer is not None
    assert view.answer.text.startswith("It runs at 15 bar.")
    assert [(one.profile, one.status, one.claims) for one in view.answer.sub_agents] == [
        ("evidence_builder", "done", 1)
    ]
    assert view.answer.warnings == ()
    assert [data["decision"] for data in decisions(events)] == ["delegate"]


async def test_readers_learn_of_the_decision_before_the_sub_agents_have_ended() -> None:
    services = await delegating_world()
    seen: list[RunEvent] = []

    async def looking(
        starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
    ) -> tuple[SubagentEnd, ...]:
        assert isinstance(services.run_log, InMemoryRunLog)
        seen.extend(services.run_log.events(starts[0].run_id))
        return await silent(starts, until, services)

    await ask(services, looking)
    assert [data["decision"] for data in decisions(seen)] == ["delegate"]
    assert not [event for event in seen if event.name == "TOKEN"]


async def test_sub_agents_that_bring_nothing_cost_a_warning_and_not_the_answer() -> None:
    view, events = await ask(await delegating_world(), silent)
    assert view.answer is not None
    assert view.answer.text.startswith("It runs at 15 bar.")
    assert view.answer.warnings
    told = [event.data["text"] for event in events if event.data.get("state") == "warning"]
    assert tuple(told) == view.answer.warnings
    assert all(warning in view.answer.text for warning in told)


async def begun(services: Services) -> tuple[str, LoopState]:
    """A run up to the step that writes, or delegates."""
    request = await begin_run(ChatRequest(question="At what pressure?"), ANNA, services)
    state = start()
    while (action := next_action(state)).kind != "write_answer":
        assert isinstance(action, Step)
        step_input = StepInput.model_validate({"run_id": request.run_id, "action": action.model_dump()})
        state = observe(state, await perform(step_input, services))
    return request.run_id, state


async def performed(services: Services, run_id: str, state: LoopState) -> Observation:
    action = next_action(state)
    assert isinstance(action, Step)
    return await perform(
        StepInput.model_validate({"run_id": run_id, "action": action.model_dump()}), services
    )


async def test_a_decision_that_was_stored_is_the_same_when_the_activity_runs_again() -> None:
    services = await delegating_world()
    run_id, state = await begun(services)
    first = await performed(services, run_id, state)
    assert isinstance(first, SubagentsChosen)
    without = fake_settings(subagents_enabled=False)
    again = await performed(replace(services, settings=without), run_id, state)
    assert again == first
    assert await find_delegation(services.blobs, run_id, next_action(state).step) is not None  # type: ignore[union-attr]


async def test_a_deferred_decision_writes_no_answer_and_comes_again() -> None:
    services = await delegating_world(subagents_max_queue_depth=1, subagents_max_active=20)
    other, waiting = await begun(services)
    await performed(services, other, waiting)  # takes the one place in the queue
    run_id, state = await begun(services)
    observation = await performed(services, run_id, state)
    assert observation == DelegationDeferred(delay_s=0.75)
    action = next_action(observe(state, observation))
    assert (action.kind, action.delay_s) == ("write_answer", 0.75)  # type: ignore[union-attr]
