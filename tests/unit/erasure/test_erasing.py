"""Tests for erasure: no data of a deleted thread remains, even with runs in progress."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.answering.retention import purge_old_runs, resume_erasures
from shared.answering.runs import view_run
from shared.answering.script import RunEnd
from shared.answering.steps import CommitAnswer, RunClosed, StepFailed, StepInput
from shared.conversations.messages import read_messages
from shared.conversations.threads import clear_thread, delete_thread, list_threads
from shared.erasure.threads import LAST_PASS_AFTER_S
from shared.platform.errors import NotFoundError
from shared.platform.names import ERASURES_QUEUE, RUN_LOG, WORK
from shared.runs.models import RunRequest
from shared.runs.run_store import owned_run
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.run_log import InMemoryRunLog
from tests.fakes.search_index import InMemorySearchIndex
from tests.fakes.stores import InMemoryRunStore, InMemoryTaskQueues, InMemoryThreadStore
from tests.queued_work import erase_queued, remember_queued
from tests.scripts import next_action, observe, perform, start
from tests.unit.conversations.asking import ask, begin
from tests.world import ANNA, BEN, corpus_services

if TYPE_CHECKING:
    from collections.abc import Mapping

STOPPED: list[str] = []


async def stop(run_id: str) -> None:
    STOPPED.append(run_id)


def traces(services: Services, run_id: str) -> list[str]:
    """Return the places that still contain data of a run."""
    assert isinstance(services.blobs, InMemoryBlobStore)
    assert isinstance(services.run_log, InMemoryRunLog)
    assert isinstance(services.runs, InMemoryRunStore)
    assert isinstance(services.memory_index, InMemorySearchIndex)
    blobs = [
        f"{container}/{name}"
        for container in (RUN_LOG, WORK)
        for name in services.blobs.containers.get(container, {})
        if run_id in name
    ]
    stores: dict[str, Mapping[str, object]] = {
        "log": services.run_log.logs,
        "record": services.runs.records,
        "m": services.memory_index.rows,
    }
    return blobs + [name for name, store in stores.items() if run_id in store]


def blob_names(services: Services, container: str) -> list[str]:
    assert isinstance(services.blobs, InMemoryBlobStore)
    return list(services.blobs.containers.get(container, {}))


async def test_a_deleted_thread_leaves_nothing_of_its_own_and_all_of_others() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    second = await ask(services, "And why?", first.thread_id)
    other = await ask(services, "At what pressure does the pump run?")
    of_ben = await ask(services, "What was the revenue?", user=BEN)
    await remember_queued(services)
    traces_before = {run.run_id: traces(services, run.run_id) for run in (other, of_ben)}
    await delete_thread(first.thread_id, ANNA, services)
    assert await erase_queued(services, stop) == [0]
    assert traces(services, first.run_id) + traces(services, second.run_id) == []
    assert await erase_queued(services, stop) == [LAST_PASS_AFTER_S]
    assert isinstance(services.threads, InMemoryThreadStore)
    assert services.threads.thread_ids == {other.thread_id, of_ben.thread_id}
    assert {run_id: traces(services, run_id) for run_id in traces_before} == traces_before
    assert "record" in traces_before[other.run_id]
    with pytest.raises(NotFoundError):
        await delete_thread(first.thread_id, ANNA, services)


async def test_a_cleared_thread_loses_its_turns_and_keeps_later_ones() -> None:
    services = await corpus_services()
    first = await ask(services, "At what pressure does the pump run?")
    await clear_thread(first.thread_id, ANNA, services)
    later = await ask(services, "And why?", first.thread_id)
    await remember_queued(services)
    await erase_queued(services, stop)
    await erase_queued(services, stop)
    assert traces(services, first.run_id) == []
    assert "m" in traces(services, later.run_id)
    page = await read_messages(first.thread_id, ANNA, services, 10)
    assert [message.question for message in page.messages] == ["And why?"]
    assert await resume_erasures(services.threads, services.queues) == 0


@pytest.mark.parametrize("steps_before", range(5))
async def test_a_run_that_is_at_work_brings_nothing_back(steps_before: int) -> None:
    """Delete the thread after `steps_before` steps, and let the run continue as an activity that cannot be
    stopped.
    """
    services = await corpus_services()
    request = await begin(services, "At what pressure does the pump run?")
    state = start()
    outcomes = []
    deleted = False
    for step in range(60):
        if step == steps_before:
            await delete_thread(request.thread_id, ANNA, services)
            await erase_queued(services, stop)
            deleted = True
        action = next_action(state)
        if isinstance(action, RunEnd):
            break
        outcomes.append(await perform(StepInput(run_id=request.run_id, action=action), services))
        state = observe(state, outcomes[-1])
    assert deleted or steps_before >= len(outcomes)
    if not deleted:
        return
    assert request.run_id in STOPPED
    assert "record" not in traces(services, request.run_id)
    assert "log" not in traces(services, request.run_id)
    assert f"{RUN_LOG}/{request.run_id}/answer.json" not in traces(services, request.run_id)
    await remember_queued(services)
    await erase_queued(services, stop)
    assert traces(services, request.run_id) == []


async def until_commit(services: Services, request: RunRequest) -> CommitAnswer:
    """Perform a run up to the step that commits its answer."""
    state = start()
    while not isinstance(action := next_action(state), CommitAnswer):
        assert not isinstance(action, RunEnd)
        state = observe(state, await perform(StepInput(run_id=request.run_id, action=action), services))
    return action


async def test_an_answer_that_is_stored_after_the_erasure_is_taken_away() -> None:
    services = await corpus_services()
    request = await begin(services, "At what pressure does the pump run?")
    action = await until_commit(services, request)
    write = services.blobs.write

    async def late(container: str, name: str, content: bytes, **options: Any) -> None:
        await delete_thread(request.thread_id, ANNA, services)
        await erase_queued(services, stop)
        await write(container, name, content, **options)

    services.blobs.write = late  # type: ignore[method-assign]
    ended = await perform(StepInput(run_id=request.run_id, action=action), services)
    assert isinstance(ended, RunClosed)
    assert traces(services, request.run_id) == []


async def test_a_turn_that_was_erased_takes_no_answer() -> None:
    """Store the record of a question after its thread was cleared, as for a request in transit."""
    services = await corpus_services()
    request = await begin(services, "At what pressure does the pump run?")
    action = await until_commit(services, request)
    record = await owned_run(request.run_id, ANNA, services.runs)
    assert isinstance(services.run_log, InMemoryRunLog)
    lines = services.run_log.lines(request.run_id)
    await clear_thread(request.thread_id, ANNA, services)
    locations = [(WORK, name) for name in blob_names(services, WORK)]
    contents = [
        (container, name, await services.blobs.read(container, name)) for container, name in locations
    ]
    await erase_queued(services, stop)
    for container, name, content in contents:
        await services.blobs.write(container, name, content)
    await services.runs.create(record)
    await services.run_log.create(request.run_id)
    await services.run_log.append(request.run_id, lines)
    ended = await perform(StepInput(run_id=request.run_id, action=action), services)
    assert isinstance(ended, RunClosed)
    assert f"{RUN_LOG}/{request.run_id}/answer.json" not in traces(services, request.run_id)
    turn = await services.threads.turn("anna", request.thread_id, 1)
    assert turn is not None
    assert (turn.status, turn.question, turn.answer) == ("erased", "", "")
    await erase_queued(services, stop)
    assert traces(services, request.run_id) == []


async def test_a_commit_that_the_erasure_overtakes_leaves_nothing() -> None:
    services = await corpus_services()
    request = await begin(services, "At what pressure does the pump run?")
    action = await until_commit(services, request)
    replace = services.runs.replace

    async def overtaken(record: object) -> None:
        await delete_thread(request.thread_id, ANNA, services)
        await erase_queued(services, stop)
        await replace(record)  # type: ignore[arg-type]

    services.runs.replace = overtaken  # type: ignore[method-assign]
    ended = await perform(StepInput(run_id=request.run_id, action=action), services)
    assert isinstance(ended, RunClosed | StepFailed)
    assert traces(services, request.run_id) == []


async def test_readers_of_a_run_see_its_end_before_its_log_goes() -> None:
    services = await corpus_services()
    request = await begin(services, "At what pressure does the pump run?")
    assert isinstance(services.run_log, InMemoryRunLog)
    seen: list[str] = []
    append = services.run_log.append

    async def watched(run_id: str, events: object, **options: object) -> int:
        seen.extend(event.name for event in events)  # type: ignore[attr-defined]
        return await append(run_id, events, **options)  # type: ignore[arg-type]

    services.run_log.append = watched  # type: ignore[method-assign]
    await delete_thread(request.thread_id, ANNA, services)
    await erase_queued(services, stop)
    assert seen[-1] == "ERROR"
    assert request.run_id not in services.run_log.logs


async def test_an_erasure_whose_message_was_lost_is_asked_for_again() -> None:
    services = await corpus_services()
    request = await ask(services, "At what pressure does the pump run?")
    await delete_thread(request.thread_id, ANNA, services)
    assert isinstance(services.queues, InMemoryTaskQueues)
    services.queues.take(ERASURES_QUEUE)
    assert await resume_erasures(services.threads, services.queues) == 1
    await erase_queued(services, stop)
    await erase_queued(services, stop)
    assert await resume_erasures(services.threads, services.queues) == 0
    assert traces(services, request.run_id) == []


async def test_an_old_run_loses_its_log_and_keeps_its_answer_in_the_thread() -> None:
    services = await corpus_services()
    request = await ask(services, "At what pressure does the pump run?")
    waiting = await begin(services, "And why?", request.thread_id)
    now = datetime.now(UTC)
    assert await purge_old_runs(now + timedelta(days=29), services, stop) == 0
    assert await purge_old_runs(now + timedelta(days=31), services, stop) == 1
    assert await purge_old_runs(now + timedelta(days=31), services, stop) == 0
    remaining_files = [f"{RUN_LOG}/{request.run_id}/{name}.json" for name in ("answer", "provenance")]
    assert traces(services, request.run_id) == [*remaining_files, "record"]
    messages = (await read_messages(request.thread_id, ANNA, services, 10)).messages
    assert [message.answer is not None for message in messages] == [True, False]
    assert "log" in traces(services, waiting.run_id)
    record = await owned_run(request.run_id, ANNA, services.runs)
    assert (await view_run(record, services)).answer is not None
    assert len((await list_threads(ANNA, services.threads, 10)).threads) == 1
