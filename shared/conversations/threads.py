"""Operations on threads and their turns, as shown to their owners."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.access.models import UserContext
from shared.access.security_filter import in_thread
from shared.conversations.models import (
    ActiveRun,
    AnsweredClarification,
    EraseTask,
    MessageList,
    RememberTask,
    Thread,
    ThreadList,
    ThreadMessage,
    ThreadTurn,
    ThreadView,
)
from shared.conversations.services import ConversationServices
from shared.conversations.thread_store import ThreadStore
from shared.conversations.window import (
    QUESTION_CHARS,
    answered,
    conversation_from,
    current_turns,
    excerpt,
    title_of,
)
from shared.ingestion.thread_files import remove_files
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.names import ERASURES_QUEUE, TURNS_QUEUE
from shared.platform.queues import TaskQueues
from shared.platform.telemetry import get_logger
from shared.runs.event_log import RunClosedError
from shared.runs.events import events_of
from shared.runs.fresh_urls import refresh_answers
from shared.runs.journal import clarification_of, committed_answer, current_record
from shared.runs.models import (
    ID_PATTERN,
    Conversation,
    RunAnswer,
    RunRecord,
    RunRequest,
)
from shared.runs.run_log import RunLog
from shared.runs.run_state import fold

# Turns read per question. Memory summarises older turns before as many remain.
TURNS_READ = 30
Check = Callable[[ThreadView], None]
"""Raises when a change is not to be made to the thread as it is."""

# The search covers the last 2,000 threads, more than one person has.
_PAGE_OF_SEARCH, _MOST_PAGES = 100, 20
# Turns of all threads that are searched: half a year at thirty questions a day.
_MOST_TURNS = 5_000
# A run waits up to three days for the reply to a clarification, so after four days it can't be active any
# more.
_LONGEST_RUN = timedelta(days=4)
# Attempts to write a row that other requests change at the same time.
_TRIES = 8


async def new_thread(
    title: str | None, user: UserContext, threads: ThreadStore, thread_id: str
) -> ThreadView:
    """Create a thread with this id, or return the existing one.

    Args:
        title: None = use the first question.
    """
    now = datetime.now(UTC)
    thread = Thread(
        thread_id=thread_id,
        owner_id=user.user_id,
        title=title or "",
        created_at=now,
        updated_at=now,
    )
    return await store_thread(thread, (), user, threads)


async def store_thread(
    thread: Thread, turns: Sequence[ThreadTurn], user: UserContext, threads: ThreadStore
) -> ThreadView:
    """Store a new thread with its first turns. If the thread exists, leave it unchanged."""
    try:
        return view_of(await threads.create(thread, turns))
    except ConflictError:
        return view_of(await owned_thread(thread.thread_id, user, threads))


async def list_threads(
    user: UserContext, threads: ThreadStore, limit: int, cursor: str | None = None
) -> ThreadList:
    """Return a page of the user's threads, most recently used first.

    Raises:
        CallerError: the cursor is invalid.
    """
    page = await threads.page(user.user_id, limit, cursor)
    views = tuple(_listed(thread) for thread in page.threads)
    return ThreadList(threads=views, count=len(views), cursor=page.cursor)


def _listed(thread: Thread) -> ThreadView:
    """Return a thread as an entry of a list, including its active run.

    A run that must have ended, because its worker died before the row was updated, is left out.
    """
    is_stale = datetime.now(UTC) - thread.updated_at > _LONGEST_RUN
    return view_of(thread).model_copy(update={"active_run": None if is_stale else thread.active_run})


async def find_threads(words: str, user: UserContext, threads: ThreadStore, limit: int) -> ThreadList:
    """Return the threads whose title or questions contain all words of a search, also as parts of longer
    words. The most recently used threads come first.
    """
    terms = words.casefold().split()
    turns_by_thread: defaultdict[str, list[ThreadTurn]] = defaultdict(list)
    for turn in await threads.all_turns(user.user_id, _MOST_TURNS):
        turns_by_thread[turn.thread_id].append(turn)
    matches: list[ThreadView] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await threads.page(user.user_id, _PAGE_OF_SEARCH, cursor)
        matches += [
            view_of(one) for one in page.threads if _holds(one, turns_by_thread[one.thread_id], terms)
        ]
        cursor = page.cursor
        if cursor is None or len(matches) >= limit:
            break
    return ThreadList(threads=tuple(matches[:limit]), count=len(matches[:limit]))


def _holds(thread: Thread, turns: Sequence[ThreadTurn], terms: Sequence[str]) -> bool:
    questions = [turn.question for turn in turns if turn.number > thread.cleared_count]
    text = "\n".join([thread.title, *questions]).casefold()
    return all(word in text for word in terms)


async def thread_with(questions: Sequence[str], user: UserContext, threads: ThreadStore) -> ThreadTurn | None:
    """Return the newest turn of the thread that contains exactly these questions, or None if there is none.

    This serves clients that send a whole conversation instead of a thread id. A question may be missing from
    the turns, because it answered a clarification. The longest match wins, then the newest.
    """
    turns_by_thread: defaultdict[str, list[ThreadTurn]] = defaultdict(list)
    for turn in await threads.all_turns(user.user_id, _MOST_TURNS):
        if turn.status != "erased":
            turns_by_thread[turn.thread_id].append(turn)
    # Skip threads with files: clients that send whole conversations must not see answers that may quote the
    # files.
    turns_by_thread = defaultdict(
        list,
        {
            thread_id: turns
            for thread_id, turns in turns_by_thread.items()
            if not any(turn.with_files for turn in turns)
        },
    )
    turns_by_thread = defaultdict(
        list, {thread_id: current_turns(turns) for thread_id, turns in turns_by_thread.items()}
    )
    texts = [question.strip() for question in questions]
    candidates: list[list[ThreadTurn]] = []
    for turns in turns_by_thread.values():
        turns.sort(key=lambda turn: turn.number)
        rest = iter(texts)
        if turns[0].question == texts[0] and all(turn.question in rest for turn in turns):
            candidates.append(turns)
    best = max(candidates, key=lambda turns: (len(turns), turns[-1].asked_at), default=None)
    return best[-1] if best else None


async def owned_thread(thread_id: str, user: UserContext, threads: ThreadStore) -> Thread:
    """Return the thread with this id if the user owns it.

    Raises:
        NotFoundError: the thread doesn't exist, belongs to another user or was deleted, without distinction.
    """
    is_id = re.fullmatch(ID_PATTERN, thread_id) is not None
    thread = await threads.get(user.user_id, thread_id) if is_id else None
    if thread is None or thread.is_deleted:
        raise thread_not_found(thread_id)
    return thread


async def rename_thread(
    thread_id: str, title: str, user: UserContext, threads: ThreadStore, check: Check | None = None
) -> ThreadView:
    """Change the title of a thread, unless `check` raises an error. Raise NotFoundError as `owned_thread`
    does.
    """

    def renamed(thread: Thread) -> Thread:
        if check is not None:
            check(view_of(thread))
        return thread.model_copy(update={"title": title})

    return view_of(await change_thread(thread_id, user, threads, renamed))


async def clear_thread(thread_id: str, user: UserContext, services: ConversationServices) -> ThreadView:
    """Clear the turns, the summary and the files of a thread, but keep the thread. Raise NotFoundError as
    `owned_thread` does.
    """
    await owned_thread(thread_id, user, services.threads)
    await remove_files(thread_id, services)
    return view_of(await clear_turns(thread_id, user, services, has_files=False))


async def clear_turns(
    thread_id: str, user: UserContext, services: ConversationServices, *, has_files: bool
) -> Thread:
    """Clear the turns and the summary of a thread, and start their erasure. Raise NotFoundError as
    `owned_thread` does.

    Args:
        has_files: whether files stay.
    """

    def cleared(thread: Thread) -> Thread:
        count = thread.turn_count
        return thread.model_copy(
            update={
                "cleared_count": count,
                "summary": "",
                "summarised_count": count,
                "web_allowed": None,
                "active_run": None,
                "has_files": has_files,
            }
        )

    thread = await change_thread(thread_id, user, services.threads, cleared)
    await ask_to_erase(thread, services.queues)
    return thread


async def delete_thread(
    thread_id: str, user: UserContext, services: ConversationServices, check: Check | None = None
) -> None:
    """Hide a thread immediately and start its erasure, unless `check` raises an error. Idempotent.

    Raises:
        NotFoundError: as `owned_thread`, except for a thread that is being deleted.
    """

    def deleted(thread: Thread) -> Thread:
        if check is not None:
            check(view_of(thread))
        return thread.model_copy(update={"is_deleted": True})

    try:
        thread = await change_thread(thread_id, user, services.threads, deleted)
    except NotFoundError:
        before = await services.threads.get(user.user_id, thread_id)
        if before is None:
            raise
        thread = before
    await ask_to_erase(thread, services.queues)
    await remove_files(thread_id, services)


async def ask_to_erase(thread: Thread, queues: TaskQueues) -> None:
    """Queue the erasure of all cleared or deleted turns of a thread."""
    through = thread.turn_count if thread.is_deleted else thread.cleared_count
    task = EraseTask(owner_id=thread.owner_id, thread_id=thread.thread_id, through=through)
    await queues.send(ERASURES_QUEUE, task.model_dump_json())


async def change_thread(
    thread_id: str, user: UserContext, threads: ThreadStore, change: Callable[[Thread], Thread]
) -> Thread:
    """Apply `change` to the stored thread, and retry if another request changes it at the same time.

    Raises:
        NotFoundError: as `owned_thread`.
        ConflictError: every attempt conflicted.
    """
    for attempt in range(_TRIES):
        thread = await owned_thread(thread_id, user, threads)
        try:
            return await threads.replace(thread, change(thread))
        except ConflictError:
            await asyncio.sleep(0.01 * attempt)
    raise ConflictError("The thread is being changed by another request.", "Try again.")


async def keep_web_consent(request: RunRequest, threads: ThreadStore, *, allowed: bool) -> None:
    """Store in a run's thread whether its questions may use the web.

    Without a stored thread nothing is kept, and the next question asks again.

    Raises:
        ConflictError: every attempt conflicted.
    """
    with suppress(NotFoundError):
        await change_thread(
            request.thread_id,
            request.user,
            threads,
            lambda thread: thread.model_copy(update={"web_allowed": allowed}),
        )


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


def view_of(thread: Thread) -> ThreadView:
    """Return the thread as shown to its owner."""
    seen = thread.model_copy(
        update={"turn_count": thread.turn_count - thread.cleared_count, "active_run": None}
    )
    return ThreadView.model_validate(seen, from_attributes=True)


def thread_not_found(thread_id: str) -> NotFoundError:
    """Return the error for a thread that doesn't exist, was deleted or belongs to someone else."""
    return NotFoundError(
        f"There is no thread {thread_id[:64]!r}.", "Check the id; only a thread's owner can see it."
    )


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
    for attempt in range(_TRIES):
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
    replaced = next((turn for turn in turns if turn.run_id == run_id and is_shown(turn, thread)), None)
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


