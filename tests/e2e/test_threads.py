"""Threads and memory through the whole stack with real queues, timers, tables and indexes, and two people."""

import json
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from samples.questions import DEMO_QUESTIONS, FIRST_QUESTION
from shared.access.models import UserContext
from shared.answering.inline import run_to_end
from shared.answering.runs import begin_run
from shared.conversations.memory import list_memories
from shared.conversations.models import RememberTask
from shared.conversations.remembering import remember
from shared.platform.language_models.models import ModelTurn, ToolCall
from shared.runs.models import ChatRequest, RunRequest
from shared.wiring import Services
from tests.e2e.stack_client import ask, eventually
from tests.fakes.models import Reply, ScriptedChatModel
from tests.world import plan

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FOLLOW_UP = "And what is its weight?"


def memories_of(caller: httpx.Client, *run_ids: str) -> list[dict[str, Any]]:
    listed = caller.get("/memory", params={"limit": "100"}).json()["memories"]
    return [memory for memory in listed if memory["memory_id"] in run_ids]


def traces(stack: LocalStack, run_id: str) -> list[str]:
    """Return the remaining blobs and records of a run."""
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as blobs:
        paths = [
            f"{container}/{name}"
            for container, prefix in (("run-log", run_id), ("work", f"runs/{run_id}"))
            for name in blobs.get_container_client(container).list_blob_names(name_starts_with=prefix)
        ]
    with TableServiceClient.from_connection_string(stack.storage_connection_string) as tables:
        rows = tables.get_table_client("runs").query_entities(f"PartitionKey eq '{run_id}'")
        return paths + [f"runs/{row['PartitionKey']}" for row in rows]


def asked_twice(anna: httpx.Client) -> tuple[str, list[dict[str, Any]]]:
    """Return a thread with a question and a follow-up, and the two runs."""
    thread_id = anna.post("/threads", json={}).json()["thread_id"]
    first = ask(anna, FIRST_QUESTION.text, thread_id=thread_id)
    return thread_id, [first, ask(anna, FOLLOW_UP, thread_id=thread_id)]


def test_follow_ups_mean_what_was_spoken_of_before(anna: httpx.Client) -> None:
    thread_id = anna.post("/threads", json={"title": "Follow-ups"}).json()["thread_id"]
    for question, expected in (
        ("What was the revenue in the annual report 2023?", "48.2 million"),
        ("Who wrote it?", "Tobias Renner"),
        ("What was the revenue in the annual report 2023?", "48.2 million"),
        ("And 2024?", "53.7 million"),
    ):
        assert expected in ask(anna, question, thread_id=thread_id)["answer"]["text"], question


def test_clearing_and_deleting_leave_nothing(stack: LocalStack, anna: httpx.Client) -> None:
    thread_id, runs = asked_twice(anna)
    run_ids = [run["run_id"] for run in runs]
    eventually(lambda: len(memories_of(anna, *run_ids)) == 2)
    assert anna.post(f"/threads/{thread_id}/clear").json()["turn_count"] == 0
    assert anna.get(f"/threads/{thread_id}/messages").json()["messages"] == []
    eventually(lambda: not any(traces(stack, run_id) for run_id in run_ids))
    eventually(lambda: memories_of(anna, *run_ids) == [])

    last = ask(anna, FIRST_QUESTION.text, thread_id=thread_id)
    assert anna.delete(f"/threads/{thread_id}").status_code == 204
    assert anna.get(f"/threads/{thread_id}").status_code == 404
    assert thread_id not in anna.get("/threads").text
    eventually(lambda: not traces(stack, last["run_id"]))
    assert anna.get(f"/runs/{last['run_id']}").status_code == 404
    assert memories_of(anna, last["run_id"]) == []


def test_a_thread_deleted_while_a_run_is_at_work_leaves_nothing_readable(
    stack: LocalStack, anna: httpx.Client
) -> None:
    started = anna.post(
        "/chat", json={"question": FIRST_QUESTION.text}, headers={"Prefer": "respond-async"}
    ).json()
    assert anna.delete(f"/threads/{started['thread_id']}").status_code == 204
    eventually(lambda: anna.get(f"/runs/{started['run_id']}").status_code == 404)
    time.sleep(3)  # without the cancellation, the run would have ended
    assert f"run-log/{started['run_id']}/answer.json" not in traces(stack, started["run_id"])
    assert f"runs/{started['run_id']}" not in traces(stack, started["run_id"])
    assert memories_of(anna, started["run_id"]) == []


def test_memories_are_forgotten_for_good(anna: httpx.Client, ben: httpx.Client) -> None:
    # Both questions have answers, because a question without an answer in the documents creates no memory.
    of_anna, of_ben = ask(anna, FIRST_QUESTION.text), ask(ben, DEMO_QUESTIONS[1].text)
    eventually(lambda: memories_of(anna, of_anna["run_id"]) and memories_of(ben, of_ben["run_id"]))
    assert anna.delete("/memory").json()["deleted"] >= 1
    # The memory of an earlier question may still be stored.
    eventually(lambda: not memories_of(anna, of_anna["run_id"]))
    assert memories_of(ben, of_ben["run_id"])
    assert anna.get(f"/threads/{of_anna['thread_id']}/messages").json()["count"] == 1


async def answered(services: Services, model: ScriptedChatModel, question: str) -> RunRequest:
    """Ask a question in a new thread, with a scripted model and the servers of the stack, and wait until its
    memory is stored.
    """
    user = UserContext(user_id=ANNA.user_id, groups=tuple(ANNA.groups))
    request = await begin_run(ChatRequest(question=question), user, replace(services, chat_model=model))
    await run_to_end(request.run_id, replace(services, chat_model=model))
    task = RememberTask(owner_id=user.user_id, thread_id=request.thread_id, run_id=request.run_id)
    await remember(task, services)
    return request


async def remembered(services: Services) -> dict[str, str]:
    user = UserContext(user_id=ANNA.user_id)
    listed = await list_memories(user, services, 100)
    return {memory.memory_id: memory.question for memory in listed.memories}


def scripted(question: str, *turns: Reply) -> ScriptedChatModel:
    return ScriptedChatModel(plan(standalone_question=question, search_queries=(), todo=()), *turns)


async def test_the_model_recalls_what_was_asked_before(services: Services) -> None:
    before = "Which colour has the lid of the Quasar 77?"
    request = await answered(services, scripted(before, "<answer>The lid is green."), before)
    assert (await remembered(services))[request.run_id] == before
    recall = ToolCall(call_id="c1", name="recall_memory", arguments='{"query": "lid of the Quasar 77"}')
    again = "What did I ask about the Quasar 77?"
    model = scripted(again, ModelTurn(tool_calls=(recall,)), "<answer>You asked for the colour of its lid.")
    await answered(services, model, again)
    result = json.loads(model.conversations[-1][-1].text)
    assert before in [memory["question"] for memory in result["memories"]]
