"""What one person may use up: rules, one row per person that all instances share, and its table.

When the store fails or is slow, callers are let in: the limits keep people from harming each other, they
guard nothing (decision 18). What only gives back never raises: a slot that is not given back expires.
"""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

import asyncio
import math
import random
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from shared.access.models import UserContext
from shared.platform.concurrency import run_in_background
from shared.platform.errors import (
    ConflictError,
    DependencyError,
    GroundworkError,
    NotFoundError,
    TooManyRequestsError,
    TooManyRunsError,
)
from shared.platform.hashing import digest
from shared.platform.models import Model
from shared.platform.names import USER_LIMITS_TABLE
from shared.platform.settings import Settings
from shared.platform.tables import Table, revision_of
from shared.platform.telemetry import get_logger


class Slot(Model):
    """Work of theirs that is going on: a run or a summary. After `until` it no longer counts."""

    work_id: str
    until: datetime


class UserLimits(Model):
    """The one row that all instances share about a person.

    Attributes:
        whole_at: when their allowance of calls is whole again; None = it is.
        revision: changes with every write; None before the first.
    """

    whole_at: datetime | None = None
    slots: tuple[Slot, ...] = ()
    revision: str | None = None


class LimitRules(Model):
    """How much it may be. 0 = without limit."""

    calls_per_minute: int
    concurrent_runs: int


class Allowance(Model):
    """What callers are told of their calls.

    Attributes:
        limit: calls in a minute.
        remaining: calls that could be made at once.
        reset_s: whole seconds until the allowance is whole again.
    """

    limit: int
    remaining: int
    reset_s: int


_WINDOW = timedelta(minutes=1)
_ROUNDING = timedelta(milliseconds=1)  # 60 s in sevenths are some microseconds more than 60 s


def charged(state: UserLimits, calls: int, rules: LimitRules, now: datetime) -> UserLimits | None:
    """The state with so many more calls counted; None = they may not be made now.

    More calls than the limit count as the limit: they could never be made otherwise.
    """
    if not rules.calls_per_minute:
        return state
    whole_at = _begin(state, now) + _worth(calls, rules)
    if whole_at - now > _WINDOW + _ROUNDING:
        return None
    return state.model_copy(update={"whole_at": whole_at})


def wait_s(state: UserLimits, calls: int, rules: LimitRules, now: datetime) -> float:
    """After how many seconds so many calls may be made; 0 = now."""
    if not rules.calls_per_minute:
        return 0.0
    left = _begin(state, now) + _worth(calls, rules) - now - _WINDOW
    return max(0.0, left.total_seconds())


def allowance(state: UserLimits, rules: LimitRules, now: datetime) -> Allowance | None:
    """What is left; None where calls are not limited."""
    if not rules.calls_per_minute:
        return None
    used = _begin(state, now) - now
    free = (_WINDOW - used + _ROUNDING) / _worth(1, rules)
    return Allowance(
        limit=rules.calls_per_minute,
        remaining=max(0, min(rules.calls_per_minute, math.floor(free))),
        reset_s=math.ceil(used.total_seconds()),
    )


def limit_headers(left: Allowance | None) -> dict[str, str]:
    """What callers are told of their calls, as headers. Source: draft-ietf-httpapi-ratelimit-headers-06."""
    if left is None:
        return {}
    return {
        "RateLimit-Limit": str(left.limit),
        "RateLimit-Remaining": str(left.remaining),
        "RateLimit-Reset": str(left.reset_s),
    }


def occupied(state: UserLimits, slot: Slot, rules: LimitRules, now: datetime) -> UserLimits | None:
    """The state with a slot taken; None = all are. Work that has one keeps it."""
    held = _alive(state.slots, now)
    if any(other.work_id == slot.work_id for other in held):
        return state
    if rules.concurrent_runs and len(held) >= rules.concurrent_runs:
        return None
    return state.model_copy(update={"slots": (*held, slot)})