async def close_turn(record: RunRecord, answer: RunAnswer, threads: ThreadStore) -> None:
    """Store an answer's data for later questions in its thread, and record that the run is no longer active.

    The call is idempotent.

    Raises:
        RunClosedError: the thread was cleared or deleted, so the answer must not be stored.
    """
    if not record.turn:
        return
    for _ in range(_TRIES):
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


async def read_messages(
    thread_id: str, user: UserContext, services: ConversationServices, limit: int, before: int | None = None
) -> MessageList:
    """Return the newest turns of a thread, or those before a turn number, oldest first and with newly signed
    figure URLs.

    Raises:
        NotFoundError: as `owned_thread`.
    """
    thread = await owned_thread(thread_id, user, services.threads)
    turns = await services.threads.turns(user.user_id, thread_id, limit + 1, before)
    visible = [turn for turn in turns[:limit] if is_shown(turn, thread)]
    messages = await run_together(*(_message(turn, user, services) for turn in reversed(visible)))
    reader = in_thread(user, thread_id)
    present = await _refreshed([message for message in messages if message is not None], reader, services)
    has_more = len(visible) == limit and len(turns) > limit and is_shown(turns[limit], thread)
    return MessageList(
        thread_id=thread_id,
        messages=tuple(present),
        count=len(present),
        cursor=str(visible[-1].number) if has_more else None,
    )


