"""List of a user's runs, newest first. It combines the turns of all threads with the stored runs."""

import re
from collections.abc import Sequence
from datetime import UTC

from shared.access.models import UserContext
from shared.conversations.models import RunItem, RunList, ThreadTurn
from shared.conversations.services import ConversationServices
from shared.conversations.thread_search import shown_turns
from shared.platform.concurrency import run_together
from shared.platform.cursors import read_cursor, write_cursor
from shared.runs.journal import current_record

# Maximum number of turns read: years of questions, at about 2 kB each and a thousand per request.
_MOST_TURNS = 20_000
_CURSOR = re.compile(r"[0-9T:.+-]{25,32} [A-Za-z0-9_-]{1,64}")


async def list_runs(
    user: UserContext, services: ConversationServices, limit: int, cursor: str = ""
) -> RunList:
    """Return the user's runs, newest first. Runs of deleted threads and cleared turns are left out.

    Raises:
        CallerError: the cursor is invalid.
    """
    before = tuple(read_cursor(cursor, _CURSOR).split(" ")) if cursor else None
    turns = await shown_turns(user, services.threads, _MOST_TURNS)
    older = [turn for turn in turns if before is None or _place(turn) < before]
    older.sort(key=_place, reverse=True)
    page = older[:limit]
    items = await _items(page, user, services)
    following = write_cursor(" ".join(_place(page[-1]))) if len(older) > limit else None
    return RunList(runs=items, count=len(items), cursor=following)


async def _items(
    turns: Sequence[ThreadTurn], user: UserContext, services: ConversationServices
) -> tuple[RunItem, ...]:
    records = await run_together(*(services.runs.get(turn.run_id) for turn in turns))
    own = [record for record in records if record is not None and record.owner_id == user.user_id]
    current = await run_together(*(current_record(record, services.run_log) for record in own))
    return tuple(RunItem.model_validate(record, from_attributes=True) for record in current)


def _place(turn: ThreadTurn) -> tuple[str, str]:
    return turn.asked_at.astimezone(UTC).isoformat(timespec="microseconds"), turn.run_id