def held_anyway(state: UserLimits, slot: Slot, now: datetime) -> UserLimits:
    """The state with a slot taken even if none is left: for work that was let in before, and goes on."""
    others = tuple(other for other in _alive(state.slots, now) if other.work_id != slot.work_id)
    return state.model_copy(update={"slots": (*others, slot)})


def released(state: UserLimits, work_id: str) -> UserLimits:
    """The state with the work's slot free; unchanged when it has none."""
    slots = tuple(slot for slot in state.slots if slot.work_id != work_id)
    return state if slots == state.slots else state.model_copy(update={"slots": slots})


def _begin(state: UserLimits, now: datetime) -> datetime:
    return max(now, state.whole_at or now)


def _worth(calls: int, rules: LimitRules) -> timedelta:
    return _WINDOW * (min(calls, rules.calls_per_minute) / rules.calls_per_minute)


def _alive(slots: Iterable[Slot], now: datetime) -> tuple[Slot, ...]:
    return tuple(slot for slot in slots if now < slot.until)


class UserLimitStore(Protocol):
    """What each person has used up."""

    async def read(self, user_id: str) -> UserLimits:
        """Their row; an empty one without revision when there is none yet.

        Raises:
            DependencyError: the row cannot be read.
        """

    async def write(self, user_id: str, state: UserLimits) -> UserLimits:
        """The row as stored. ConflictError if it changed, or went, since `state.revision` was read."""

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove rows not written since `moment`, at most `most`; returns how many."""

    async def forget(self, user_id: str) -> int:
        """Remove a person's row; returns how many there were."""


LIMIT_S = 2.0  # of one write with all its tries: rather let in than kept waiting
_MAX_TRIES = 12  # as many instances that write for one person at the same moment; see subagents/control.py
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
_REMEMBERED = 1000  # people of one process, a few hundred bytes each
Decide = Callable[[UserLimits], UserLimits]
"""The row as it is to be, or TooManyRequestsError."""

Outcome = UserLimits | TooManyRequestsError


@dataclass(frozen=True)
class _Waiting:
    decide: Decide
    outcome: asyncio.Future[UserLimits]


class _Rows:
    """What this process knows of one store's rows, and who waits for which."""

    def __init__(self) -> None:
        self.remembered: OrderedDict[str, UserLimits] = OrderedDict()
        self.waiting: dict[str, list[_Waiting]] = {}


_known: WeakKeyDictionary[UserLimitStore, _Rows] = WeakKeyDictionary()


async def changed(user_id: str, store: UserLimitStore, decide: Decide) -> UserLimits:
    """The row as `decide` makes it of what is stored.

    Raises:
        TooManyRequestsError: `decide` raised it.
        GroundworkError, TimeoutError: the store failed, or was slow.
    """
    rows = _known.setdefault(store, _Rows())
    waiting = _Waiting(decide, asyncio.get_running_loop().create_future())
    if user_id in rows.waiting:
        rows.waiting[user_id].append(waiting)
    else:
        rows.waiting[user_id] = [waiting]
        run_in_background(_work(user_id, store, rows))
    return await waiting.outcome


def would_change(user_id: str, store: UserLimitStore, decide: Decide) -> bool:
    """Whether what is remembered of the row makes for a change, and no refusal."""
    rows = _known.get(store)
    state = rows.remembered.get(user_id) if rows is not None else None
    if state is None:
        return False
    outcomes, _ = _applied([decide], state)
    return _is_believed(outcomes, state)


async def _work(user_id: str, store: UserLimitStore, rows: _Rows) -> None:
    """Make the changes of all who wait, until nobody does."""
    batch: list[_Waiting] = []
    try:
        while batch := rows.waiting[user_id]:
            rows.waiting[user_id] = []
            try:
                async with asyncio.timeout(LIMIT_S):
                    outcomes = await _swapped(user_id, store, rows, [one.decide for one in batch])
            except Exception as failed:  # noqa: BLE001  # whoever asked raises it
                _tell(batch, [failed] * len(batch))
            else:
                _tell(batch, outcomes)
    finally:
        # Without an end here whoever waits would wait for ever.
        left = [*batch, *rows.waiting.pop(user_id)]
        _tell(left, [ConflictError("The process ends.")] * len(left))


