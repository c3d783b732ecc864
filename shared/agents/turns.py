"""A turn of a thread: opened with its question, closed with its answer, in the order of the questions.

The number of a turn is given by the same write that changes the thread, so two questions at once get two
numbers, and a question that comes after an answer finds it in the conversation. A turn that was cleared or
deleted takes no answer any more.
"""

import asyncio
from dataclasses import dataclass

from shared.agents.journal import RunClosedError
from shared.agents.threads import not_there, thread_and_turns
from shared.core.conversation_window import (
    QUESTION_CHARS,
    answered,
    conversation_from,
    excerpt,
    title_of,
)
from shared.errors import ConflictError, GroundworkError, NotFoundError
from shared.models.conversation import Conversation
from shared.models.names import TURNS_QUEUE
from shared.models.runs import RunAnswer, RunRecord, RunRequest
from shared.models.threads import RememberTask, Thread, ThreadTurn
from shared.services import Services
from shared.telemetry import get_logger

_TRIES = 8  # as many questions at once in one thread
_SENDING_S = 5.0  # the answer is told beside it; what is not sent is made good by the next turn
_REMEMBER_AFTER_S = 1.0  # by then the run has ended


@dataclass(frozen=True)
class OpenedTurn:
    """A turn that waits for its answer, and what was said before it."""

    number: int
    conversation: Conversation


async def open_turn(request: RunRequest, services: Services, *, is_new: bool) -> OpenedTurn:
    """Add a question to its thread, unless it is there; `is_new`: to a thread that begins with it.

    Raises:
        NotFoundError: the user has no such thread.
        ConflictError: too many questions at once.
    """
    if is_new:
        return await _begin_thread(request, services)
    for attempt in range(_TRIES):
        thread, turns = await thread_and_turns(request.thread_id, request.user, services)
        own = next((turn for turn in turns if turn.run_id == request.run_id), None)
        conversation = conversation_from(thread, [turn for turn in turns if turn is not own])
        if own is not None:
            return OpenedTurn(own.number, conversation)
        number = thread.turn_count + 1
        changed = thread.model_copy(
            update={
                "turn_count": number,
                "updated_at": max(request.created_at, thread.updated_at),
                "title": thread.title or title_of(request.question),
            }
        )
        try:
            await services.threads.replace(thread, changed, _asked(request, number))
        except NotFoundError:
            raise not_there(request.thread_id) from None
        except ConflictError:
            await asyncio.sleep(0.01 * attempt)
        else:
            return OpenedTurn(number, conversation)
    raise ConflictError("Too many questions at once in this thread.", "Ask again in a moment.")


async def close_turn(record: RunRecord, answer: RunAnswer, services: Services) -> None:
    """Keep in the thread what later questions need of the answer. Doing it twice changes nothing.

    Raises:
        RunClosedError: the thread was cleared or deleted meanwhile; the answer belongs nowhere.
    """
    if not record.turn:
        return
    for _ in range(_TRIES):
        turn = await services.threads.turn(record.owner_id, record.thread_id, record.turn)
        if turn is None or turn.status == "erased":
            raise RunClosedError("The run's thread was cleared or deleted.")
        if turn.status == "answered":
            return
        try:
            await services.threads.replace_turn(record.owner_id, answered(turn, answer))
        except (ConflictError, NotFoundError):
            continue  # it was erased, or another attempt was quicker: the next look tells
        else:
            return
    raise ConflictError("The turn is being changed by others.", "Try again.")


async def ask_to_remember(record: RunRecord, services: Services) -> None:
    """Have the turn remembered, later and elsewhere. Never fails: the answer does not depend on it."""
    if not record.turn:
        return
    task = RememberTask(owner_id=record.owner_id, thread_id=record.thread_id, run_id=record.run_id)
    try:
        async with asyncio.timeout(_SENDING_S):
            await services.queues.send(TURNS_QUEUE, task.model_dump_json(), _REMEMBER_AFTER_S)
    except (GroundworkError, TimeoutError) as failed:
        get_logger().warning("turn.not_sent", run_id=record.run_id, error_type=type(failed).__name__)


async def _begin_thread(request: RunRequest, services: Services) -> OpenedTurn:
    thread = Thread(
        thread_id=request.thread_id,
        owner_id=request.user.user_id,
        title=title_of(request.question),
        created_at=request.created_at,
        updated_at=request.created_at,
        turn_count=1,
    )
    try:
        await services.threads.create(thread, _asked(request, 1))
    except ConflictError:
        begun = await services.threads.turn(request.user.user_id, request.thread_id, 1)
        if begun is None or begun.run_id != request.run_id:
            raise
    return OpenedTurn(1, Conversation())


def _asked(request: RunRequest, number: int) -> ThreadTurn:
    return ThreadTurn(
        thread_id=request.thread_id,
        number=number,
        run_id=request.run_id,
        question=excerpt(request.question, QUESTION_CHARS),
        asked_at=request.created_at,
    )
