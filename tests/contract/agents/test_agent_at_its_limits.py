"""A generic agent against an endpoint that does what models do at their worst: it ends, and in time."""

import asyncio
import json

import pytest

from tests.contract.agents.completions import calls, words
from tests.contract.agents.weighing import QUICK, MakeAgent, Weigh, names, results, sent, told
from tests.contract.clients.scripted_server import FOR_EVER_S, Answer, ScriptedServer

pytestmark = pytest.mark.contract


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "hint"),
    [
        ("delete_all", "{}", "InvalidQueryError", "weigh"),
        ("weigh", '{"thing": "no end', "InvalidQueryError", "JSON object"),
        ("weigh", "[1, 2]", "InvalidQueryError", "JSON object"),
        ("weigh", '{"thing": 7}', "InvalidQueryError", "thing"),
        ("weigh", '{"self": 1}', "InvalidQueryError", "thing"),
        ("weigh", '{"thing": "nothing"}', "DocumentNotFoundError", "another"),
        ("weigh", '{"thing": "bug"}', "ToolError", "Go on"),
    ],
)
async def test_a_bad_call_goes_back_as_a_failure_that_the_model_can_mend(
    make_agent: MakeAgent, name: str, arguments: str, kind: str, hint: str
) -> None:
    script = (calls((name, arguments)), calls(("weigh", '{"thing": "pump"}')), words("12 kg."))
    async with ScriptedServer(*script) as server:
        events = await told(make_agent(server))
    assert events[-1].data["answer"]["text"] == "12 kg."
    failed, mended = results(server)
    assert set(failed) == {"success", "error", "type", "hints"}
    assert (failed["success"], failed["type"]) == (False, kind)
    assert hint in " ".join(failed["hints"])
    assert "what the tool read" not in json.dumps(failed)
    assert mended["success"] is True
    outcome = next(event.data for event in events if event.name == "TOOL_RESULT")
    assert (outcome["success"], outcome["error_type"]) == (False, kind)


async def test_a_model_that_calls_for_ever_is_stopped(make_agent: MakeAgent) -> None:
    script = [calls(("weigh", f'{{"thing": "{number}"}}')) for number in range(30)]
    tool = Weigh()
    async with ScriptedServer(*script) as server:
        events = await told(make_agent(server, tool))
    assert (events[-1].name, events[-1].data["type"]) == ("ERROR", "BudgetExceededError")
    assert events[-1].data["hints"]
    bodies = sent(server)
    assert len(bodies) == QUICK.max_turns
    assert [body["tool_choice"] for body in bodies] == ["auto"] * 4 + ["none"]
    assert len(tool.weighed) == QUICK.max_turns - 1


async def test_a_model_that_repeats_one_call_makes_it_once_and_answers(make_agent: MakeAgent) -> None:
    same = calls(("weigh", '{"thing": "pump"}'))
    tool = Weigh()
    async with ScriptedServer(same, same, same, words("12 kg, as I said.")) as server:
        events = await told(make_agent(server, tool))
    assert tool.weighed == ["pump"]
    assert events[-1].name == "COMPLETE"
    assert "12 kg, as I said." in events[-1].data["answer"]["text"]
    assert "limit of repeated calls" in events[-1].data["answer"]["text"]
    assert sent(server)[-1]["tool_choice"] == "none"


async def test_more_calls_in_one_turn_than_allowed_are_refused(make_agent: MakeAgent) -> None:
    many = calls(*(("weigh", f'{{"thing": "{number}"}}') for number in range(20)))
    tool = Weigh()
    async with ScriptedServer(many, words("Six of them.")) as server:
        await told(make_agent(server, tool))
    assert len(tool.weighed) == QUICK.max_tool_calls
    assert [result["success"] for result in results(server)] == [True] * 6 + [False] * 14


async def test_an_observation_is_bounded(make_agent: MakeAgent) -> None:
    limits = QUICK.model_copy(update={"max_observation_chars": 1000})
    async with ScriptedServer(calls(("weigh", '{"thing": "book"}')), words("Heavy.")) as server:
        await told(make_agent(server, limits=limits))
    shown = sent(server)[-1]["messages"][-1]["content"]
    assert len(shown) <= 1000
    assert json.loads(shown)["kilograms"] == 12


async def test_tokens_are_bounded(make_agent: MakeAgent) -> None:
    script = [calls(("weigh", f'{{"thing": "{number}"}}')) for number in range(30)]
    limits = QUICK.model_copy(update={"max_turns": 30, "max_tokens": 900, "max_output_tokens": 20})
    async with ScriptedServer(*script) as server:
        events = await told(make_agent(server, limits=limits))
    assert events[-1].data["type"] == "BudgetExceededError"
    assert "tokens" in events[-1].data["message"]
    assert len(server.bodies) < 15


async def test_a_slow_tool_is_a_timeout_that_the_model_hears_of(make_agent: MakeAgent) -> None:
    limits = QUICK.model_copy(update={"tool_timeout_s": 0.2})
    slow = calls(("weigh", '{"thing": "a", "delay_s": 30}'))
    async with ScriptedServer(slow, words("It takes too long.")) as server:
        events = await told(make_agent(server, limits=limits))
    assert events[-1].name == "COMPLETE"
    assert results(server)[0]["type"] == "TimeoutError"


async def test_a_model_that_hangs_ends_within_the_deadline(make_agent: MakeAgent) -> None:
    limits = QUICK.model_copy(update={"deadline_s": 1.5})
    loop = asyncio.get_running_loop()
    async with ScriptedServer(Answer(delay_s=FOR_EVER_S)) as server:
        began = loop.time()
        events = await told(make_agent(server, limits=limits))
    assert events[-1].name == "ERROR"
    assert events[-1].data["type"] in {"TimeoutError", "BudgetExceededError"}
    assert loop.time() - began < FOR_EVER_S / 2


async def test_silence_is_asked_about_once_more(make_agent: MakeAgent) -> None:
    async with ScriptedServer(words(None), words("12 kg.")) as server:
        events = await told(make_agent(server))
    assert names(events) == ["THOUGHT", "COMPLETE"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer("401 Unauthorized"), "AuthenticationError"),
        (Answer("429 Too Many Requests", headers={"retry-after": "600"}), "RateLimitError"),
        (Answer("500 Internal Server Error"), "NetworkError"),
        (Answer(body=b"<html>"), "NetworkError"),
        (words(None, ending="content_filter"), "ModelOutputError"),
    ],
)
async def test_a_model_that_fails_ends_in_an_error_event(
    make_agent: MakeAgent, answer: Answer, kind: str
) -> None:
    async with ScriptedServer(answer) as server:
        events = await told(make_agent(server))
    assert (events[-1].name, events[-1].data["type"]) == ("ERROR", kind)
