"""Threads: begin one, list, rename, clear and delete them; what a new question is told of one.

A thread is looked up among its owner's alone: one that belongs to somebody else is not there. Clearing and
deleting take effect with one write; what lies in other stores goes afterwards (erasing.py).
"""

import asyncio
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from shared.core.conversation_window import conversation_from
from shared.errors import ConflictError, NotFoundError
from shared.models.chat import ID_PATTERN
from shared.models.conversation import Conversation
from shared.models.identity import UserContext
from shared.models.names import ERASURES_QUEUE
from shared.models.threads import EraseTask, Thread, ThreadList, ThreadTurn, ThreadView
from shared.services import Services

TURNS_READ = 30  # for a question: more than the setting CONVERSATION_TURNS lets be left unsummarised
Check = Callable[[ThreadView], None]
"""Raises when a change is not to be made to the thread as it is."""

_TRIES = 8  # of a write that somebody else's came before


async def new_thread(
    title: str | None, user: UserContext, services: Services, thread_id: str | None = None
) -> ThreadView:
    """Begin a thread. Without a title its first question becomes it.

    Args:
        thread_id: of a thread that may have been begun already; None = a new one.
    """
    now = datetime.now(UTC)
    thread = Thread(
        thread_id=thread_id or uuid.uuid4().hex,
        owner_id=user.user_id,
        title=title or "",
        created_at=now,
        updated_at=now,
    )
    try:
        return view_of(await services.threads.create(thread))
    except ConflictError:
        return view_of(await owned_thread(thread.thread_id, user, services))


async def list_threads(
    user: UserContext, services: Services, limit: int, cursor: str | None = None
) -> ThreadList:
    """The user's threads, the one that was last asked in first.

    Raises:
        CallerError: the cursor is none of ours.
    """
    page = await services.threads.page(user.user_id, limit, cursor)
    shown = tuple(view_of(thread) for thread in page.threads)
    return ThreadList(threads=shown, count=len(shown), cursor=page.cursor)


async def owned_thread(thread_id: str, user: UserContext, services: Services) -> Thread:
    """The thread.

    Raises:
        NotFoundError: there is none, it is somebody else's, or it was deleted; nobody can tell which.
    """
    is_id = re.fullmatch(ID_PATTERN, thread_id) is not None
    thread = await services.threads.get(user.user_id, thread_id) if is_id else None
    if thread is None or thread.is_deleted:
        raise not_there(thread_id)
    return thread


async def rename_thread(
    thread_id: str, title: str, user: UserContext, services: Services, check: Check | None = None
) -> ThreadView:
    """Give the thread another title, unless `check` raises. NotFoundError as `owned_thread`."""

    def renamed(thread: Thread) -> Thread:
        if check is not None:
            check(view_of(thread))
        return thread.model_copy(update={"title": title})

    return view_of(await change_thread(thread_id, user, services, renamed))


async def clear_thread(thread_id: str, user: UserContext, services: Services) -> ThreadView:
    """Forget the thread's turns and its summary, and keep the thread. NotFoundError as `owned_thread`."""

    def cleared(thread: Thread) -> Thread:
        return thread.model_copy(
            update={
                "cleared_count": thread.turn_count,
                "summary": "",
                "summarised_count": thread.turn_count,
            }
        )

    thread = await change_thread(thread_id, user, services, cleared)
    await ask_to_erase(thread, services)
    return view_of(thread)


async def delete_thread(
    thread_id: str, user: UserContext, services: Services, check: Check | None = None
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
        thread = await change_thread(thread_id, user, services, deleted)
    except NotFoundError:
        known = await services.threads.get(user.user_id, thread_id)
        if known is None:
            raise
        thread = known
    await ask_to_erase(thread, services)


async def ask_to_erase(thread: Thread, services: Services) -> None:
    """Have what was cleared or deleted of the thread erased from every store."""
    through = thread.turn_count if thread.is_deleted else thread.cleared_count
    task = EraseTask(owner_id=thread.owner_id, thread_id=thread.thread_id, through=through)
    await services.queues.send(ERASURES_QUEUE, task.model_dump_json())


async def change_thread(
    thread_id: str, user: UserContext, services: Services, change: Callable[[Thread], Thread]
) -> Thread:
    """Apply a change to the thread as it is, again when somebody else's came before.

    Raises:
        NotFoundError: as `owned_thread`.
        ConflictError: others changed it all the time.
    """
    for attempt in range(_TRIES):
        thread = await owned_thread(thread_id, user, services)
        try:
            return await services.threads.replace(thread, change(thread))
        except ConflictError:
            await asyncio.sleep(0.01 * attempt)
    raise ConflictError("The thread is being changed by others.", "Try again.")


async def conversation_of(thread_id: str, user: UserContext, services: Services) -> Conversation:
    """What was said in a thread, as a new question in it needs it. One round trip to the table.

    Raises:
        NotFoundError: as `owned_thread`.
    """
    return conversation_from(*await thread_and_turns(thread_id, user, services))


async def thread_and_turns(
    thread_id: str, user: UserContext, services: Services
) -> tuple[Thread, list[ThreadTurn]]:
    """The thread and its newest turns, newest first. NotFoundError as `owned_thread`."""
    if not re.fullmatch(ID_PATTERN, thread_id):
        raise not_there(thread_id)
    # Together: the turns of a thread that turns out not to be there are none.
    return await asyncio.gather(
        owned_thread(thread_id, user, services),
        services.threads.turns(user.user_id, thread_id, TURNS_READ),
    )


def view_of(thread: Thread) -> ThreadView:
    """The thread as its owner sees it."""
    return ThreadView(
        thread_id=thread.thread_id,
        title=thread.title,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        turn_count=thread.turn_count - thread.cleared_count,
    )


def not_there(thread_id: str) -> NotFoundError:
    """The one answer for a thread that is absent, foreign or deleted."""
    return NotFoundError(
        f"There is no thread {thread_id[:64]!r}.", "Check the id; threads are seen by their owner."
    )
