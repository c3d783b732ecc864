"""A thread's turns as its owner reads them: questions and whole answers, with addresses that are good now."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.access.models import UserContext
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
    excerpt,
    title_of,
    without_replaced,
)
from shared.platform.blobs import BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.names import ERASURES_QUEUE, TURNS_QUEUE
from shared.platform.queues import TaskQueues
from shared.platform.telemetry import get_logger
from shared.runs.event_log import RunClosedError
from shared.runs.fresh_urls import refresh_answers
from shared.runs.journal import clarification_of
from shared.runs.models import (
    ID_PATTERN,
    Conversation,
    RunAnswer,
    RunRecord,
    RunRequest,
)
from shared.runs.run_files import committed_answer
from shared.runs.run_log import RunLog

TURNS_READ = 30  # for a question: more than the constant `turns` lets be left unsummarised
Check = Callable[[ThreadView], None]
"""Raises when a change is not to be made to the thread as it is."""

_PAGE_OF_SEARCH, _MOST_PAGES = 100, 20  # the last 2,000 threads: more than a person has
_MOST_TURNS = 5_000  # of all threads; a person who asks thirty questions a day has as many in half a year
_LONGEST_RUN = timedelta(days=4)  # a question back waits for three
_TRIES = 8  # of a write that somebody else's came before


async def new_thread(
    title: str | None, user: UserContext, threads: ThreadStore, thread_id: str
) -> ThreadView:
    """Begin a thread, or return the one that was begun with this id before.

    Args:
        title: None = its first question becomes its title.
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
    """Store a new thread with its first turns; one that was stored already stays as it is."""
    try:
        return view_of(await threads.create(thread, turns))
    except ConflictError:
        return view_of(await owned_thread(thread.thread_id, user, threads))


async def list_threads(
    user: UserContext, threads: ThreadStore, limit: int, cursor: str | None = None
) -> ThreadList:
    """The user's threads, the one that was last asked in first.

    Raises:
        CallerError: the cursor is invalid.
    """
    page = await threads.page(user.user_id, limit, cursor)
    shown = tuple(_listed(thread) for thread in page.threads)
    return ThreadList(threads=shown, count=len(shown), cursor=page.cursor)


def _listed(thread: Thread) -> ThreadView:
    """Return the thread as a list shows it: with its active run.

    A run that can't be active any more, because its worker died before the row was changed, is left out.
    """
    is_stale = datetime.now(UTC) - thread.updated_at > _LONGEST_RUN
    return view_of(thread).model_copy(update={"active_run": None if is_stale else thread.active_run})


async def find_threads(words: str, user: UserContext, threads: ThreadStore, limit: int) -> ThreadList:
    """The user's threads whose title and questions hold all words, also inside of words; last used first."""
    wanted = words.casefold().split()
    asked: defaultdict[str, list[ThreadTurn]] = defaultdict(list)
    for turn in await threads.all_turns(user.user_id, _MOST_TURNS):
        asked[turn.thread_id].append(turn)
    found: list[ThreadView] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await threads.page(user.user_id, _PAGE_OF_SEARCH, cursor)
        found += [view_of(one) for one in page.threads if _holds(one, asked[one.thread_id], wanted)]
        cursor = page.cursor
        if cursor is None or len(found) >= limit:
            break
    return ThreadList(threads=tuple(found[:limit]), count=len(found[:limit]))


def _holds(thread: Thread, turns: Sequence[ThreadTurn], wanted: Sequence[str]) -> bool:
    questions = [turn.question for turn in turns if turn.number > thread.cleared_count]
    text = "\n".join([thread.title, *questions]).casefold()
    return all(word in text for word in wanted)


async def thread_with(questions: Sequence[str], user: UserContext, threads: ThreadStore) -> ThreadTurn | None:
    """The newest turn of the thread in which these questions were asked; None = there is none.

    For clients that send the whole conversation instead of a thread's id. Not every question needs to be a
    turn: one may have been the answer to a question back. Of several threads the longest counts, then the
    newest.
    """
    asked: defaultdict[str, list[ThreadTurn]] = defaultdict(list)
    for turn in await threads.all_turns(user.user_id, _MOST_TURNS):
        if turn.status != "erased":
            asked[turn.thread_id].append(turn)
    asked = defaultdict(list, {thread_id: without_replaced(turns) for thread_id, turns in asked.items()})
    wanted = [question.strip() for question in questions]
    found: list[list[ThreadTurn]] = []
    for turns in asked.values():
        turns.sort(key=lambda turn: turn.number)
        rest = iter(wanted)
        if turns[0].question == wanted[0] and all(turn.question in rest for turn in turns):
            found.append(turns)
    best = max(found, key=lambda turns: (len(turns), turns[-1].asked_at), default=None)
    return best[-1] if best else None


