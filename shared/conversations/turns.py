"""Turns of threads: a question opens a turn, and the answer of its run closes it."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from shared.access.models import UserContext
from shared.conversations.models import ActiveRun, RememberTask, Thread, ThreadTurn
from shared.conversations.thread_store import ThreadStore
from shared.conversations.threads import MAX_TRIES, change_thread, owned_thread, thread_not_found
from shared.conversations.window import (
    QUESTION_CHARS,
    answered,
    conversation_from,
    current_turns,
    excerpt,
    title_of,
)
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.names import TURNS_QUEUE
from shared.platform.queues import TaskQueues
from shared.platform.telemetry import get_logger
from shared.runs.event_log import RunClosedError
from shared.runs.events import events_of
from shared.runs.models import ID_PATTERN, Conversation, RunAnswer, RunRecord, RunRequest
from shared.runs.run_log import RunLog
from shared.runs.run_state import fold

# Turns read per question. Memory summarises older turns before as many remain.
TURNS_READ = 30
# Time to wait for the queue while the answer is streamed. If the message is lost, the message of the next
# turn replaces it.
_SENDING_S = 5.0
# Delay of the message, so that the run has ended when it arrives.
_REMEMBER_AFTER_S = 1.0


@dataclass(frozen=True)
class OpenedTurn:
    """Turn that was added to a thread for a question, with the conversation before it.

    Attributes:
        with_files: whether the thread has files of its own.
    """

    number: int
    conversation: Conversation
    with_files: bool = False


async def open_turn(
    request: RunRequest, threads: ThreadStore, run_log: RunLog, *, is_new: bool
) -> OpenedTurn:
    """Add a question to its thread and return the new turn, or the existing turn if the run already has one.
    `is_new` means that the question starts the thread.

    Raises:
        NotFoundError: the user has no such thread.
        ConflictError: too many concurrent questions, the run that `replaces` names can't be replaced, or the
            question comes by a channel that doesn't see the thread's files.
    """
    if is_new:
        return await _begin_thread(request, threads)
    for attempt in range(MAX_TRIES):
        thread, turns = await thread_and_turns(request.thread_id, request.user, threads)
        own = next((turn for turn in turns if turn.run_id == request.run_id), None)
        earlier = [turn for turn in turns if own is None or turn.number < own.number]
        turns_with_answer = await _with_newest_answer(thread, earlier, run_log)
        conversation = conversation_from(thread, turns_with_answer, request.replaces)
        if own is not None:
            return OpenedTurn(own.number, conversation, own.with_files)
        _require_open_to(request, thread, turns)
        number = thread.turn_count + 1
        changed = thread.model_copy(
            update={
                "turn_count": number,
                "updated_at": max(request.created_at, thread.updated_at),
                "title": thread.title or title_of(request.question),
                "active_run": ActiveRun(run_id=request.run_id, status="running"),
            }
        )
        try:
            await threads.replace(thread, changed, _new_turn(request, number, with_files=thread.has_files))
        except NotFoundError:
            raise thread_not_found(request.thread_id) from None
        except ConflictError:
            await asyncio.sleep(0.01 * attempt)
        else:
            return OpenedTurn(number, conversation, thread.has_files)
    raise ConflictError("Too many questions at once in this thread.", "Ask again in a moment.")


async def thread_and_turns(
    thread_id: str, user: UserContext, threads: ThreadStore
) -> tuple[Thread, list[ThreadTurn]]:
    """Return a thread with its newest turns, newest first. Raise NotFoundError as `owned_thread` does."""
    if not re.fullmatch(ID_PATTERN, thread_id):
        raise thread_not_found(thread_id)
    # Both can be read at the same time, because a missing thread has no turns.
    return await run_together(
        owned_thread(thread_id, user, threads),
        threads.turns(user.user_id, thread_id, TURNS_READ),
    )


def _require_open_to(request: RunRequest, thread: Thread, turns: Sequence[ThreadTurn]) -> None:
    """Raise ConflictError if this question may not be asked in the thread."""
    if thread.has_files and request.user.thread_id != thread.thread_id:
        raise ConflictError(
            "The conversation has files, which this channel cannot show.",
            "Ask in the web page, or start a new conversation.",
        )
    if request.replaces and not _is_replaceable(request.replaces, thread, turns):
        raise ConflictError(
            "The question is too old to be replaced.", "Start a branch of the thread before this question."
        )


def _is_replaceable(run_id: str, thread: Thread, turns: Sequence[ThreadTurn]) -> bool:
    """Return whether the question of this run can be replaced: it is among these turns, and the thread's
    summary doesn't cover it.
    """
    replaced = next((turn for turn in turns if turn.run_id == run_id and turn.is_shown_in(thread)), None)
    if replaced is None or replaced.number <= thread.summarised_count:
        return False
    numbers = {turn.number for turn in current_turns(turns, run_id)}
    return all(
        turn.number in numbers for turn in current_turns(turns) if turn.number <= thread.summarised_count
    )


async def _with_newest_answer(
    thread: Thread, turns: Sequence[ThreadTurn], run_log: RunLog
) -> Sequence[ThreadTurn]:
    """Return the turns. If the active run has ended but its answer is not stored with its turn yet, the
    answer is added from the run's log.
    """
    active = thread.active_run.run_id if thread.active_run else None
    if not any(turn.run_id == active and turn.status == "asked" for turn in turns):
        return turns
    try:
        answer = fold(events_of(await run_log.read(str(active)))).answer
    except NotFoundError:
        return turns
    return [answered(turn, answer) if answer and turn.run_id == active else turn for turn in turns]


async def _begin_thread(request: RunRequest, threads: ThreadStore) -> OpenedTurn:
    thread = Thread(
        thread_id=request.thread_id,
        owner_id=request.user.user_id,
        title=title_of(request.question),
        created_at=request.created_at,
        updated_at=request.created_at,
        turn_count=1,
        active_run=ActiveRun(run_id=request.run_id, status="running"),
    )
    try:
        await threads.create(thread, [_new_turn(request, 1, with_files=False)])
    except ConflictError:
        first = await threads.turn(request.user.user_id, request.thread_id, 1)
        if first is None or first.run_id != request.run_id:
            raise
    return OpenedTurn(1, Conversation())


def _new_turn(request: RunRequest, number: int, *, with_files: bool) -> ThreadTurn:
    return ThreadTurn(
        thread_id=request.thread_id,
        number=number,
        run_id=request.run_id,
        question=excerpt(request.question, QUESTION_CHARS),
        asked_at=request.created_at,
        replaces=request.replaces,
        with_files=with_files,
    )


async def close_turn(record: RunRecord, answer: RunAnswer, threads: ThreadStore) -> None:
    """Store an answer's data for later questions in its thread, and record that the run is no longer active.

    The call is idempotent.

    Raises:
        RunClosedError: the thread was cleared or deleted, so the answer must not be stored.
    """
    if not record.turn:
        return
    for _ in range(MAX_TRIES):
        turn, thread = await run_together(
            threads.turn(record.owner_id, record.thread_id, record.turn),
            threads.get(record.owner_id, record.thread_id),
        )
        if turn is None or turn.status == "erased" or thread is None or thread.is_deleted:
            raise RunClosedError("The run's thread was cleared or deleted.")
        if turn.status == "answered":
            return
        try:
            await threads.replace(thread, _with_run(thread, record), answered(turn, answer))
        except (ConflictError, NotFoundError):
            # Another attempt has stored the turn, or it was erased, so read it again.
            continue
        else:
            return
    raise ConflictError("The turn is being changed by another request.", "Try again.")


async def show_run(record: RunRecord, threads: ThreadStore) -> None:
    """Update the thread's active run: set the status of this run, or remove it once it has ended.

    The call is idempotent. A deleted thread, or one with a newer question, is left unchanged.

    Raises:
        ConflictError: every attempt conflicted.
    """
    if record.turn:
        owner = UserContext(user_id=record.owner_id)
        with suppress(NotFoundError):
            await change_thread(record.thread_id, owner, threads, lambda thread: _with_run(thread, record))


def _with_run(thread: Thread, record: RunRecord) -> Thread:
    if thread.active_run is None or thread.active_run.run_id != record.run_id:
        return thread
    active = (
        ActiveRun(run_id=record.run_id, status=record.status)
        if record.status in ("running", "waiting")
        else None
    )
    return thread.model_copy(update={"active_run": active})


async def ask_to_remember(record: RunRecord, queues: TaskQueues) -> None:
    """Queue this run's turn for episodic memory. Errors are only logged, because the answer does not depend
    on the message.
    """
    if not record.turn:
        return
    task = RememberTask(owner_id=record.owner_id, thread_id=record.thread_id, run_id=record.run_id)
    try:
        async with asyncio.timeout(_SENDING_S):
            await queues.send(TURNS_QUEUE, task.model_dump_json(), _REMEMBER_AFTER_S)
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("turn.dropped", run_id=record.run_id, error_type=type(failed).__name__)
