"""A generic agent through the real SDK: the loop, its events, its sessions."""

import json

import pytest

from shared.answering.agent import AGENT_EVENTS, Agent
from shared.platform.calls import model_endpoint
from shared.platform.errors import AccessDeniedError, ConfigurationError
from shared.platform.language_models.chat_model import OpenAIChatModel
from tests.contract.agents.completions import calls, words
from tests.contract.agents.weighing import ANNA, MakeAgent, Weigh, names, sent, told
from tests.contract.clients.conftest import Connect
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.fakes.services import fake_services, fake_settings

pytestmark = pytest.mark.contract


async def test_a_thought_an_action_an_observation_and_the_answer(make_agent: MakeAgent) -> None:
    script = (calls(("weigh", '{"thing": "pump"}'), text="I weigh the pump."), words("12 kg."))
    async with ScriptedServer(*script) as server:
        events = await told(make_agent(server), session="s-1")
    assert names(events) == ["THOUGHT", "ACTION", "TOOL_STARTED", "TOOL_RESULT", "COMPLETE"]
    assert set(names(events)) <= AGENT_EVENTS
    thought, action, started, result, complete = (event.data for event in events)
    assert thought == {"step": 1, "text": "I weigh the pump."}
    assert action == {"step": 1, "kind": "call_tools", "tools": ["weigh"]}
    assert started == {"step": 1, "tool": "weigh", "arguments": {"thing": "pump"}}
    assert result == {"step": 1, "tool": "weigh", "success": True}
    assert (complete["thread_id"], complete["answer"]["text"]) == ("s-1", "12 kg.")


async def test_the_endpoint_gets_the_prompt_the_tools_and_the_results(make_agent: MakeAgent) -> None:
    script = (calls(("weigh", '{"thing": "pump"}')), words("12 kg."))
    async with ScriptedServer(*script) as server:
        await told(make_agent(server))
    first, second = sent(server)
    system, question = first["messages"]
    assert system["role"] == "system"
    assert "You are Weigher" in system["content"]
    assert "You weigh things for {{nobody}}." in system["content"], "an owner's words are no template"
    assert question == {"role": "user", "content": "How heavy?"}
    (tool,) = first["tools"]
    assert tool["function"]["name"] == "weigh"
    assert tool["function"]["parameters"]["required"] == ["thing"]
    assert first["tool_choice"] == "auto"
    said, answered = second["messages"][2:]
    assert said["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert json.loads(answered["content"])["kilograms"] == 12


async def test_parallel_calls_run_together_and_keep_their_order(make_agent: MakeAgent) -> None:
    asked = [("weigh", json.dumps({"thing": thing, "delay_s": s})) for thing, s in (("a", 1.0), ("b", 0.1))]
    tool = Weigh()
    async with ScriptedServer(calls(*asked), words("Both.")) as server:
        events = await told(make_agent(server, tool))
    assert tool.most_at_once == 2
    assert tool.weighed == ["b", "a"]
    assert names(events)[2:6] == ["TOOL_STARTED", "TOOL_STARTED", "TOOL_RESULT", "TOOL_RESULT"]
    answered = [message["tool_call_id"] for message in sent(server)[-1]["messages"][-2:]]
    assert answered == ["call_0", "call_1"]


async def test_calls_with_one_id_for_all_are_told_apart(make_agent: MakeAgent) -> None:
    asked = [("weigh", '{"thing": "a"}'), ("weigh", '{"thing": "b"}')]
    async with ScriptedServer(calls(*asked, same_id="same"), words("Both.")) as server:
        assert names(await told(make_agent(server)))[-1] == "COMPLETE"
    ids = [message["tool_call_id"] for message in sent(server)[-1]["messages"][-2:]]
    assert len(set(ids)) == 2


async def test_a_question_to_the_user_ends_the_turn_and_the_next_message_answers_it(
    make_agent: MakeAgent,
) -> None:
    ask = calls(("ask_user", '{"question": "Which pump?", "options": ["X200", "X300"]}'))
    async with ScriptedServer(ask, words("The X300 weighs 12 kg.")) as server:
        agent = make_agent(server, Weigh(), "ask_user")
        first = await told(agent, "How heavy is the pump?", "s")
        second = await told(agent, "2", "s")
    assert names(first)[-2:] == ["ASK_USER", "COMPLETE"]
    assert first[-2].data == {"step": 1, "question": "Which pump?", "options": ["X200", "X300"]}
    assert second[-1].data["answer"]["text"] == "The X300 weighs 12 kg."
    conversation = [(m["role"], m["content"]) for m in sent(server)[-1]["messages"][1:]]
    assert conversation == [
        ("user", "How heavy is the pump?"),
        ("assistant", "Which pump?\n\n1. X200\n2. X300"),
        ("user", "2"),
    ]


async def test_sessions_do_not_know_of_each_other_and_failed_turns_are_forgotten(
    make_agent: MakeAgent,
) -> None:
    async with ScriptedServer(words("A."), Answer("401 Unauthorized"), words("B."), words("C.")) as server:
        agent = make_agent(server)
        for question, session in (("one", "s"), ("lost", "s"), ("two", "s"), ("other", "t")):
            await told(agent, question, session)
    last_of_s, of_t = sent(server)[2:]
    assert [message["content"] for message in last_of_s["messages"][1:]] == ["one", "A.", "two"]
    assert [message["content"] for message in of_t["messages"][1:]] == ["other"]


async def test_an_agent_without_tools_just_answers(connect: Connect) -> None:
    async with ScriptedServer(words("Hello.")) as server:
        connections = connect(openai_base_url=f"{server.endpoint}/v1", openai_api_key="key")
        model = OpenAIChatModel(connections.model, "chat", model_endpoint(fake_settings()))
        services = fake_services(chat_model=model)
        agent = Agent.create_agent("Greeter", "Greet.", (), services=services, user=ANNA)
        events = await told(agent)
    assert names(events) == ["COMPLETE"]
    assert "tools" not in sent(server)[0]


async def test_a_reader_that_goes_away_ends_the_work(make_agent: MakeAgent) -> None:
    async with ScriptedServer(calls(("weigh", '{"thing": "a", "delay_s": 30}'))) as server:
        tool = Weigh()
        stream = make_agent(server, tool).execute("x")
        async for event in stream:
            if event.name == "TOOL_STARTED":
                break
        await stream.aclose()  # type: ignore[attr-defined]  # an iterator to callers, a generator in fact
    assert tool.weighed == []


def test_an_agent_is_not_made_of_tools_that_there_are_not() -> None:
    services = fake_services()
    with pytest.raises(ConfigurationError, match="rag_everything") as unknown:
        Agent.create_agent("a", "b", ["rag_everything"], services=services, user=ANNA)
    assert "rag_semantic_search" in unknown.value.hints[0]
    with pytest.raises(ConfigurationError, match="same name"):
        Agent.create_agent("a", "b", [Weigh(), Weigh()], services=services, user=ANNA)
    with pytest.raises(AccessDeniedError):
        Agent.create_agent("a", "b", ["rag_facets"], services=services, user=None)  # type: ignore[arg-type]
