"""Operations on threads, as shown to their owners."""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from shared.access.models import UserContext
from shared.conversations.models import EraseTask, Thread, ThreadList, ThreadTurn, ThreadView
from shared.conversations.services import ConversationServices
from shared.conversations.thread_store import ThreadStore
from shared.ingestion.thread_files import remove_files
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.names import ERASURES_QUEUE
from shared.platform.queues import TaskQueues
from shared.runs.models import ID_PATTERN, RunRequest

Check = Callable[[ThreadView], None]
"""Raises when a change is not to be made to the thread as it is."""

# A run waits up to three days for the reply to a clarification, so after four days it can't be active any
# more.
_LONGEST_RUN = timedelta(days=4)
# Attempts to write a row that other requests change at the same time.
MAX_TRIES = 8


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
    for attempt in range(MAX_TRIES):
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
