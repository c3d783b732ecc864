"""Storage of threads and turns. Each user has a separate table partition, so that no query can reach other
users' rows.

Keys distinguish three kinds of rows: a thread, its entry in the list of threads (most recent first, so the
key counts down), and its turns (newest first). Related rows change in one transaction.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from shared.conversations.models import Thread, ThreadPage, ThreadTurn
from shared.platform.cursors import read_cursor, write_cursor
from shared.platform.errors import NotFoundError
from shared.platform.tables import Change, Entity, Table, revision_of

# Keys count down from this time in the year 5138, so that the newest threads come first.
_LAST_MICROSECOND = 10**17
_LAST_NUMBER = 10**8
_PLACE = re.compile(r"place-[0-9]{17}-[A-Za-z0-9_-]{1,64}")
_FORGOTTEN = "forgotten"
_MEMORY_OFF = "memory-off"
# Maximum number of turns per transaction. A turn takes at most 37 KB on the wire, so a transaction stays
# below 1 MB.
MAX_TURNS_AT_ONCE = 25
# A limit so large that all rows are deleted.
_EVERY = 1_000_000_000
# This character sorts after every digit.
_BEHIND_DIGITS = ":"


class ThreadStore:
    """Store for threads and turns. Each call is limited to the partition of one owner."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def ensure_table(self) -> None:
        """Create the table unless it exists."""
        await self._table.ensure()

    async def create(self, thread: Thread, turns: Sequence[ThreadTurn] = ()) -> Thread:
        """Store a new thread with its first turns, at most MAX_TURNS_AT_ONCE.

        Raise ConflictError if the id exists.
        """
        changes = [Change("insert", _thread_row(thread)), Change("insert", _place_row(thread))]
        changes += [Change("insert", _turn_row(thread.owner_id, turn)) for turn in turns]
        try:
            revision, *_ = await self._table.change(changes)
        except NotFoundError:
            # The table doesn't exist yet.
            await self._table.ensure()
            revision, *_ = await self._table.change(changes)
        return thread.model_copy(update={"revision": revision})

    async def get(self, owner_id: str, thread_id: str) -> Thread | None:
        """Return the thread, even if it is being deleted, or None if the owner has no such thread."""
        entity = await self._table.get(_partition(owner_id), f"thread-{thread_id}")
        return None if entity is None else _thread(entity)

    async def replace(self, old: Thread, new: Thread, turn: ThreadTurn | None = None) -> Thread:
        """Replace the stored thread `old` by `new`, and insert or replace a turn in the same transaction. If
        `old` has changed since it was read, nothing is written.

        Raise ConflictError if it changed, NotFoundError if it no longer exists.
        """
        changes = [Change("replace", _thread_row(new), old.revision)]
        if _place_key(old) == _place_key(new) and not new.is_deleted:
            changes.append(Change("replace", _place_row(new)))
        elif not old.is_deleted:
            changes.append(Change("delete", _place_row(old)))
            if not new.is_deleted:
                changes.append(Change("insert", _place_row(new)))
        if turn is not None:
            row = _turn_row(new.owner_id, turn)
            changes.append(Change("replace", row, turn.revision) if turn.revision else Change("insert", row))
        revision, *_ = await self._table.change(changes)
        return new.model_copy(update={"revision": revision})

    async def remove(self, thread: Thread) -> None:
        """Delete the row of a deleted thread. A missing row is ignored."""
        await self._table.delete(_partition(thread.owner_id), f"thread-{thread.thread_id}")

    async def page(self, owner_id: str, limit: int, cursor: str | None = None) -> ThreadPage:
        """Return a page of the owner's threads, most recently used first. Raise CallerError if the cursor is
        invalid.
        """
        after = "place-" if cursor is None else read_cursor(cursor, _PLACE)
        condition = f"{_in(owner_id)} and RowKey gt '{after}' and RowKey lt 'place.'"
        rows = await self._table.first(condition, limit + 1)
        page = rows[:limit]
        return ThreadPage(
            threads=tuple(Thread.from_stored(entity["content"]) for entity in page),
            cursor=write_cursor(page[-1]["RowKey"]) if len(rows) > limit else None,
        )

    async def turn(self, owner_id: str, thread_id: str, number: int) -> ThreadTurn | None:
        """Return the turn of a thread that has this number, or None if there is none."""
        entity = await self._table.get(_partition(owner_id), _turn_key(thread_id, number))
        return None if entity is None else _turn(entity)

    async def turns(
        self, owner_id: str, thread_id: str, limit: int, before: int | None = None
    ) -> list[ThreadTurn]:
        """Return up to `limit` turns of a thread, newest first; if `before` is given, only turns with lower
        numbers.
        """
        after = _turn_key(thread_id, before) if before is not None else f"turn-{thread_id}."
        condition = (
            f"{_in(owner_id)} and RowKey gt '{after}' and RowKey lt 'turn-{thread_id}.{_BEHIND_DIGITS}'"
        )
        return [_turn(entity) for entity in await self._table.first(condition, limit)]

    async def all_turns(self, owner_id: str, limit: int) -> list[ThreadTurn]:
        """Return up to `limit` turns of the owner's threads, in arbitrary order."""
        condition = f"{_in(owner_id)} and RowKey gt 'turn-' and RowKey lt 'turn.'"
        return [_turn(entity) for entity in await self._table.first(condition, limit)]

    async def replace_turn(self, owner_id: str, turn: ThreadTurn) -> ThreadTurn:
        """Replace a turn unless it has changed. Raises the same errors as `replace`."""
        revision = await self._table.replace(_turn_row(owner_id, turn), turn.revision)
        return turn.model_copy(update={"revision": revision})

    async def remove_turn(self, owner_id: str, turn: ThreadTurn) -> None:
        """Delete a turn's row. A missing row is ignored."""
        await self._table.delete(_partition(owner_id), _turn_key(turn.thread_id, turn.number))

    async def unerased(self) -> AsyncIterator[Thread]:
        """Yield the threads of all owners that have turns still to be erased. For maintenance only."""
        async for entity in self._table.query("is_erasing eq true"):
            yield _thread(entity)

    async def forget_before(self, owner_id: str, moment: datetime) -> None:
        """Record that questions asked before `moment` must not be remembered."""
        row = {"PartitionKey": _partition(owner_id), "RowKey": _FORGOTTEN, "moment": moment.isoformat()}
        await self._table.put(row)

    async def forgotten_until(self, owner_id: str) -> datetime | None:
        """Return the latest moment passed to `forget_before` for this owner, or None."""
        entity = await self._table.get(_partition(owner_id), _FORGOTTEN)
        return None if entity is None else datetime.fromisoformat(entity["moment"])

    async def switch_memory(self, owner_id: str, *, is_on: bool) -> None:
        """Record whether the owner's questions are remembered."""
        if is_on:
            await self._table.delete(_partition(owner_id), _MEMORY_OFF)
        else:
            await self._table.put({"PartitionKey": _partition(owner_id), "RowKey": _MEMORY_OFF})

    async def is_memory_on(self, owner_id: str) -> bool:
        """Return whether the owner's questions are remembered; True by default."""
        return await self._table.get(_partition(owner_id), _MEMORY_OFF) is None

    async def of_owner(self, owner_id: str) -> AsyncIterator[Thread]:
        """Yield all threads of the owner, including those being deleted."""
        condition = f"{_in(owner_id)} and RowKey gt 'thread-' and RowKey lt 'thread.'"
        async for entity in self._table.query(condition):
            yield _thread(entity)

    async def remove_owner(self, owner_id: str) -> None:
        """Delete all remaining rows of the owner."""
        await self._table.delete_found(_in(owner_id), _EVERY)


