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
from datetime import UTC, date, datetime, timedelta
from functools import partial
from weakref import WeakSet

from pydantic import ValidationError

from shared.access.daily_use import (
    ASKING,
    Resource,
    Usage,
    UsageView,
    limit_of,
    require_left,
    usage_views,
)
from shared.access.models import UserContext
from shared.platform.concurrency import run_in_background
from shared.platform.errors import (
    ConflictError,
    DependencyError,
    GroundworkError,
    TooManyRequestsError,
    TooManyRunsError,
)
from shared.platform.hashing import digest
from shared.platform.models import Model
from shared.platform.names import USER_LIMITS_TABLE
from shared.platform.settings import LimitSettings, Settings
from shared.platform.tables import Table, revision_of
from shared.platform.telemetry import get_logger
from shared.platform.tracing import error_type_of


class Slot(Model):
    """Work of theirs that is going on: a run or a summary. After `until` it no longer counts."""

    work_id: str
    until: datetime


class UserLimits(Model):
    """The one row that all instances share about a person.

    Attributes:
        whole_at: when their allowance of calls is whole again; None = it is.
        used: on the day (UTC) `used_on`.
        revision: changes with every write; None before the first.
    """

    whole_at: datetime | None = None
    slots: tuple[Slot, ...] = ()
    used_on: date | None = None
    used: Usage = Usage()
    revision: str | None = None


class Allowance(Model):
    """What callers learn about their limits.

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


def charged(state: UserLimits, calls: int, rules: LimitSettings, now: datetime) -> UserLimits | None:
    """The state with so many more calls counted; None = they may not be made now.

    More calls than the limit count as the limit: they could never be made otherwise.
    """
    if not rules.rate_limit_per_minute:
        return state
    whole_at = _begin(state, now) + _worth(calls, rules)
    if whole_at - now > _WINDOW + _ROUNDING:
        return None
    return state.model_copy(update={"whole_at": whole_at})


def wait_s(state: UserLimits, calls: int, rules: LimitSettings, now: datetime) -> float:
    """After how many seconds so many calls may be made; 0 = now."""
    if not rules.rate_limit_per_minute:
        return 0.0
    left = _begin(state, now) + _worth(calls, rules) - now - _WINDOW
    return max(0.0, left.total_seconds())


def allowance(state: UserLimits, rules: LimitSettings, now: datetime) -> Allowance | None:
    """What is left; None where calls are not limited."""
    if not rules.rate_limit_per_minute:
        return None
    used = _begin(state, now) - now
    free = (_WINDOW - used + _ROUNDING) / _worth(1, rules)
    return Allowance(
        limit=rules.rate_limit_per_minute,
        remaining=max(0, min(rules.rate_limit_per_minute, math.floor(free))),
        reset_s=math.ceil(used.total_seconds()),
    )


def limit_headers(left: Allowance | None) -> dict[str, str]:
    """What callers learn about their limits, as headers. Source: draft-ietf-httpapi-ratelimit-headers-06."""
    if left is None:
        return {}
    return {
        "RateLimit-Limit": str(left.limit),
        "RateLimit-Remaining": str(left.remaining),
        "RateLimit-Reset": str(left.reset_s),
    }


def occupied(state: UserLimits, slot: Slot, rules: LimitSettings, now: datetime) -> UserLimits | None:
    """The state with a slot taken; None = all are. Work that has one keeps it."""
    held = _alive(state.slots, now)
    if any(other.work_id == slot.work_id for other in held):
        return state
    if rules.max_concurrent_runs and len(held) >= rules.max_concurrent_runs:
        return None
    return state.model_copy(update={"slots": (*held, slot)})


def held_anyway(state: UserLimits, slot: Slot, now: datetime) -> UserLimits:
    """The state with a slot taken even if none is left: for work that was let in before, and goes on."""
    others = tuple(other for other in _alive(state.slots, now) if other.work_id != slot.work_id)
    return state.model_copy(update={"slots": (*others, slot)})


def released(state: UserLimits, work_id: str, used: Usage, now: datetime) -> UserLimits:
    """The state with the work's slot free, and what it used counted; unchanged when it has none."""
    slots = tuple(slot for slot in state.slots if slot.work_id != work_id)
    return state if slots == state.slots else with_use(state.model_copy(update={"slots": slots}), used, now)


def used_today(state: UserLimits, now: datetime) -> Usage:
    """What they have used up since midnight (UTC)."""
    return state.used if state.used_on == now.date() else Usage()


def with_use(state: UserLimits, used: Usage, now: datetime) -> UserLimits:
    """The state with more use counted."""
    if used == Usage():
        return state
    return state.model_copy(update={"used_on": now.date(), "used": used_today(state, now).plus(used)})


def _begin(state: UserLimits, now: datetime) -> datetime:
    return max(now, state.whole_at or now)


def _worth(calls: int, rules: LimitSettings) -> timedelta:
    return _WINDOW * (min(calls, rules.rate_limit_per_minute) / rules.rate_limit_per_minute)


