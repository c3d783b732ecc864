"""The runs of a person, newest first: the turns of all their threads, each with its run's record."""

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import UTC

from shared.access.models import UserContext
from shared.conversations.models import RunItem, RunList, ThreadTurn
from shared.conversations.thread_store import ThreadStore
from shared.platform.concurrency import run_together
from shared.platform.errors import CallerError
from shared.runs.run_store import RunStore

_MOST_TURNS = 20_000  # some 2 kB each, a thousand in one call; years of questions
_CURSOR = re.compile(r"[0-9T:.+-]{25,32} [A-Za-z0-9_-]{1,64}")


async def list_runs(
    user: UserContext, threads: ThreadStore, runs: RunStore, limit: int, cursor: str = ""
) -> RunList:
    """The user's own runs, newest first; none of threads that were deleted, nor of turns that were cleared.

    Raises:
        CallerError: the cursor is invalid.
    """
    before = _read_cursor(cursor)
    older = [turn for turn in await _turns(user, threads) if before is None or _place(turn) < before]
    older.sort(key=_place, reverse=True)
    shown = older[:limit]
    items = await _items(shown, user, runs)
    following = _write_cursor(shown[-1]) if len(older) > limit else None
    return RunList(runs=items, count=len(items), cursor=following)


async def _turns(user: UserContext, threads: ThreadStore) -> list[ThreadTurn]:
    """Those that the user can still see."""
    cleared = {
        thread.thread_id: thread.cleared_count
        async for thread in threads.of_owner(user.user_id)
        if not thread.is_deleted
    }
    return [
        turn
        for turn in await threads.all_turns(user.user_id, _MOST_TURNS)
        if turn.status != "erased" and turn.number > cleared.get(turn.thread_id, turn.number)
    ]


async def _items(turns: Sequence[ThreadTurn], user: UserContext, runs: RunStore) -> tuple[RunItem, ...]:
    records = await run_together(*(runs.get(turn.run_id) for turn in turns))
    return tuple(
        RunItem(
            run_id=record.run_id,
            thread_id=record.thread_id,
            question=record.question,
            status=record.status,
            created_at=record.created_at,
            finished_at=record.finished_at,
            error_type=record.error_type,
        )
        for record in records
        if record is not None and record.owner_id == user.user_id
    )


def _place(turn: ThreadTurn) -> tuple[str, str]:
    return turn.asked_at.astimezone(UTC).isoformat(timespec="microseconds"), turn.run_id


def _write_cursor(turn: ThreadTurn) -> str:
    return base64.urlsafe_b64encode(" ".join(_place(turn)).encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[str, str] | None:
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not _CURSOR.fullmatch(text):
        raise CallerError("Invalid cursor.", "Send the cursor of the page before, unchanged.")
    asked_at, run_id = text.split(" ")
    return asked_at, run_id