def is_shown(turn: ThreadTurn, thread: Thread) -> bool:
    """Return whether the owner still sees the turn in this thread. Turns that were cleared are hidden."""
    return turn.number > thread.cleared_count and turn.status != "erased"


async def _message(
    turn: ThreadTurn, user: UserContext, services: ConversationServices
) -> ThreadMessage | None:
    """Return the message of a turn, or None if its run was never stored because the process died."""
    record = await services.runs.get(turn.run_id)
    if record is None or record.owner_id != user.user_id:
        return None
    record = await current_record(record, services.run_log)
    fields = record.model_dump(include=set(ThreadMessage.model_fields))
    answer, clarification = await run_together(
        _answer(record, services), _clarification(record, services.run_log)
    )
    return ThreadMessage(
        **fields, number=turn.number, answer=answer, clarification=clarification, replaces=turn.replaces
    )


async def _clarification(record: RunRecord, run_log: RunLog) -> AnsweredClarification | None:
    if not record.ask_step or not record.has_log:
        # Most runs have no clarification, so avoid a read.
        return None
    request, reply = await clarification_of(record.run_id, record.ask_step, run_log)
    if request is None or reply is None:
        return None
    choice = reply.choice
    labels = [option.label for option in request.options if option.number in choice.numbers]
    return AnsweredClarification(question=request.question, answer=", ".join(labels) or choice.said)


async def _answer(record: RunRecord, services: ConversationServices) -> RunAnswer | None:
    if record.status != "completed":
        return None
    try:
        return await committed_answer(record.run_id, services.blobs, services.run_log)
    except NotFoundError:
        # The thread is being erased.
        return None


async def _refreshed(
    messages: list[ThreadMessage], user: UserContext, services: ConversationServices
) -> list[ThreadMessage]:
    answers = [message.answer for message in messages if message.answer is not None]
    fresh = {answer.run_id: answer for answer in await refresh_answers(answers, user, services)}
    return [message.model_copy(update={"answer": fresh.get(message.run_id)}) for message in messages]
