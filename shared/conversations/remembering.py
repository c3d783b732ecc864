"""Work after an answer: store its turn in episodic memory, and renew the rolling summary of its thread.

This runs on a queue, so no answer waits for it. It reads the thread rather than the message, so a lost, late
or repeated message does no harm: the next one finds the remaining work. Every write is followed by a check
that its source still exists, so nothing returns after its owner has deleted it.
"""

from contextlib import suppress

from shared.conversations.models import ConversationSummary, RememberTask, Thread, ThreadTurn
from shared.conversations.services import ConversationServices
from shared.conversations.thread_store import ThreadStore
from shared.conversations.window import (
    MEMORY_CHARS,
    QUESTION_CHARS,
    SUMMARY_CHARS,
    excerpt,
    summary_material,
    turns_to_fold,
)
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.names import TURNS_QUEUE
from shared.platform.prompts import load
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger

# Turns read per thread and message, enough to catch up after the queue was stopped.
_TURNS_READ = 50
_WRITE_TRIES = 4
# After seven retries, with pauses that double from 10 s to a total of 21 minutes, the message goes to the
# poison queue.
_MAX_TRIES = 7
_FIRST_PAUSE_S = 10.0


async def remember(task: RememberTask, services: ConversationServices) -> None:
    """Summarise a thread if necessary, and store its answered turns in episodic memory. Turns already stored
    are skipped.

    Raises:
        GroundworkError: it failed permanently. After a temporary failure a later message retries instead.
    """
    try:
        await _remember_thread(task.owner_id, task.thread_id, services)
    except GroundworkError as failed:
        if not failed.retryable or task.tries >= _MAX_TRIES:
            raise
        pause_s = max(_FIRST_PAUSE_S * 2**task.tries, failed.retry_after_s or 0.0)
        get_logger().warning("turn.store_failed", run_id=task.run_id, error_type=failed.code)
        again = task.model_copy(update={"tries": task.tries + 1})
        await services.queues.send(TURNS_QUEUE, again.model_dump_json(), pause_s)


async def _remember_thread(owner_id: str, thread_id: str, services: ConversationServices) -> None:
    thread = await services.threads.get(owner_id, thread_id)
    if thread is None or thread.is_deleted:
        return
    turns = await services.threads.turns(owner_id, thread_id, _TURNS_READ)
    alive = [turn for turn in turns if turn.is_shown_in(thread)]
    for turn in reversed(alive):
        if turn.status == "answered" and not turn.is_remembered:
            await _remember_turn(owner_id, turn, services)
    await _summarise(thread, alive, services.settings, services.chat_model, services.threads)


async def _remember_turn(owner_id: str, turn: ThreadTurn, services: ConversationServices) -> None:
    memory_index, threads = services.memory_index, services.threads
    if await _may_remember(owner_id, turn, threads):
        question = excerpt(turn.question, QUESTION_CHARS)
        summary = excerpt(turn.answer, MEMORY_CHARS)
        limits = CallLimits(timeout_s=services.settings.models.embedding_timeout_s, max_retries=2)
        (vector,) = await services.embedder.embed([f"{question}\n{summary}"], limits)
        row = {
            "memory_id": turn.run_id,
            "user_id": owner_id,
            "thread_id": turn.thread_id,
            "question": question,
            "answer_summary": summary,
            "vector": list(vector),
            "created_at": turn.asked_at.isoformat(),
            "doc_ids": list(turn.doc_ids),
        }
        await memory_index.upload([row])
        # The turn was deleted while its memory was being written, perhaps before the row existed, so delete
        # the row again.
        if not await _may_remember(owner_id, turn, threads):
            await memory_index.delete([turn.run_id])
    # Ignore conflicts: the turn was erased, or another task has recorded it. Storing a memory twice is
    # harmless.
    with suppress(ConflictError, NotFoundError):
        await threads.replace_turn(owner_id, turn.model_copy(update={"is_remembered": True}))


async def _may_remember(owner_id: str, turn: ThreadTurn, threads: ThreadStore) -> bool:
    """Return whether memory is on, and the turn is neither cleared nor forgotten."""
    if turn.with_files or not await threads.is_memory_on(owner_id):
        return False
    thread, current, forgotten = await run_together(
        threads.get(owner_id, turn.thread_id),
        threads.turn(owner_id, turn.thread_id, turn.number),
        threads.forgotten_until(owner_id),
    )
    if thread is None or thread.is_deleted or current is None or not current.is_shown_in(thread):
        return False
    return forgotten is None or turn.asked_at > forgotten


async def _summarise(
    thread: Thread, turns: list[ThreadTurn], settings: Settings, chat_model: ChatModel, threads: ThreadStore
) -> None:
    folded = turns_to_fold(thread, turns, settings.conversations.turns)
    if not folded:
        return
    user = summary_material(thread.summary, folded)
    prompt = Prompt(name="summarise_turns", system=load("conversations", "summarise_turns"), user=user)
    limits = CallLimits(timeout_s=settings.conversations.turn_summary_timeout_s)
    output = await chat_model.parse(prompt, ConversationSummary, limits)
    summary = excerpt(output.summary, SUMMARY_CHARS)
    await _keep_summary(thread, summary, folded[-1].number, threads)


async def _keep_summary(thread: Thread, summary: str, through: int, threads: ThreadStore) -> None:
    """Store the summary in the thread, unless the thread was cleared in the meantime or another task has
    stored a newer summary.
    """
    current: Thread | None = thread
    for _ in range(_WRITE_TRIES):
        if current is None or current.is_deleted or current.cleared_count != thread.cleared_count:
            return
        if current.summarised_count != thread.summarised_count:
            return
        changed = current.model_copy(update={"summary": summary, "summarised_count": through})
        with suppress(ConflictError, NotFoundError):
            await threads.replace(current, changed)
            return
        current = await threads.get(thread.owner_id, thread.thread_id)