def _alive(slots: Iterable[Slot], now: datetime) -> tuple[Slot, ...]:
    return tuple(slot for slot in slots if now < slot.until)


Decide = Callable[[UserLimits], UserLimits]
"""The row as it is to be, or TooManyRequestsError."""


@dataclass(frozen=True)
class _Waiting:
    decide: Decide
    outcome: asyncio.Future[UserLimits]


class RecentRows:
    """What this process knows of one store's rows, and who waits for which."""

    def __init__(self) -> None:
        self.remembered: OrderedDict[str, UserLimits] = OrderedDict()
        self.waiting: dict[str, list[_Waiting]] = {}


LIMIT_S = 2.0  # of one write with all its tries: rather let in than kept waiting
_MAX_TRIES = 12  # as many instances that write for one person at the same moment; see subagents/control.py
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
_REMEMBERED = 1000  # people of one process, a few hundred bytes each
Outcome = UserLimits | TooManyRequestsError


async def changed(user_id: str, store: UserLimitStore, decide: Decide) -> UserLimits:
    """The row as `decide` makes it of what is stored.

    Raises:
        TooManyRequestsError: `decide` raised it.
        GroundworkError, TimeoutError: the store failed, or was slow.
    """
    rows = store.recent
    waiting = _Waiting(decide, asyncio.get_running_loop().create_future())
    if user_id in rows.waiting:
        rows.waiting[user_id].append(waiting)
    else:
        rows.waiting[user_id] = [waiting]
        run_in_background(_work(user_id, store))
    return await waiting.outcome


def would_change(user_id: str, store: UserLimitStore, decide: Decide) -> bool:
    """Whether what is remembered of the row makes for a change, and no refusal."""
    state = store.recent.remembered.get(user_id)
    return state is not None and _can_be_trusted(_applied([decide], state)[0], state)


async def _work(user_id: str, store: UserLimitStore) -> None:
    """Make the changes of all who wait, until nobody does."""
    waiting = store.recent.waiting
    batch: list[_Waiting] = []
    try:
        while batch := waiting[user_id]:
            waiting[user_id] = []
            try:
                async with asyncio.timeout(LIMIT_S):
                    outcomes = await _swapped(user_id, store, [one.decide for one in batch])
            except Exception as failed:  # noqa: BLE001  # the caller that asked raises it
                _tell(batch, [failed] * len(batch))
            else:
                _tell(batch, outcomes)
    finally:
        # Without an end here, callers that wait would wait for ever.
        left = [*batch, *waiting.pop(user_id)]
        _tell(left, [ConflictError("The process ends.")] * len(left))


def _tell(batch: Sequence[_Waiting], outcomes: Sequence[UserLimits | Exception]) -> None:
    for one, outcome in zip(batch, outcomes, strict=True):
        if one.outcome.done():
            continue  # its caller has gone
        if isinstance(outcome, UserLimits):
            one.outcome.set_result(outcome)
        else:
            one.outcome.set_exception(outcome)


async def _swapped(user_id: str, store: UserLimitStore, decisions: Sequence[Decide]) -> list[Outcome]:
    remembered = store.recent.remembered
    for tries in range(_MAX_TRIES):
        state = remembered.pop(user_id, None)
        outcomes, final = _applied(decisions, state or UserLimits())
        if state is None or not _can_be_trusted(outcomes, state):
            state = await store.read(user_id)
            outcomes, final = _applied(decisions, state)
        try:
            written = final if final == state else await store.write(user_id, final)
        except ConflictError:
            await asyncio.sleep(random.uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0**tries)))
        else:
            remembered[user_id] = written
            while len(remembered) > _REMEMBERED:
                remembered.popitem(last=False)
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


def _can_be_trusted(outcomes: Sequence[Outcome], state: UserLimits) -> bool:
    before: Outcome = state
    for outcome in outcomes:
        if isinstance(outcome, TooManyRequestsError) or outcome == before:
            return False
        before = outcome
    return True


_SOON_S = 5.0  # until one of some runs has ended: a typical answer takes less than 10 s

# Behind a run's deadline: a host that was killed and restarted goes on with it then.
_GRACE = timedelta(seconds=60)


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
    needs: Sequence[Resource] = (),
    used: Usage | None = None,
) -> Allowance | None:
    """Count a call, and take a slot for the work that it begins; what is left then. None = no limit on calls.

    Asking again for the same work takes no second slot.

    Args:
        calls: how many the call counts for.
        needs: of what something must be left today; work in a slot needs tokens.
        used: what the call uses up for certain.

    Raises:
        TooManyRequestsError: it has to wait; says how long.
        DailyLimitError: something that it needs is used up for today.
        TooManyRunsError: too much is at work for them already.
    """
    rules, now = settings.limits, datetime.now(UTC)
    needs = (*needs, *(ASKING if slot else ()))
    has_rules = rules.rate_limit_per_minute or (slot and rules.max_concurrent_runs)
    if not has_rules and not any(limit_of(resource, rules) for resource in needs):
        return None

    def decide(state: UserLimits) -> UserLimits:
        require_left(used_today(state, now), needs, rules, now)
        return with_use(_admitted(state, calls, slot, rules, now), used or Usage(), now)

    try:
        return allowance(await changed(user.user_id, user_limits, decide), rules, now)
    except TooManyRequestsError:
        raise
    except (GroundworkError, TimeoutError) as failed:
        _log_failure("admit", failed)
        return None


