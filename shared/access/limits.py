"""Limits per person: calls per minute, active runs and daily usage.

If the store fails or is slow, calls are admitted: the limits keep people from harming each other but protect
no data (decision 18). Functions that only release slots never raise, because unreleased slots expire.
"""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from shared.access.daily_use import ASKING, Resource, Usage, UsageView, limit_of, require_left, usage_views
from shared.access.models import UserContext
from shared.access.user_limit_store import Decide, Slot, UserLimits, UserLimitStore
from shared.platform.errors import GroundworkError, TooManyRequestsError, TooManyRunsError
from shared.platform.models import Model
from shared.platform.names import USER_LIMITS_TABLE
from shared.platform.settings import Settings
from shared.platform.settings_groups.access import LimitSettings
from shared.platform.telemetry import get_logger
from shared.platform.tracing import error_type_of


class Allowance(Model):
    """A person's rate limit, as reported in response headers.

    Attributes:
        limit: calls per minute.
        remaining: calls that may be made immediately.
        reset_s: whole seconds until the full allowance is restored.
    """

    limit: int
    remaining: int
    reset_s: int


_NOTHING = Usage()
_WINDOW = timedelta(minutes=1)
_ROUNDING = timedelta(milliseconds=1)  # tolerance: seven times 60 s / 7 exceeds 60 s by microseconds
# Seconds after which one of several active runs has usually ended.
_SOON_S = 5.0


def charge_calls(state: UserLimits, calls: int, rules: LimitSettings, now: datetime) -> UserLimits:
    """Return the limits after charging `calls` calls to the rate limit.

    At most the limit per minute is charged; otherwise a larger number of calls could never be admitted.

    Raises:
        TooManyRequestsError: the allowance is used up. The error contains the time to wait.
    """
    if not rules.rate_limit_per_minute:
        return state
    whole_at = max(now, state.whole_at or now) + _worth(calls, rules)
    wait = whole_at - now - _WINDOW
    if wait > _ROUNDING:
        raise TooManyRequestsError(
            f"More than {rules.rate_limit_per_minute} calls in a minute.",
            f"Try again in {math.ceil(wait.total_seconds())} seconds.",
            retry_after_s=wait.total_seconds(),
            headers=limit_headers(allowance(state, rules, now)),
        )
    return state.model_copy(update={"whole_at": whole_at})


def allowance(state: UserLimits, rules: LimitSettings, now: datetime) -> Allowance | None:
    """Return the remaining allowance, or None if calls are not limited."""
    if not rules.rate_limit_per_minute:
        return None
    used = max(now, state.whole_at or now) - now
    free = (_WINDOW - used + _ROUNDING) / _worth(1, rules)
    return Allowance(
        limit=rules.rate_limit_per_minute,
        remaining=max(0, min(rules.rate_limit_per_minute, math.floor(free))),
        reset_s=math.ceil(used.total_seconds()),
    )


def _worth(calls: int, rules: LimitSettings) -> timedelta:
    return _WINDOW * (min(calls, rules.rate_limit_per_minute) / rules.rate_limit_per_minute)


def limit_headers(left: Allowance | None) -> dict[str, str]:
    """Return the rate limit headers for an allowance; none if calls are not limited. Source:
    draft-ietf-httpapi-ratelimit-headers-06.
    """
    if left is None:
        return {}
    return {
        "RateLimit-Limit": str(left.limit),
        "RateLimit-Remaining": str(left.remaining),
        "RateLimit-Reset": str(left.reset_s),
    }


def acquire_slot(state: UserLimits, slot: Slot, rules: LimitSettings, now: datetime) -> UserLimits:
    """Return the limits with a slot acquired. Work that already has a slot keeps it.

    Raises:
        TooManyRunsError: all slots are in use.
    """
    active = [other for other in state.slots if now < other.until]
    if any(other.work_id == slot.work_id for other in active):
        return state
    if len(active) >= rules.max_concurrent_runs > 0:
        raise TooManyRunsError(
            f"You have reached the limit of active questions and summaries ({rules.max_concurrent_runs}).",
            "Wait until one has ended, or cancel one.",
            retry_after_s=_SOON_S,
            headers=limit_headers(allowance(state, rules, now)),
        )
    return state.model_copy(update={"slots": (*active, slot)})


def force_slot(state: UserLimits, slot: Slot, now: datetime) -> UserLimits:
    """Return the limits with a slot acquired even if all slots are in use, for work admitted earlier."""
    others = (other for other in state.slots if now < other.until and other.work_id != slot.work_id)
    return state.model_copy(update={"slots": (*others, slot)})


def release_slot(state: UserLimits, work_id: str) -> UserLimits:
    """Return the limits with the slot of `work_id` released. Without such a slot, they are unchanged."""
    slots = tuple(slot for slot in state.slots if slot.work_id != work_id)
    return state if slots == state.slots else state.model_copy(update={"slots": slots})


def used_today(state: UserLimits, now: datetime) -> Usage:
    """Return the usage since midnight UTC."""
    return state.used if state.used_on == now.date() else Usage()


