"""Tests for branches with fake services: shared turns keep their numbers while any thread shows them."""

from collections.abc import Mapping

import pytest

from shared.conversations.branches import branch_thread
from shared.conversations.messages import read_messages
from shared.conversations.models import Branch
from shared.conversations.threads import clear_thread, delete_thread, owned_thread
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.runs.models import RunRequest
from shared.wiring import Services
from tests.fakes.search_index import InMemorySearchIndex
from tests.queued_work import erase_queued
from tests.unit.conversations.asking import ask, begin, questions_of
from tests.world import ANNA, BEN, corpus_services

QUESTIONS = ("At what pressure does the pump run?", "And why?", "Since when?")


async def ask_questions(services: Services) -> list[RunRequest]:
    """Return the runs of a thread with three answered questions."""
    runs: list[RunRequest] = []
    for question in QUESTIONS:
        runs.append(await ask(services, question, runs[0].thread_id if runs else None))
    return runs


async def branched(services: Services, run: RunRequest, thread_id: str = "branch") -> str:
    branch = Branch(thread_id=run.thread_id, run_id=run.run_id)
    return (await branch_thread(branch, None, ANNA, services, thread_id)).thread_id


async def erase_twice(services: Services) -> None:
    """Make both passes of every erasure that was requested."""
    for _ in range(2):
        await erase_queued(services)


async def test_an_earlier_question_is_asked_otherwise_and_no_answer_is_lost() -> None:
    services = await corpus_services()
    runs = await ask_questions(services)
    branch = await branched(services, runs[1])
    edited = await ask(services, "Until when?", branch)
    assert await questions_of(services, branch) == [*QUESTIONS[:2], "Until when?"]
    assert await questions_of(services, runs[0].thread_id) == list(QUESTIONS)
    assert [turn.question for turn in edited.conversation.turns] == list(QUESTIONS[:2])
    assert (await owned_thread(branch, ANNA, services.threads)).title == "Until when?"
    messages = (await read_messages(branch, ANNA, services, 20)).messages
    assert [message.number for message in messages] == [1, 2, 3]
    assert all(message.answer for message in messages)


async def test_answers_last_until_the_last_thread_that_shows_them_is_gone() -> None:
    services = await corpus_services()
    runs = await ask_questions(services)
    first = await branched(services, runs[1])
    second = await branched(services, runs[0], "second")
    await delete_thread(runs[0].thread_id, ANNA, services)
    await erase_twice(services)
    assert await questions_of(services, first) == list(QUESTIONS[:2])
    assert await services.runs.get(runs[2].run_id) is None
    await clear_thread(first, ANNA, services)
    await erase_twice(services)
    assert await services.runs.get(runs[1].run_id) is None
    assert await questions_of(services, second) == [QUESTIONS[0]]
    await delete_thread(second, ANNA, services)
    await erase_twice(services)
    assert await services.runs.get(runs[0].run_id) is None


async def test_a_branch_of_a_branch_holds_the_same_answers() -> None:
    services = await corpus_services()
    runs = await ask_questions(services)
    first = await branched(services, runs[1])
    branch = Branch(thread_id=first, run_id=runs[0].run_id)
    second = (await branch_thread(branch, "Named", ANNA, services, "second")).thread_id
    for thread_id in (runs[0].thread_id, first):
        await delete_thread(thread_id, ANNA, services)
    await erase_twice(services)
    assert await questions_of(services, second) == [QUESTIONS[0]]


async def test_what_is_shown_of_a_branch_follows_todays_rights() -> None:
    services = await corpus_services()
    runs = await ask_questions(services)
    branch = await branched(services, runs[0])
    assert isinstance(services.documents_index, InMemorySearchIndex)
    (before,) = (await read_messages(branch, ANNA, services, 20)).messages
    assert before.answer
    assert before.answer.citations
    without_groups = ANNA.model_copy(update={"groups": ()})
    (closed,) = (await read_messages(branch, without_groups, services, 20)).messages
    (original, *_) = (await read_messages(runs[0].thread_id, without_groups, services, 20)).messages
    assert closed == original


async def test_nothing_is_taken_over_from_others_or_from_what_is_gone() -> None:
    services = await corpus_services()
    runs = await ask_questions(services)
    other = await ask(services, "How much?")
    cases: Mapping[str, tuple[Branch, type[GroundworkError]]] = {
        "of another thread": (Branch(thread_id=other.thread_id, run_id=runs[0].run_id), NotFoundError),
        "unknown run": (Branch(thread_id=other.thread_id, run_id="x"), NotFoundError),
        "unknown thread": (Branch(thread_id="x", run_id=other.run_id), NotFoundError),
    }
    for name, (branch, error) in cases.items():
        with pytest.raises(error):
            await branch_thread(branch, None, ANNA, services, "new")
        assert await services.threads.get("anna", "new") is None, name
    foreign = Branch(thread_id=runs[0].thread_id, run_id=runs[0].run_id)
    with pytest.raises(NotFoundError):
        await branch_thread(foreign, None, BEN, services, "new")
    await clear_thread(runs[0].thread_id, ANNA, services)
    with pytest.raises(NotFoundError):
        await branch_thread(foreign, None, ANNA, services, "new")


async def test_an_answer_at_work_is_waited_for() -> None:
    services = await corpus_services()
    first = await ask(services, QUESTIONS[0])
    at_work = await begin(services, QUESTIONS[1], first.thread_id)
    with pytest.raises(ConflictError):
        await branched(services, at_work)
    assert await questions_of(services, await branched(services, first)) == [QUESTIONS[0]]


async def test_only_a_summary_of_what_is_taken_over_goes_along() -> None:
    services = await corpus_services()
    runs = await ask_questions(services)
    thread = await owned_thread(runs[0].thread_id, ANNA, services.threads)
    thread_with_summary = thread.model_copy(update={"summary": "Of the first two.", "summarised_count": 2})
    await services.threads.replace(thread, thread_with_summary)
    later = await owned_thread(await branched(services, runs[2], "later"), ANNA, services.threads)
    assert (later.summary, later.summarised_count) == ("Of the first two.", 2)
    earlier = await owned_thread(await branched(services, runs[0], "earlier"), ANNA, services.threads)
    assert (earlier.summary, earlier.summarised_count) == ("", 0)