def _partition(owner_id: str) -> str:
    """Return the partition key of an owner. It is a digest, because user ids are personal data and may
    contain invalid characters.
    """
    return hashlib.sha256(owner_id.encode()).hexdigest()


def _in(owner_id: str) -> str:
    return f"PartitionKey eq '{_partition(owner_id)}'"


def _place_key(thread: Thread) -> str:
    microsecond = int((thread.updated_at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
    return f"place-{_LAST_MICROSECOND - microsecond:017d}-{thread.thread_id}"


def _turn_key(thread_id: str, number: int) -> str:
    # Separate the parts with a dot, which ids can't contain: one id may be a prefix of another.
    return f"turn-{thread_id}.{_LAST_NUMBER - number:08d}"


def _thread_row(thread: Thread) -> Entity:
    return {
        "PartitionKey": _partition(thread.owner_id),
        "RowKey": f"thread-{thread.thread_id}",
        "content": _json(thread),
        "is_erasing": thread.is_deleted or thread.erased_count < thread.cleared_count,
    }


def _place_row(thread: Thread) -> Entity:
    key = _place_key(thread)
    return {"PartitionKey": _partition(thread.owner_id), "RowKey": key, "content": _json(thread)}


def _turn_row(owner_id: str, turn: ThreadTurn) -> Entity:
    return {
        "PartitionKey": _partition(owner_id),
        "RowKey": _turn_key(turn.thread_id, turn.number),
        "content": _json(turn),
    }


def _json(value: Thread | ThreadTurn) -> str:
    return value.model_dump_json(exclude={"revision"})


def _thread(entity: Mapping[str, Any]) -> Thread:
    return Thread.from_stored(entity["content"]).model_copy(update={"revision": revision_of(entity)})


def _turn(entity: Mapping[str, Any]) -> ThreadTurn:
    return ThreadTurn.from_stored(entity["content"]).model_copy(update={"revision": revision_of(entity)})
