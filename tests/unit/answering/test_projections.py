"""Tests for tables derived from a run's end: they are rebuilt from the journal, and reads don't need them."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shared.access.limits import hold, slot_of_run
from shared.answering.inline import run_to_end
from shared.answering.projections import project
from shared.answering.run_end import cancel_run, project_run
from shared.answering.runs import begin_run, close_dead_run, view_run
from shared.answering.steps import CommitAnswer, RunClosed, StepInput
from shared.conversations.messages import read_messages
from shared.conversations.run_list import list_runs
from shared.conversations.threads import list_threads
from shared.platform.errors import NotFoundError
from shared.platform.names import RUN_LOG, TURNS_QUEUE
from shared.quality.recording import rate_run
from shared.runs.journal import read_journal
from shared.runs.models import ChatRequest, FeedbackBody, RunRequest
from shared.runs.run_files import answer_path
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.background import background_done
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_settings
from tests.fakes.stores import InMemoryTaskQueues
from tests.fakes.stores_quality import InMemoryQualityStore
from tests.scripts import perform
from tests.world import ANNA, Model, corpus_services, plan

Loss = Callable[[Services, RunRequest, dict[str, Any]], Awaitable[None]]


async def start_run(services: Services, **more: Any) -> RunRequest:
    return await begin_run(ChatRequest(question="At what pressure?", **more), ANNA, services)


async def limited_services() -> Services:
    return await corpus_services(settings=fake_settings(max_concurrent_runs=3, subagents_enabled=False))


async def before_the_end(services: Services, request: RunRequest) -> dict[str, Any]:
    """Return the rows of a run and its thread, as stored while the run is in progress."""
    return {
        "record": await owned_run(request.run_id, ANNA, services.runs),
        "thread": await services.threads.get(ANNA.user_id, request.thread_id),
        "turn": await services.threads.turn(ANNA.user_id, request.thread_id, 1),
    }


async def copies(services: Services, request: RunRequest) -> dict[str, Any]:
    """Return all stored data that is derived from the journal."""
    rows = await before_the_end(services, request)
    assert isinstance(services.quality, InMemoryQualityStore)
    assert isinstance(services.queues, InMemoryTaskQueues)
    limits = await services.user_limits.read(ANNA.user_id)
    try:
        answer = json.loads(await services.blobs.read(RUN_LOG, answer_path(request.run_id)))
    except NotFoundError:
        answer = None
    return {
        "record": rows["record"],
        "thread": rows["thread"].model_copy(update={"revision": None}),
        "turn": rows["turn"].model_copy(update={"revision": None}),
        "answer": answer,
        "quality": dict(services.quality.records),
        "slots": [slot.work_id for slot in limits.slots],
        "memory": {text for text, _ in services.queues.messages.get(TURNS_QUEUE, [])},
    }


async def lose_answer(services: Services, request: RunRequest, before: dict[str, Any]) -> None:
    await services.blobs.delete(RUN_LOG, answer_path(request.run_id))


async def lose_record(services: Services, request: RunRequest, before: dict[str, Any]) -> None:
    await services.runs.replace(before["record"])


async def lose_thread(services: Services, request: RunRequest, before: dict[str, Any]) -> None:
    thread = await services.threads.get(ANNA.user_id, request.thread_id)
    turn = await services.threads.turn(ANNA.user_id, request.thread_id, 1)
    assert thread is not None
    assert turn is not None
    await services.threads.replace(
        thread, before["thread"], before["turn"].model_copy(update={"revision": turn.revision})
    )


async def lose_quality(services: Services, request: RunRequest, before: dict[str, Any]) -> None:
    assert isinstance(services.quality, InMemoryQualityStore)
    services.quality.table.rows.clear()


async def lose_slot(services: Services, request: RunRequest, before: dict[str, Any]) -> None:
    slot = slot_of_run(request.run_id, services.settings)
    await hold(ANNA.user_id, slot, services.settings, services.user_limits)


async def lose_memory(services: Services, request: RunRequest, before: dict[str, Any]) -> None:
    assert isinstance(services.queues, InMemoryTaskQueues)
    services.queues.take(TURNS_QUEUE)


async def lose_all(services: Services, request: RunRequest, before: dict[str, Any]) -> None:
    for loss in (lose_answer, lose_record, lose_thread, lose_quality, lose_slot, lose_memory):
        await loss(services, request, before)


LOSSES = [lose_answer, lose_record, lose_thread, lose_quality, lose_slot, lose_memory, lose_all]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_a_lost_copy_is_written_again_from_the_journal(end: str, loss: Loss) -> None:
    services = await limited_services()
    request = await start_run(services)
    before = await before_the_end(services, request)
    if end == "completed":
        await run_to_end(request.run_id, services)
    elif end == "failed":
        await close_dead_run(request.run_id, "It died.", services)
    else:
        await cancel_run(request.run_id, services)
    await background_done()
    expected = await copies(services, request)
    assert expected["record"].status == end
    await loss(services, request, before)
    if end == "completed" or loss not in (lose_answer, lose_memory):  # other outcomes store neither
        assert await copies(services, request) != expected
    for _ in range(2):
        await project_run(request.run_id, services)
        await background_done()
        assert await copies(services, request) == expected


async def test_nothing_is_projected_before_the_end() -> None:
    services = await limited_services()
    request = await start_run(services)
    before = await copies(services, request)
    await project_run(request.run_id, services)
    assert await copies(services, request) == before


async def test_an_erased_run_is_not_projected() -> None:
    services = await limited_services()
    request = await start_run(services)
    await run_to_end(request.run_id, services)
    journal = await read_journal(services.run_log, services.blobs, request.run_id)
    await services.runs.delete(request.run_id)
    await services.blobs.delete(RUN_LOG, answer_path(request.run_id))
    assert await project(journal, services) is None
    assert (await copies_of_erased(services, request)) == (None, None)


async def copies_of_erased(services: Services, request: RunRequest) -> tuple[Any, Any]:
    record = await services.runs.get(request.run_id)
    try:
        return record, await services.blobs.read(RUN_LOG, answer_path(request.run_id))
    except NotFoundError:
        return record, None


async def unprojected(services: Services) -> RunRequest:
    """Return a run whose worker died after appending the last event, before updating the tables."""
    request = await start_run(services)
    before = await before_the_end(services, request)
    await run_to_end(request.run_id, services)
    await lose_all(services, request, before)
    return request


async def test_reads_show_the_end_of_a_run_that_is_not_projected_yet() -> None:
    services = await limited_services()
    request = await unprojected(services)
    record = await owned_run(request.run_id, ANNA, services.runs)
    assert record.status == "running"
    view = await view_run(record, services, ANNA)
    assert (view.status, view.answer is not None) == ("completed", True)
    messages = await read_messages(request.thread_id, ANNA, services, 10)
    assert [(one.status, one.answer) for one in messages.messages] == [("completed", view.answer)]
    listed = await list_runs(ANNA, services, 10)
    assert [run.status for run in listed.runs] == ["completed"]
    rated = await rate_run(request.run_id, FeedbackBody(rating=5), ANNA, services)
    assert rated.rating == 5


async def test_a_later_attempt_at_the_commit_projects_the_run() -> None:
    services = await limited_services()
    request = await unprojected(services)
    commit = StepInput(run_id=request.run_id, action=CommitAnswer(step=3, answer_step=2))
    assert isinstance(await perform(commit, services), RunClosed)
    assert (await owned_run(request.run_id, ANNA, services.runs)).status == "completed"


async def test_a_follow_up_knows_the_answer_of_an_unprojected_predecessor() -> None:
    model = ScriptedChatModel(answer=lambda prompt: replies[prompt.name])
    replies: dict[str, Any] = {"plan": plan(), "answer": Model(plan()).answer}
    services = await corpus_services(chat_model=model, settings=fake_settings(subagents_enabled=False))
    first = await unprojected(services)
    second = await start_run(services, thread_id=first.thread_id)
    assert [turn.answer for turn in second.conversation.turns] == ["It runs at 15 bar."]
    await project_run(first.run_id, services)
    turn = await services.threads.turn(ANNA.user_id, first.thread_id, 1)
    assert turn is not None
    assert turn.answer == "It runs at 15 bar."


async def test_a_list_of_threads_reads_nothing_per_thread() -> None:
    services = await limited_services()
    for _ in range(3):
        await start_run(services)
    blind = await corpus_services(threads=services.threads)  # has no runs and no journals
    listed = await list_threads(ANNA, blind.threads, 10)
    assert [thread.active_run is not None for thread in listed.threads] == [True] * 3