async def owned_thread(thread_id: str, user: UserContext, threads: ThreadStore) -> Thread:
    """The thread.

    Raises:
        NotFoundError: there is none, it is somebody else's, or it was deleted; nobody can tell which.
    """
    is_id = re.fullmatch(ID_PATTERN, thread_id) is not None
    thread = await threads.get(user.user_id, thread_id) if is_id else None
    if thread is None or thread.is_deleted:
        raise not_there(thread_id)
    return thread


async def rename_thread(
    thread_id: str, title: str, user: UserContext, threads: ThreadStore, check: Check | None = None
) -> ThreadView:
    """Give the thread another title, unless `check` raises. NotFoundError as `owned_thread`."""

    def renamed(thread: Thread) -> Thread:
        if check is not None:
            check(view_of(thread))
        return thread.model_copy(update={"title": title})

    return view_of(await change_thread(thread_id, user, threads, renamed))


async def clear_thread(thread_id: str, user: UserContext, services: ConversationServices) -> ThreadView:
    """Forget the thread's turns and its summary, and keep the thread. NotFoundError as `owned_thread`."""

    def cleared(thread: Thread) -> Thread:
        count = thread.turn_count
        return thread.model_copy(
            update={
                "cleared_count": count,
                "summary": "",
                "summarised_count": count,
                "web_allowed": None,
                "active_run": None,
            }
        )

    thread = await change_thread(thread_id, user, services.threads, cleared)
    await ask_to_erase(thread, services.queues)
    return view_of(thread)


async def delete_thread(
    thread_id: str, user: UserContext, services: ConversationServices, check: Check | None = None
) -> None:
    """Delete the thread, unless `check` raises: nobody sees it from now on. Again while it goes: no error.

    Raises:
        NotFoundError: as `owned_thread`, but for one that is going.
    """

    def deleted(found: Thread) -> Thread:
        if check is not None:
            check(view_of(found))
        return found.model_copy(update={"is_deleted": True})

    try:
        thread = await change_thread(thread_id, user, services.threads, deleted)
    except NotFoundError:
        known = await services.threads.get(user.user_id, thread_id)
        if known is None:
            raise
        thread = known
    await ask_to_erase(thread, services.queues)


async def ask_to_erase(thread: Thread, queues: TaskQueues) -> None:
    """Have what was cleared or deleted of the thread erased from every store."""
    through = thread.turn_count if thread.is_deleted else thread.cleared_count
    task = EraseTask(owner_id=thread.owner_id, thread_id=thread.thread_id, through=through)
    await queues.send(ERASURES_QUEUE, task.model_dump_json())


async def change_thread(
    thread_id: str, user: UserContext, threads: ThreadStore, change: Callable[[Thread], Thread]
) -> Thread:
    """Apply a change to the thread as it is, again when somebody else's came before.

    Raises:
        NotFoundError: as `owned_thread`.
        ConflictError: others changed it all the time.
    """
    for attempt in range(_TRIES):
        thread = await owned_thread(thread_id, user, threads)
        try:
            return await threads.replace(thread, change(thread))
        except ConflictError:
            await asyncio.sleep(0.01 * attempt)
    raise ConflictError("The thread is being changed by another request.", "Try again.")


async def keep_web_consent(request: RunRequest, threads: ThreadStore, *, allowed: bool) -> None:
    """Remember for the thread of a run whether its questions may use the web.

    A thread that is gone, or that an agent keeps elsewhere, remembers nothing: its next question asks again.

    Raises:
        ConflictError: others changed the thread all the time.
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
    """The thread and its newest turns, newest first. NotFoundError as `owned_thread`."""
    if not re.fullmatch(ID_PATTERN, thread_id):
        raise not_there(thread_id)
    # Together: the turns of a thread that turns out not to be there are none.
    return await run_together(
        owned_thread(thread_id, user, threads),
        threads.turns(user.user_id, thread_id, TURNS_READ),
    )


def view_of(thread: Thread) -> ThreadView:
    """The thread as its owner sees it."""
    seen = thread.model_copy(
        update={"turn_count": thread.turn_count - thread.cleared_count, "active_run": None}
    )
    return ThreadView.model_validate(seen, from_attributes=True)


def not_there(thread_id: str) -> NotFoundError:
    """The one answer for a thread that is absent, foreign or deleted."""
    return NotFoundError(
        f"There is no thread {thread_id[:64]!r}.", "Check the id; only a thread's owner can see it."
    )


_SENDING_S = 5.0  # the answer is sent meanwhile; a message that is lost is replaced by that of the next turn
_REMEMBER_AFTER_S = 1.0  # by then the run has ended


@dataclass(frozen=True)
class OpenedTurn:
    """A turn that waits for its answer, and what was said before it."""

    number: int
    conversation: Conversation


async def open_turn(request: RunRequest, threads: ThreadStore, *, is_new: bool) -> OpenedTurn:
    """Add a question to its thread, unless it is there; `is_new`: to a thread that begins with it.

    Raises:
        NotFoundError: the user has no such thread.
        ConflictError: too many questions at once, or `replaces` isn't the thread's newest run.
    """
    if is_new:
        return await _begin_thread(request, threads)
    for attempt in range(_TRIES):
        thread, turns = await thread_and_turns(request.thread_id, request.user, threads)
        own = next((turn for turn in turns if turn.run_id == request.run_id), None)
        others = [turn for turn in turns if turn is not own and turn.run_id != request.replaces]
        conversation = conversation_from(thread, others)
        if own is not None:
            return OpenedTurn(own.number, conversation)
        if request.replaces and (not turns or turns[0].run_id != request.replaces):
            raise ConflictError("Only the thread's newest question can be replaced.", "Branch the thread.")
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
            await threads.replace(thread, changed, _asked(request, number))
        except NotFoundError:
            raise not_there(request.thread_id) from None
        except ConflictError:
            await asyncio.sleep(0.01 * attempt)
        else:
            return OpenedTurn(number, conversation)
    raise ConflictError("Too many questions at once in this thread.", "Ask again in a moment.")


async def close_turn(record: RunRecord, answer: RunAnswer, threads: ThreadStore) -> None:
    """Keep in the thread what later questions need of the answer; its run is active no more.

    Doing it twice changes nothing.

    Raises:
        RunClosedError: the thread was cleared or deleted meanwhile; the answer belongs nowhere.
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
            continue  # it was erased, or another attempt was quicker: the next look tells
        else:
            return
    raise ConflictError("The turn is being changed by another request.", "Try again.")