def with_use(state: UserLimits, used: Usage, now: datetime) -> UserLimits:
    """Return the limits with `used` added to today's usage."""
    if used == Usage():
        return state
    return state.model_copy(update={"used_on": now.date(), "used": used_today(state, now).plus(used)})


# Grace period after a run's deadline, so that a restarted host can still finish the run.
_GRACE = timedelta(seconds=60)


def slot_of_run(run_id: str, settings: Settings) -> Slot:
    """Return a slot for a run that starts or resumes now. It expires one minute after the run's deadline."""
    until = datetime.now(UTC) + timedelta(milliseconds=settings.budgets.max_total_latency_ms) + _GRACE
    return Slot(work_id=run_id, until=until)


def slot_of_summary(summary_id: str, settings: Settings) -> Slot:
    """Return a slot for a summary that starts now. It expires one minute after the summary's deadline."""
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
    """Charge calls to the rate limit, acquire a slot for the work they start, and return the remaining
    allowance. None means that calls are unlimited or that the store failed.

    Calling it again for the same work acquires no second slot.

    Args:
        calls: number of calls to charge.
        needs: resources that must not be used up. Tokens are added if there is a slot.
        used: usage to record at once.

    Raises:
        TooManyRequestsError: the rate limit is exceeded. The error contains the time to wait.
        DailyLimitError: a needed resource is used up for today.
        TooManyRunsError: all of the person's slots are in use.
    """
    rules = settings.limits
    needs = (*needs, *(ASKING if slot else ()))
    has_rules = rules.rate_limit_per_minute or (slot and rules.max_concurrent_runs)
    if not has_rules and not any(limit_of(resource, rules) for resource in needs):
        return None

    decide = _admission(rules, calls, slot, needs, used or Usage())
    state = await _fail_open(user_limits.change(user.user_id, decide), "admit")
    return allowance(state, rules, datetime.now(UTC)) if state is not None else None


async def use_of_today(
    user_id: str, settings: Settings, user_limits: UserLimitStore
) -> tuple[UsageView, ...]:
    """Return a person's usage since midnight UTC and the daily limits, by resource; empty if the store
    fails.
    """
    state = await _fail_open(user_limits.read(user_id), "read")
    if state is None:
        return ()
    return usage_views(used_today(state, datetime.now(UTC)), settings.limits)


def is_expected(user: UserContext, settings: Settings, user_limits: UserLimitStore, slot: Slot) -> bool:
    """Return whether `admit` would probably accept this work, according to cached limits. Without cached
    limits, return False.
    """
    state, decide = user_limits.cached_limits(user.user_id), _admission(settings.limits, 1, slot, ASKING)
    try:
        return state is not None and state != decide(state)
    except TooManyRequestsError:
        return False


async def release(user_id: str, work_id: str, settings: Settings, user_limits: UserLimitStore) -> None:
    """Release the slot of work that has ended or is waiting for the user. Store failures are logged, never
    raised.
    """
    if settings.limits.max_concurrent_runs:
        await _fail_open(user_limits.change(user_id, partial(release_slot, work_id=work_id)), "release")


async def charge(user_id: str, used: Usage, user_limits: UserLimitStore) -> None:
    """Add `used` to a person's usage today; negative amounts are refunds. Store failures are logged, never
    raised.
    """
    change = partial(with_use, used=used, now=datetime.now(UTC))
    await _fail_open(user_limits.change(user_id, change), "charge")


async def hold(user_id: str, slot: Slot, settings: Settings, user_limits: UserLimitStore) -> None:
    """Acquire a slot for work admitted earlier, even if all slots are in use. Store failures are logged,
    never raised.
    """
    if settings.limits.max_concurrent_runs:
        change = partial(force_slot, slot=slot, now=datetime.now(UTC))
        await _fail_open(user_limits.change(user_id, change), "hold")


def _admission(
    rules: LimitSettings, calls: int, slot: Slot | None, needs: Sequence[Resource], used: Usage = _NOTHING
) -> Decide:
    """Return the decision function for `admit`. It charges calls and acquires the slot, or raises an error if
    a limit is exceeded.
    """
    now = datetime.now(UTC)

    def decide(state: UserLimits) -> UserLimits:
        require_left(used_today(state, now), needs, rules, now)
        # Acquire the slot first, so that a refusal doesn't charge the call.
        if slot is not None and rules.max_concurrent_runs:
            state = acquire_slot(state, slot, rules, now)
        return with_use(charge_calls(state, calls, rules, now), used, now)

    return decide


async def _fail_open(change: Awaitable[UserLimits], action: str) -> UserLimits | None:
    """Await a store operation. If the store fails or is slow, log this and return None, so that the request
    can proceed. Errors about exceeded limits are raised.
    """
    try:
        return await change
    except TooManyRequestsError:
        raise
    except (GroundworkError, TimeoutError) as failed:
        code = error_type_of(failed)
        get_logger().warning("user_limits.failed", action=action, error_type=code, table=USER_LIMITS_TABLE)
        return None
