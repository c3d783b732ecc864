"""Tests for the MCP tools that wait for runs."""

import asyncio

from starlette.requests import Request

from functions.http.mcp_run_tools import GetAnswer
from functions.http.mcp_tool import McpCall
from shared.answering.inline import run_to_end
from shared.answering.steps import AnswerArrived, StepInput, TakeAnswer
from tests.scripts import next_action, observe, perform
from tests.unit.answering.test_clarifying import answer, asking, view_of
from tests.unit.functions.asking_app import AskingClient
from tests.world import ANNA


async def test_get_answer_waits_for_a_run_whose_clarification_was_answered() -> None:
    services, run_id, state = await asking()
    await answer(services, run_id, choice=2)
    answered = observe(state, AnswerArrived())
    action = next_action(answered)
    assert isinstance(action, TakeAnswer)
    observation = await perform(StepInput(run_id=run_id, action=action), services)
    assert (await view_of(services, run_id)).status == "running"
    durable = AskingClient(services)
    durable.states[run_id] = "Running"
    call = McpCall(Request({"type": "http"}), ANNA, services, durable, "http://app")
    waiting = asyncio.create_task(GetAnswer(call).execute(run_id=run_id))
    for _ in range(20):  # the tool reads the events that exist, including the clarification
        await asyncio.sleep(0)
    await run_to_end(run_id, services, observe(answered, observation))
    outcome = await waiting
    assert (outcome["status"], outcome["run_id"]) == ("completed", run_id)
