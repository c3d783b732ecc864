"""Storage of limits and usage per person: one table row each, shared by all instances of the app.

A process combines the changes of all waiting calls into one write, so a few writes suffice for 200 concurrent
calls of one person, and none is admitted merely because it waited too long.
"""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from weakref import WeakSet

from pydantic import ValidationError

from shared.access.daily_use import Usage
from shared.platform.errors import ConflictError, DependencyError, TooManyRequestsError
from shared.platform.hashing import digest
from shared.platform.models import Model
from shared.platform.names import USER_LIMITS_TABLE
from shared.platform.settings_groups.access import LimitSettings
from shared.platform.tables import Table, revision_of


class Slot(Model):
    """A concurrency slot of an active run or summary. It expires at `until` if it isn't released."""

    work_id: str
    until: datetime


class UserLimits(Model):
    """The stored limits and usage of one person.

    Attributes:
        whole_at: when the full rate allowance is restored; None = it is full.
        used: usage on the UTC day `used_on`.
        revision: changes with every write; None before the first.
    """

    whole_at: datetime | None = None
    slots: tuple[Slot, ...] = ()
    used_on: date | None = None
    used: Usage = Usage()
    revision: str | None = None


Decide = Callable[[UserLimits], UserLimits]
"""Returns the changed limits, or raises TooManyRequestsError. It may be called several times per change."""


# Time limit of one write with its retries. A call that waited longer is admitted.
LIMIT_S = 2.0
# Attempts at a write, enough for as many instances that write for the same person at once.
_MAX_TRIES = 12
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
# Number of people cached per process, a few hundred bytes each.
_REMEMBERED = 1000
_ROW_KEY = "limits"
_STREAM_WAIT_S = 5.0


@dataclass(eq=False)
class _Change:
    """A requested change of a person's row, with its outcome once it has been applied."""

    decide: Decide
    outcome: UserLimits | Exception | None = None


@dataclass(eq=False)
class _Row:
    """The cached row of a person, and the changes waiting to be written."""

    state: UserLimits | None = None
    waiting: list[_Change] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class OpenStream:
    """An open stream, which counts towards the person's limit until it is closed or garbage-collected."""

    def __init__(self, streams: WeakSet[OpenStream]) -> None:
        self._streams = streams
        streams.add(self)

    def close(self) -> None:
        """Remove the stream from the person's open streams. Repeated calls are ignored."""
        self._streams.discard(self)


class OpenStreams:
    """The open streams of this process, by person."""

    def __init__(self) -> None:
        self._streams: dict[str, WeakSet[OpenStream]] = {}

    def open(self, user_id: str, rules: LimitSettings) -> OpenStream:
        """Count a new stream of this person.

        Raises:
            TooManyRequestsError: the person has too many open streams.
        """
        self._streams = {one: streams for one, streams in self._streams.items() if streams}
        mine = self._streams.setdefault(user_id, WeakSet())
        if rules.max_open_streams and len(mine) >= rules.max_open_streams:
            raise TooManyRequestsError(
                f"You have reached the limit of open streams ({len(mine)}).",
                "Close some of the open streams.",
                retry_after_s=_STREAM_WAIT_S,
            )
        return OpenStream(mine)


