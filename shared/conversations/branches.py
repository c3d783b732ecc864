"""Branches of conversations: new threads that start with a copy of another thread's turns up to a certain
run.

Both threads refer to the same runs by the same numbers. So an answer, its sources and its rating exist once,
and a run is erased with the last thread that shows it. Threads that share turns have the same `family`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.conversations.models import Branch, Thread, ThreadTurn, ThreadView
from shared.conversations.services import ConversationServices
from shared.conversations.thread_store import MAX_TURNS_AT_ONCE, ThreadStore
from shared.conversations.threads import change_thread, delete_thread, owned_thread, store_thread
from shared.platform.errors import ConflictError, NotFoundError
from shared.runs.run_store import RunStore, owned_run


async def branch_thread(
    branch: Branch, title: str | None, user: UserContext, services: ConversationServices, thread_id: str
) -> ThreadView:
    """Create a thread that starts with another thread's turns up to a run. Only the newest turns are copied,
    as many as fit into one transaction.

    Args:
        thread_id: id of the new thread. If it exists already, it is returned unchanged.

    Raises:
        NotFoundError: the user has no such thread, or the run isn't one of its turns.
        ConflictError: one of the answers is still being written, or may quote a file of the thread.
    """
    threads = services.threads
    through = await _turn_of(branch, user, services)
    parent = await change_thread(
        branch.thread_id,
        user,
        threads,
        lambda thread: thread.model_copy(update={"family": thread.family or thread.thread_id}),
    )
    turns = await threads.turns(user.user_id, parent.thread_id, MAX_TURNS_AT_ONCE, through.number + 1)
    shared = [turn for turn in turns if turn.is_shown_in(parent)]
    if through.run_id not in [turn.run_id for turn in shared]:
        # The thread was cleared between finding the run and reading the turns.
        raise _no_such_turn()
    if any(turn.with_files for turn in shared):
        raise ConflictError(
            "Answers in this conversation may quote its files, which a branch cannot contain.",
            "Ask again in a new conversation, or choose an earlier answer as the end of the branch.",
        )
    if any([await _is_at_work(turn, services.runs) for turn in shared]):
        raise ConflictError(
            "An answer in this thread is still being written.", "Wait for the answer, or stop it."
        )
    thread = _branch_of(parent, shared, title or "", thread_id)
    copied_turns = [
        # Episodic memory stores each run once, with its original thread, so count the copies as stored.
        turn.model_copy(update={"thread_id": thread_id, "is_remembered": True})
        for turn in shared
    ]
    stored = await store_thread(thread, copied_turns, user, threads)
    await _require_unchanged(parent, stored, user, services)
    return stored


async def relatives_of(thread: Thread, threads: ThreadStore) -> list[Thread]:
    """Return the owner's other threads that may share turns with this one."""
    if not thread.family:
        return []
    return [
        other
        async for other in threads.of_owner(thread.owner_id)
        if other.family == thread.family and other.thread_id != thread.thread_id and not other.is_deleted
    ]


async def is_shown_elsewhere(turn: ThreadTurn, relatives: list[Thread], threads: ThreadStore) -> bool:
    """Return whether one of the threads in `relatives` shows the same run as this turn."""
    for thread in relatives:
        same = await threads.turn(thread.owner_id, thread.thread_id, turn.number)
        if same is not None and same.run_id == turn.run_id and same.is_shown_in(thread):
            return True
    return False


def _branch_of(parent: Thread, shared: Sequence[ThreadTurn], title: str, thread_id: str) -> Thread:
    """Return a new thread that contains these turns of `parent`, which are given newest first. The parent's
    summary is copied unless it also covers later turns.
    """
    # Turns before the oldest shared one aren't copied, so the branch counts them as cleared.
    through, hidden = shared[0].number, shared[-1].number - 1
    knows_summary = parent.summarised_count <= through
    now = datetime.now(UTC)
    return Thread(
        thread_id=thread_id,
        owner_id=parent.owner_id,
        title=title,
        created_at=now,
        updated_at=now,
        turn_count=through,
        cleared_count=hidden,
        erased_count=hidden,
        summary=parent.summary if knows_summary else "",
        summarised_count=max(parent.summarised_count, hidden) if knows_summary else hidden,
        family=parent.family,
    )


async def _turn_of(branch: Branch, user: UserContext, services: ConversationServices) -> ThreadTurn:
    thread = await owned_thread(branch.thread_id, user, services.threads)
    record = await owned_run(branch.run_id, user, services.runs)
    turn = await services.threads.turn(user.user_id, thread.thread_id, record.turn)
    if turn is None or turn.run_id != branch.run_id or not turn.is_shown_in(thread):
        raise _no_such_turn()
    return turn


async def _is_at_work(turn: ThreadTurn, runs: RunStore) -> bool:
    record = await runs.get(turn.run_id) if turn.status == "asked" else None
    return record is not None and record.status in ("running", "waiting")


async def _require_unchanged(
    parent: Thread, branch: ThreadView, user: UserContext, services: ConversationServices
) -> None:
    """Delete the branch and raise an error if its parent was cleared or deleted while the branch was
    created.
    """
    now = await services.threads.get(parent.owner_id, parent.thread_id)
    if now is None or now.is_deleted or now.cleared_count != parent.cleared_count:
        await delete_thread(branch.thread_id, user, services)
        raise _no_such_turn()


def _no_such_turn() -> NotFoundError:
    return NotFoundError("The thread has no such run.", "Send a run_id of its messages.")
