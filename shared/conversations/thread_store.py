"""Threads and turns in a table: one partition per person, so that no query can reach another person's rows.

Three kinds of rows, distinguished by their keys: the thread, its place in the list of threads (the latest
first, so the key counts down), and its turns (the newest first). What belongs together is changed together:
the service changes rows of one partition all or none.
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

_LAST_MICROSECOND = 10**17  # keys count down from here: the year 5138
_LAST_NUMBER = 10**8
_PLACE = re.compile(r"place-[0-9]{17}-[A-Za-z0-9_-]{1,64}")
_FORGOTTEN = "forgotten"
_MEMORY_OFF = "memory-off"
MAX_TURNS_AT_ONCE = 25  # at most 37 KB each on the wire: one step stays below 1 MB
_EVERY = 1_000_000_000  # rows of one deletion: all there are
_BEHIND_DIGITS = ":"  # sorts behind every digit


class ThreadStore:
    """Threads and their turns. Each call is about one owner, and can reach nobody else's."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def ensure_table(self) -> None:
        """Create the table, unless it exists."""
        await self._table.ensure()

    async def create(self, thread: Thread, turns: Sequence[ThreadTurn] = ()) -> Thread:
        """Store a new thread with its first turns, at most MAX_TURNS_AT_ONCE.

        ConflictError when the id exists.
        """
        changes = [Change("insert", _thread_row(thread)), Change("insert", _place_row(thread))]
        changes += [Change("insert", _turn_row(thread.owner_id, turn)) for turn in turns]
        try:
            revision, *_ = await self._table.change(changes)
        except NotFoundError:  # there is no table yet
            await self._table.ensure()
            revision, *_ = await self._table.change(changes)
        return thread.model_copy(update={"revision": revision})

    async def get(self, owner_id: str, thread_id: str) -> Thread | None:
        """The thread, also one that is being deleted; None if the owner has none of this id."""
        entity = await self._table.get(_partition(owner_id), f"thread-{thread_id}")
        return None if entity is None else _thread(entity)

    async def replace(self, old: Thread, new: Thread, turn: ThreadTurn | None = None) -> Thread:
        """Overwrite, if it is still as `old` was read; add or replace a turn in the same step.

        ConflictError when it changed, NotFoundError when it is gone.
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
        """Take away the row of a deleted thread; an absent one is no error."""
        await self._table.delete(_partition(thread.owner_id), f"thread-{thread.thread_id}")

    async def page(self, owner_id: str, limit: int, cursor: str | None = None) -> ThreadPage:
        """The owner's threads, the one that was last asked in first. CallerError for a strange cursor."""
        after = "place-" if cursor is None else read_cursor(cursor, _PLACE)
        condition = f"{_in(owner_id)} and RowKey gt '{after}' and RowKey lt 'place.'"
        found = await self._table.first(condition, limit + 1)
        shown = found[:limit]
        return ThreadPage(
            threads=tuple(Thread.from_stored(entity["content"]) for entity in shown),
            cursor=write_cursor(shown[-1]["RowKey"]) if len(found) > limit else None,
        )

    async def turn(self, owner_id: str, thread_id: str, number: int) -> ThreadTurn | None:
        """One turn."""
        entity = await self._table.get(_partition(owner_id), _turn_key(thread_id, number))
        return None if entity is None else _turn(entity)

    async def turns(
        self, owner_id: str, thread_id: str, limit: int, before: int | None = None
    ) -> list[ThreadTurn]:
        """The newest turns, or the newest before a number; newest first."""
        after = _turn_key(thread_id, before) if before is not None else f"turn-{thread_id}."
        condition = (
            f"{_in(owner_id)} and RowKey gt '{after}' and RowKey lt 'turn-{thread_id}.{_BEHIND_DIGITS}'"
        )
        return [_turn(entity) for entity in await self._table.first(condition, limit)]

    async def all_turns(self, owner_id: str, limit: int) -> list[ThreadTurn]:
        """Turns of all the owner's threads, in no order that means anything; at most `limit`."""
        condition = f"{_in(owner_id)} and RowKey gt 'turn-' and RowKey lt 'turn.'"
        return [_turn(entity) for entity in await self._table.first(condition, limit)]

    async def replace_turn(self, owner_id: str, turn: ThreadTurn) -> ThreadTurn:
        """Overwrite, if it is still as it was read; errors as `replace`."""
        revision = await self._table.replace(_turn_row(owner_id, turn), turn.revision)
        return turn.model_copy(update={"revision": revision})

    async def remove_turn(self, owner_id: str, turn: ThreadTurn) -> None:
        """Take a turn's row away; an absent one is no error."""
        await self._table.delete(_partition(owner_id), _turn_key(turn.thread_id, turn.number))

    async def unerased(self) -> AsyncIterator[Thread]:
        """Threads of everybody of which something is still to be erased. For maintenance alone."""
        async for entity in self._table.query("is_erasing eq true"):
            yield _thread(entity)

    async def forget_before(self, owner_id: str, moment: datetime) -> None:
        """Note that turns asked until `moment` are not to be remembered."""
        row = {"PartitionKey": _partition(owner_id), "RowKey": _FORGOTTEN, "moment": moment.isoformat()}
        await self._table.put(row)

    async def forgotten_until(self, owner_id: str) -> datetime | None:
        """The moment that `forget_before` noted last."""
        entity = await self._table.get(_partition(owner_id), _FORGOTTEN)
        return None if entity is None else datetime.fromisoformat(entity["moment"])

    async def switch_memory(self, owner_id: str, *, is_on: bool) -> None:
        """Note whether the owner wants to be remembered."""
        if is_on:
            await self._table.delete(_partition(owner_id), _MEMORY_OFF)
        else:
            await self._table.put({"PartitionKey": _partition(owner_id), "RowKey": _MEMORY_OFF})

    async def is_memory_on(self, owner_id: str) -> bool:
        """Whether the owner is remembered: yes, until they switch it off."""
        return await self._table.get(_partition(owner_id), _MEMORY_OFF) is None

    async def of_owner(self, owner_id: str) -> AsyncIterator[Thread]:
        """Every thread of the owner, also those that are being deleted."""
        condition = f"{_in(owner_id)} and RowKey gt 'thread-' and RowKey lt 'thread.'"
        async for entity in self._table.query(condition):
            yield _thread(entity)

    async def remove_owner(self, owner_id: str) -> None:
        """Take away every row of the owner that is left."""
        await self._table.delete_found(_in(owner_id), _EVERY)


def _partition(owner_id: str) -> str:
    """Ids of identity providers may hold what no key can; a digest holds nothing of a person either."""
    return hashlib.sha256(owner_id.encode()).hexdigest()


def _in(owner_id: str) -> str:
    return f"PartitionKey eq '{_partition(owner_id)}'"


def _place_key(thread: Thread) -> str:
    microsecond = int((thread.updated_at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
    return f"place-{_LAST_MICROSECOND - microsecond:017d}-{thread.thread_id}"


def _turn_key(thread_id: str, number: int) -> str:
    # A dot, which no id can hold: an id may be another one's beginning.
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