class UserLimitStore:
    """Store of limits and usage, with one row per person and the etag as revision.

    The table stores only a digest of the user id. `streams` and the cache belong to this process.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows: OrderedDict[str, _Row] = OrderedDict()
        self.streams = OpenStreams()

    def cached_limits(self, user_id: str) -> UserLimits | None:
        """Return a person's limits as this process last wrote them, or None. They may be stale."""
        return self._rows[user_id].state if user_id in self._rows else None

    async def change(self, user_id: str, decide: Decide) -> UserLimits:
        """Apply `decide` to a person's limits, store the result and return it. Concurrent changes of one
        person are written together.

        Raises:
            TooManyRequestsError: raised by `decide`.
            GroundworkError, TimeoutError: the store failed or was slow.
        """
        row = self._rows.setdefault(user_id, _Row())
        self._rows.move_to_end(user_id)
        while len(self._rows) > _REMEMBERED:
            self._rows.popitem(last=False)
        change = _Change(decide)
        row.waiting.append(change)
        try:
            async with row.lock:
                if change.outcome is None:  # otherwise, the previous writer applied this change as well
                    await self._apply_waiting(user_id, row)
        finally:
            if change in row.waiting:  # the caller was cancelled, so the change must not be applied
                row.waiting.remove(change)
        if isinstance(change.outcome, UserLimits):
            return change.outcome
        raise change.outcome or ConflictError("The process is shutting down.")

    async def read(self, user_id: str) -> UserLimits:
        """Return a person's limits; empty limits without a revision if none are stored.

        Raises:
            DependencyError: the row can't be read.
        """
        entity = await self._table.get(digest(user_id), _ROW_KEY)
        if entity is None:
            return UserLimits()
        try:
            state = UserLimits.from_stored(str(entity["state"]))
        except (KeyError, ValidationError):
            raise DependencyError(
                "The record of a person's limits cannot be read.",
                f"Delete the row of the table {USER_LIMITS_TABLE}; it will be recreated.",
            ) from None
        return state.model_copy(update={"revision": revision_of(entity)})

    async def write(self, user_id: str, state: UserLimits) -> UserLimits:
        """Store a person's limits. Raise ConflictError if they have changed since `state.revision` was
        read.
        """
        content = state.model_dump_json(exclude={"revision"})
        entity = {"PartitionKey": digest(user_id), "RowKey": _ROW_KEY, "state": content}
        revision = await self._table.swap(entity, state.revision)
        return state.model_copy(update={"revision": revision})

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Delete up to `most` rows last written before `moment`. Return the number of deleted rows."""
        return await self._table.delete_before("Timestamp", moment, most)

    async def forget(self, user_id: str) -> int:
        """Delete a person's row. Return the number of deleted rows."""
        self._rows.pop(user_id, None)
        return await self._table.delete_found(f"PartitionKey eq '{digest(user_id)}'", 1)

    async def _apply_waiting(self, user_id: str, row: _Row) -> None:
        """Apply all waiting changes of a person in one write and set their outcomes."""
        changes = list(row.waiting)
        try:
            async with asyncio.timeout(LIMIT_S):
                outcomes = await self._write_changes(user_id, row, changes)
        except Exception as failed:  # noqa: BLE001  # each caller raises it
            outcomes = [failed] * len(changes)
        for change, outcome in zip(changes, outcomes, strict=True):
            change.outcome = outcome
        row.waiting = [change for change in row.waiting if change.outcome is None]

    async def _write_changes(
        self, user_id: str, row: _Row, changes: Sequence[_Change]
    ) -> list[UserLimits | Exception]:
        for tries in range(_MAX_TRIES):
            state, row.state = row.state, None
            outcomes = _apply_in_order(changes, state) if state is not None else []
            # A refusal or a no-op must be decided on the stored row, because the cached row may be stale.
            if state is None or not _all_changed(state, outcomes):
                state = await self.read(user_id)
                outcomes = _apply_in_order(changes, state)
            stored = [outcome for outcome in outcomes if isinstance(outcome, UserLimits)]
            final = stored[-1] if stored else state
            try:
                row.state = final if final == state else await self.write(user_id, final)
            except ConflictError:
                await asyncio.sleep(random.uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0**tries)))
            else:
                return outcomes
        raise ConflictError("Too many concurrent calls by one person.", "Try again in a moment.")


def _apply_in_order(changes: Sequence[_Change], state: UserLimits) -> list[UserLimits | Exception]:
    """Apply changes one after another. Return the resulting limits or the error of each."""
    outcomes: list[UserLimits | Exception] = []
    for change in changes:
        try:
            state = change.decide(state)
        except TooManyRequestsError as refused:
            outcomes.append(refused)
        else:
            outcomes.append(state)
    return outcomes


def _all_changed(state: UserLimits, outcomes: Sequence[UserLimits | Exception]) -> bool:
    return all(
        not isinstance(outcome, Exception) and outcome != before
        for before, outcome in zip((state, *outcomes), outcomes, strict=False)
    )