async def use_of_today(
    user: UserContext, settings: Settings, user_limits: UserLimitStore
) -> tuple[UsageView, ...]:
    """What they used up since midnight (UTC); empty when that cannot be read."""
    try:
        state = await user_limits.read(user.user_id)
    except GroundworkError as failed:
        _log_failure("read", failed)
        return ()
    return usage_views(used_today(state, datetime.now(UTC)), settings.limits)


def is_expected(user: UserContext, settings: Settings, user_limits: UserLimitStore, slot: Slot) -> bool:
    """Whether `admit` will let in a call that begins this work, for all that this process remembers."""
    rules, now = settings.limits, datetime.now(UTC)

    def decide(state: UserLimits) -> UserLimits:
        require_left(used_today(state, now), ASKING, rules, now)
        return _admitted(state, 1, slot, rules, now)

    return would_change(user.user_id, user_limits, decide)


async def release(
    user_id: str,
    work_id: str,
    settings: Settings,
    user_limits: UserLimitStore,
    used: Usage | None = None,
) -> None:
    """Give the slot of work back that has ended, or waits, and count what it used. Never raises."""
    now = datetime.now(UTC)
    change = partial(released, work_id=work_id, used=used or Usage(), now=now)
    await _booked(user_id, settings, user_limits, change, "release")


async def charge(user_id: str, used: Usage, user_limits: UserLimitStore) -> None:
    """Count what was used up for a person. Never raises."""
    try:
        await changed(user_id, user_limits, partial(with_use, used=used, now=datetime.now(UTC)))
    except (GroundworkError, TimeoutError) as failed:
        _log_failure("charge", failed)


async def hold(user_id: str, slot: Slot, settings: Settings, user_limits: UserLimitStore) -> None:
    """Take a slot, even if there is none left, for work that goes on. Never raises."""
    await _booked(
        user_id, settings, user_limits, lambda state: held_anyway(state, slot, datetime.now(UTC)), "hold"
    )


def _admitted(
    state: UserLimits, calls: int, slot: Slot | None, rules: LimitSettings, now: datetime
) -> UserLimits:
    counted = charged(state, calls, rules, now)
    if counted is None:
        raise TooManyRequestsError(
            f"More than {rules.rate_limit_per_minute} calls in a minute.",
            "Wait as long as Retry-After says, then send it again.",
            retry_after_s=wait_s(state, calls, rules, now),
            headers=limit_headers(allowance(state, rules, now)),
        )
    if slot is None or not rules.max_concurrent_runs:
        return counted
    taken = occupied(counted, slot, rules, now)
    if taken is None:
        raise TooManyRunsError(
            f"You have reached the limit of questions and summaries at once ({rules.max_concurrent_runs}).",
            "Wait until one has ended, or cancel one.",
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
    code = error_type_of(failed)
    get_logger().warning("user_limits.failed", action=action, error_type=code, table=USER_LIMITS_TABLE)


class OpenStreams:
    """Which streams of one process are open, by person; one that nobody holds any more does not count."""

    def __init__(self) -> None:
        self._streams: dict[str, WeakSet[object]] = {}

    def open(self, user_id: str, stream: object, rules: LimitSettings) -> None:
        """Count a stream.

        Raises:
            TooManyRequestsError: they have as many open as they may.
        """
        self._streams = {one: streams for one, streams in self._streams.items() if streams}
        mine = self._streams.setdefault(user_id, WeakSet())
        if rules.max_open_streams and len(mine) >= rules.max_open_streams:
            raise TooManyRequestsError(
                f"You have reached the limit of open streams ({len(mine)}).",
                "Close some of them.",
                retry_after_s=_SOON_S,
            )
        mine.add(stream)


_ROW_KEY = "limits"


class UserLimitStore:
    """What each person has used up: one row per person, whose etag is the revision.

    Of the user id the table keeps a digest only. `recent` and `streams` are of this process.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self.recent = RecentRows()
        self.streams = OpenStreams()

    async def read(self, user_id: str) -> UserLimits:
        """Their row; an empty one without revision when there is none yet.

        Raises:
            DependencyError: the row cannot be read.
        """
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
        """The row as stored. ConflictError if it changed, or went, since `state.revision` was read."""
        content = state.model_dump_json(exclude={"revision"})
        entity = {"PartitionKey": digest(user_id), "RowKey": _ROW_KEY, "state": content}
        revision = await self._table.swap(entity, state.revision)
        return state.model_copy(update={"revision": revision})

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove rows not written since `moment`, at most `most`; returns how many."""
        return await self._table.delete_before("Timestamp", moment, most)

    async def forget(self, user_id: str) -> int:
        """Remove a person's row; returns how many there were."""
        return await self._table.delete_found(f"PartitionKey eq '{digest(user_id)}'", 1)