def _tell(batch: Sequence[_Waiting], outcomes: Sequence[UserLimits | Exception]) -> None:
    for one, outcome in zip(batch, outcomes, strict=True):
        if one.outcome.done():
            continue  # its caller has gone
        if isinstance(outcome, UserLimits):
            one.outcome.set_result(outcome)
        else:
            one.outcome.set_exception(outcome)


async def _swapped(
    user_id: str, store: UserLimitStore, rows: _Rows, decisions: Sequence[Decide]
) -> list[Outcome]:
    for tries in range(_MAX_TRIES):
        state = rows.remembered.pop(user_id, None)
        outcomes, final = _applied(decisions, state or UserLimits())
        if state is None or not _is_believed(outcomes, state):
            state = await store.read(user_id)
            outcomes, final = _applied(decisions, state)
        try:
            written = final if final == state else await store.write(user_id, final)
        except ConflictError:
            await asyncio.sleep(random.uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0**tries)))
        else:
            _remember(rows.remembered, user_id, written)
            return outcomes
    raise ConflictError("Too many calls of one person at the same time.", "Try again in a moment.")


def _applied(decisions: Sequence[Decide], state: UserLimits) -> tuple[list[Outcome], UserLimits]:
    """What each decision makes of the row as the ones before it left it, and the row in the end."""
    outcomes: list[Outcome] = []
    for decide in decisions:
        try:
            state = decide(state)
        except TooManyRequestsError as refused:
            outcomes.append(refused)
        else:
            outcomes.append(state)
    return outcomes, state


def _is_believed(outcomes: Sequence[Outcome], state: UserLimits) -> bool:
    before: Outcome = state
    for outcome in outcomes:
        if isinstance(outcome, TooManyRequestsError) or outcome == before:
            return False
        before = outcome
    return True


def _remember(remembered: OrderedDict[str, UserLimits], user_id: str, state: UserLimits) -> None:
    remembered[user_id] = state
    while len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)


_SOON_S = 5.0  # until one of some runs has ended: a typical answer takes less than 10 s

# Behind a run's deadline: a host that was killed and started anew goes on with it then.
_GRACE = timedelta(seconds=60)


def limit_rules(settings: Settings) -> LimitRules:
    """The limits, as this deployment sets them."""
    return LimitRules(
        calls_per_minute=settings.limits.rate_limit_per_minute,
        concurrent_runs=settings.limits.max_concurrent_runs,
    )


def slot_of_run(run_id: str, settings: Settings) -> Slot:
    """The slot of a run that begins, or goes on, now."""
    until = datetime.now(UTC) + timedelta(milliseconds=settings.budgets.max_total_latency_ms) + _GRACE
    return Slot(work_id=run_id, until=until)


def slot_of_summary(summary_id: str, settings: Settings) -> Slot:
    """The slot of a summary that begins now."""
    until = datetime.now(UTC) + timedelta(seconds=settings.summaries.timeout_s) + _GRACE
    return Slot(work_id=summary_id, until=until)


async def admit(
    user: UserContext,
    settings: Settings,
    user_limits: UserLimitStore,
    *,
    calls: int = 1,
    slot: Slot | None = None,
) -> Allowance | None:
    """Count a call, and take a slot for the work that it begins; what is left then. None = no limit on calls.

    Asking again for the same work takes no second slot.

    Args:
        calls: how many the call counts for.

    Raises:
        TooManyRequestsError: it has to wait; says how long.
        TooManyRunsError: too much is at work for them already.
    """
    rules = limit_rules(settings)
    if not rules.calls_per_minute and not (slot and rules.concurrent_runs):
        return None
    now = datetime.now(UTC)

    def decide(state: UserLimits) -> UserLimits:
        return _admitted(state, calls, slot, rules, now)

    try:
        return allowance(await changed(user.user_id, user_limits, decide), rules, now)
    except TooManyRequestsError:
        raise
    except (GroundworkError, TimeoutError) as failed:
        _log_failure("admit", failed)
        return None


