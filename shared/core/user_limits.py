"""How many calls a person may make, and how much may run for them at the same time.

Calls are counted by the generic cell rate algorithm: an allowance of one minute's calls, which fills up
evenly. So a minute's calls may be made at once, and then one each time that one has come back; in no 60 s can
there be more than twice the limit. One instant is all that must be kept. Each function takes the state as
it was read and gives what is to be written, so that instances agree by compare-and-swap.
Source: ITU-T I.371 (GCRA), as virtual scheduling.
"""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from shared.models.limits import Allowance, LimitRules, Slot, UserLimits

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