async def show_run(record: RunRecord, threads: ThreadStore) -> None:
    """Make the thread's row name the run while it is active, and no longer once it has ended.

    Doing it twice changes nothing. A thread that is gone, or has a newer question, stays as it is.

    Raises:
        ConflictError: others changed the thread all the time.
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
    """Have the turn remembered, later and elsewhere. Never fails: the answer does not depend on it."""
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
        await threads.create(thread, [_asked(request, 1)])
    except ConflictError:
        begun = await threads.turn(request.user.user_id, request.thread_id, 1)
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
        replaces=request.replaces,
    )


async def read_messages(
    thread_id: str, user: UserContext, services: ConversationServices, limit: int, before: int | None = None
) -> MessageList:
    """The newest turns, or the newest before a number, oldest first; addresses in answers are fresh.

    Raises:
        NotFoundError: as `owned_thread`.
    """
    thread = await owned_thread(thread_id, user, services.threads)
    found = await services.threads.turns(user.user_id, thread_id, limit + 1, before)
    shown = [turn for turn in found[:limit] if is_shown(turn, thread)]
    messages = await run_together(*(_message(turn, user, services) for turn in reversed(shown)))
    present = await _refreshed([message for message in messages if message is not None], user, services)
    has_more = len(shown) == limit and len(found) > limit and is_shown(found[limit], thread)
    return MessageList(
        thread_id=thread_id,
        messages=tuple(present),
        count=len(present),
        cursor=str(shown[-1].number) if has_more else None,
    )


def is_shown(turn: ThreadTurn, thread: Thread) -> bool:
    """Whether the owner sees the turn in the thread."""
    return turn.number > thread.cleared_count and turn.status != "erased"


async def _message(
    turn: ThreadTurn, user: UserContext, services: ConversationServices
) -> ThreadMessage | None:
    """None for a question whose run was never stored, because the process ended in between."""
    record = await services.runs.get(turn.run_id)
    if record is None or record.owner_id != user.user_id:
        return None
    known = record.model_dump(include=set(ThreadMessage.model_fields))
    answer, clarification = await run_together(
        _answer(record, services.blobs), _clarification(record, services.run_log)
    )
    return ThreadMessage(
        **known, number=turn.number, answer=answer, clarification=clarification, replaces=turn.replaces
    )


async def _clarification(record: RunRecord, run_log: RunLog) -> AnsweredClarification | None:
    if not record.ask_step or not record.has_log:
        return None  # most runs: no read
    asked, reply = await clarification_of(record.run_id, record.ask_step, run_log)
    if asked is None or reply is None:
        return None
    choice = reply.choice
    labels = [option.label for option in asked.options if option.number in choice.numbers]
    return AnsweredClarification(question=asked.question, answer=", ".join(labels) or choice.said)


async def _answer(record: RunRecord, blobs: BlobStore) -> RunAnswer | None:
    if record.status != "completed":
        return None
    try:
        return await committed_answer(record.run_id, blobs)
    except NotFoundError:  # the thread is being erased at this moment
        return None


async def _refreshed(
    messages: list[ThreadMessage], user: UserContext, services: ConversationServices
) -> list[ThreadMessage]:
    answers = [message.answer for message in messages if message.answer is not None]
    fresh = {answer.run_id: answer for answer in await refresh_answers(answers, user, services)}
    return [message.model_copy(update={"answer": fresh.get(message.run_id)}) for message in messages]
