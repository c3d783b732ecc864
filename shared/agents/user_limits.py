"""What one person may use up, held to by all instances: read, decide (core), compare-and-swap.

A process remembers the rows that it wrote of late, so that mostly one write is all: if another instance was
quicker, the write is refused, and the row is read. Nothing is refused by what is only remembered.
When the store fails or is slow, callers are let in: the limits keep people from harming each other, they
guard nothing (decision 18). What only gives back never raises: a slot that is not given back expires.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from weakref import WeakKeyDictionary, WeakValueDictionary

from shared.core.user_limits import (
    allowance,
    charged,
    held_anyway,
    limit_headers,
    occupied,
    released,
    wait_s,
)
from shared.errors import ConflictError, GroundworkError, TooManyRequestsError, TooManyRunsError
from shared.models.identity import UserContext
from shared.models.limits import Allowance, LimitRules, Slot, UserLimits
from shared.models.names import USER_LIMITS_TABLE
from shared.ports import UserLimitStore
from shared.services import Services
from shared.settings import Settings
from shared.telemetry import get_logger

_MAX_TRIES = 12  # as many instances that write for one person at the same moment; see sub_agents/control.py
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
_LIMIT_S = 2.0  # a call waits for it: rather let in than kept waiting
_REMEMBERED = 1000  # people of one process, a few hundred bytes each
_SOON_S = 5.0  # until one of some runs has ended: a typical answer takes less than 10 s
# Behind a run's deadline: a host that was killed and started anew goes on with it then.
_GRACE = timedelta(seconds=60)

Decide = Callable[[UserLimits], UserLimits]
_remembered: WeakKeyDictionary[UserLimitStore, OrderedDict[str, UserLimits]] = WeakKeyDictionary()
_turns: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()


def limit_rules(settings: Settings) -> LimitRules:
    """The limits, as this deployment sets them."""
    return LimitRules(
        calls_per_minute=settings.rate_limit_per_minute, concurrent_runs=settings.max_concurrent_runs
    )


def slot_of_run(run_id: str, settings: Settings) -> Slot:
    """The slot of a run that begins, or goes on, now."""
    until = datetime.now(UTC) + timedelta(milliseconds=settings.max_total_latency_ms) + _GRACE
    return Slot(work_id=run_id, until=until)


def slot_of_summary(summary_id: str, settings: Settings) -> Slot:
    """The slot of a summary that begins now."""
    until = datetime.now(UTC) + timedelta(seconds=settings.summary_timeout_s) + _GRACE
    return Slot(work_id=summary_id, until=until)


async def admit(
    user: UserContext, services: Services, *, calls: int = 1, slot: Slot | None = None
) -> Allowance | None:
    """Count a call, and take a slot for the work that it begins; what is left then. None = no limit on calls.

    Asking again for the same work takes no second slot.

    Args:
        calls: how many the call counts for.

    Raises:
        TooManyRequestsError: it has to wait; says how long.
        TooManyRunsError: too much is at work for them already.
    """
    rules = limit_rules(services.settings)
    if not rules.calls_per_minute and not (slot and rules.concurrent_runs):
        return None
    now = datetime.now(UTC)

    def decide(state: UserLimits) -> UserLimits:
        return _admitted(state, calls, slot, rules, now)

    try:
        return allowance(await _changed(user.user_id, services, decide), rules, now)
    except TooManyRequestsError:
        raise
    except (GroundworkError, TimeoutError) as failed:
        _log_failure("admit", failed)
        return None


def is_expected(user: UserContext, services: Services, slot: Slot) -> bool:
    """Whether `admit` will let in a call that begins this work, for all that this process remembers."""
    rows = _remembered.get(services.user_limits)
    known = rows.get(user.user_id) if rows is not None else None
    rules, now = limit_rules(services.settings), datetime.now(UTC)
    return _if_changed(known, lambda state: _admitted(state, 1, slot, rules, now)) is not None


async def release(user_id: str, work_id: str, services: Services) -> None:
    """Give the slot of work back that has ended, or waits. Never raises."""
    await _booked(user_id, services, lambda state: released(state, work_id), "release")


async def hold(user_id: str, slot: Slot, services: Services) -> None:
    """Take a slot, even if there is none left, for work that goes on. Never raises."""
    await _booked(user_id, services, lambda state: held_anyway(state, slot, datetime.now(UTC)), "hold")


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


async def _booked(user_id: str, services: Services, decide: Decide, action: str) -> None:
    if not services.settings.max_concurrent_runs:
        return
    try:
        await _changed(user_id, services, decide)
    except (GroundworkError, TimeoutError) as failed:
        _log_failure(action, failed)


async def _changed(user_id: str, services: Services, decide: Decide) -> UserLimits:
    """The row as `decide` makes it. TimeoutError after some time; what `decide` raises."""
    store = services.user_limits
    turn = _turns.setdefault((id(store), user_id), asyncio.Lock())
    # One at a time of this process: only processes race.
    async with asyncio.timeout(_LIMIT_S), turn:
        return await _swapped(user_id, store, decide)


async def _swapped(user_id: str, store: UserLimitStore, decide: Decide) -> UserLimits:
    remembered = _remembered.setdefault(store, OrderedDict())
    for tries in range(_MAX_TRIES):
        state = remembered.pop(user_id, None)
        changed = _if_changed(state, decide)
        if changed is None:
            state = await store.read(user_id)
            changed = decide(state)
        try:
            written = changed if changed == state else await store.write(user_id, changed)
        except ConflictError:
            await asyncio.sleep(random.uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0**tries)))
        else:
            _remember(remembered, user_id, written)
            return written
    raise ConflictError("Too many calls of one person at the same time.", "Try again in a moment.")


def _if_changed(state: UserLimits | None, decide: Decide) -> UserLimits | None:
    """What `decide` makes of a remembered row, if that is to be written: the write tells whether it held.

    Neither a refusal nor that nothing is to be done is believed.
    """
    if state is None:
        return None
    try:
        changed = decide(state)
    except TooManyRequestsError:
        return None
    return changed if changed != state else None


def _remember(remembered: OrderedDict[str, UserLimits], user_id: str, state: UserLimits) -> None:
    remembered[user_id] = state
    while len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)


def _log_failure(action: str, failed: Exception) -> None:
    code = failed.code if isinstance(failed, GroundworkError) else type(failed).__name__
    get_logger().warning("user_limits.failed", action=action, error_type=code, table=USER_LIMITS_TABLE)
