"""What one person may use up, held to by all instances: decided in core, changed as limit_rows.py does.

When the store fails or is slow, callers are let in: the limits keep people from harming each other, they
guard nothing (decision 18). What only gives back never raises: a slot that is not given back expires.
"""

from datetime import UTC, datetime, timedelta

from shared.agents.limit_rows import Decide, changed, would_change
from shared.core.user_limits import (
    allowance,
    charged,
    held_anyway,
    limit_headers,
    occupied,
    released,
    wait_s,
)
from shared.errors import GroundworkError, TooManyRequestsError, TooManyRunsError
from shared.models.identity import UserContext
from shared.models.limits import Allowance, LimitRules, Slot, UserLimits
from shared.models.names import USER_LIMITS_TABLE
from shared.services import Services
from shared.settings import Settings
from shared.telemetry import get_logger

_SOON_S = 5.0  # until one of some runs has ended: a typical answer takes less than 10 s
# Behind a run's deadline: a host that was killed and started anew goes on with it then.
_GRACE = timedelta(seconds=60)


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
        return allowance(await changed(user.user_id, services.user_limits, decide), rules, now)
    except TooManyRequestsError:
        raise
    except (GroundworkError, TimeoutError) as failed:
        _log_failure("admit", failed)
        return None


def is_expected(user: UserContext, services: Services, slot: Slot) -> bool:
    """Whether `admit` will let in a call that begins this work, for all that this process remembers."""
    rules, now = limit_rules(services.settings), datetime.now(UTC)
    return would_change(
        user.user_id, services.user_limits, lambda state: _admitted(state, 1, slot, rules, now)
    )


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
        await changed(user_id, services.user_limits, decide)
    except (GroundworkError, TimeoutError) as failed:
        _log_failure(action, failed)


def _log_failure(action: str, failed: Exception) -> None:
    code = failed.code if isinstance(failed, GroundworkError) else type(failed).__name__
    get_logger().warning("user_limits.failed", action=action, error_type=code, table=USER_LIMITS_TABLE)