def is_expected(user: UserContext, settings: Settings, user_limits: UserLimitStore, slot: Slot) -> bool:
    """Whether `admit` will let in a call that begins this work, for all that this process remembers."""
    rules, now = limit_rules(settings), datetime.now(UTC)
    return would_change(user.user_id, user_limits, lambda state: _admitted(state, 1, slot, rules, now))


async def release(user_id: str, work_id: str, settings: Settings, user_limits: UserLimitStore) -> None:
    """Give the slot of work back that has ended, or waits. Never raises."""
    await _booked(user_id, settings, user_limits, lambda state: released(state, work_id), "release")


async def hold(user_id: str, slot: Slot, settings: Settings, user_limits: UserLimitStore) -> None:
    """Take a slot, even if there is none left, for work that goes on. Never raises."""
    await _booked(
        user_id, settings, user_limits, lambda state: held_anyway(state, slot, datetime.now(UTC)), "hold"
    )


def _admitted(
    state: UserLimits, calls: int, slot: Slot | None, rules: LimitRules, now: datetime
) -> UserLimits:
    counted = charged(state, calls, rules, now)
    if counted is None:
        raise TooManyRequestsError(
            f"More than {rules.calls_per_minute} calls in a minute.",
            "Wait as long as Retry-After says, then send it again.",
            retry_after_s=wait_s(state, calls, rules, now),
            headers=limit_headers(allowance(state, rules, now)),
        )
    if slot is None or not rules.concurrent_runs:
        return counted
    taken = occupied(counted, slot, rules, now)
    if taken is None:
        raise TooManyRunsError(
            f"{rules.concurrent_runs} questions or summaries of yours are being worked on.",
            "Wait until one of them has ended, or cancel one.",
            retry_after_s=_SOON_S,
            headers=limit_headers(allowance(state, rules, now)),
        )
    return taken


async def _booked(
    user_id: str, settings: Settings, user_limits: UserLimitStore, decide: Decide, action: str
) -> None:
    if not settings.limits.max_concurrent_runs:
        return
    try:
        await changed(user_id, user_limits, decide)
    except (GroundworkError, TimeoutError) as failed:
        _log_failure(action, failed)


def _log_failure(action: str, failed: Exception) -> None:
    code = failed.code if isinstance(failed, GroundworkError) else type(failed).__name__
    get_logger().warning("user_limits.failed", action=action, error_type=code, table=USER_LIMITS_TABLE)


_ROW_KEY = "limits"


class TableUserLimitStore(UserLimitStore):
    """A table with one row per person, whose etag is the revision. Of the user id it keeps a digest only."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def read(self, user_id: str) -> UserLimits:
        entity = await self._table.get(digest(user_id), _ROW_KEY)
        if entity is None:
            return UserLimits()
        try:
            state = UserLimits.from_stored(str(entity["state"]))
        except (KeyError, ValidationError):
            raise DependencyError(
                "The record of a person's limits cannot be read.",
                f"Delete the row of the table {USER_LIMITS_TABLE}: a new one is made.",
            ) from None
        return state.model_copy(update={"revision": revision_of(entity)})

    async def write(self, user_id: str, state: UserLimits) -> UserLimits:
        content = state.model_dump_json(exclude={"revision"})
        entity = {"PartitionKey": digest(user_id), "RowKey": _ROW_KEY, "state": content}
        try:
            if state.revision is None:
                revision = await self._table.insert(entity)
            else:
                revision = await self._table.replace(entity, state.revision)
        except NotFoundError:
            raise ConflictError("The record of a person's limits is gone.") from None
        return state.model_copy(update={"revision": revision})

    async def delete_before(self, moment: datetime, most: int) -> int:
        return await self._table.delete_before("Timestamp", moment, most)

    async def forget(self, user_id: str) -> int:
        return await self._table.delete_found(f"PartitionKey eq '{digest(user_id)}'", 1)
