"""Slots and circuit breaker of sub-agents, shared by all instances: read, decide (core), compare-and-swap.

Whoever loses the race for the row reads it again after a jittered wait, within a limit of tries and of time.
What an answer needs to know (`read_control`, `grant`) raises when the store fails, and the policy then starts
no sub-agent; what only books (`begin`, `settle`) never does: a slot that is not given back expires.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar
from weakref import WeakKeyDictionary

from shared.core.subagent_control import Ended, Task, begun, granted, released, report, settled, view
from shared.errors import CallTimeoutError, ConflictError, DependencyError, GroundworkError
from shared.models.subagent_control import ControlReport, ControlRules, ControlState, ControlView
from shared.ports import ControlStore
from shared.services import Services
from shared.settings import Settings
from shared.telemetry import get_logger

_MAX_TRIES = 12  # 40 instances that write at the same moment need 6 on average, and 1.5 s on two busy cores
_FIRST_WAIT_S = 0.01
_MAX_WAIT_S = 0.2
_ASK_LIMIT_S = 2.0  # an answer waits for it: rather no sub-agent than a long wait
_BOOK_LIMIT_S = 10.0  # beside other work; longer, since a slot that is not given back is lost for a while

Result = TypeVar("Result")
_turns: WeakKeyDictionary[ControlStore, asyncio.Lock] = WeakKeyDictionary()
Change = Callable[[ControlState], ControlState | None]


def control_rules(settings: Settings) -> ControlRules:
    """The limits, as this deployment sets them."""
    return ControlRules(
        failure_share=settings.circuit_breaker_failure_rate_threshold,
        window=settings.circuit_breaker_window_requests,
        cooldown_s=settings.circuit_breaker_cooldown_seconds,
        max_active=settings.subagents_max_active,
    )


async def read_control(services: Services) -> ControlView:
    """How busy sub-agents are, and whether any may start. GroundworkError when the store fails or is slow."""
    rules = control_rules(services.settings)
    state = await _within(_ASK_LIMIT_S, services.subagent_control.read())
    return view(state, rules, datetime.now(UTC))


async def report_control(services: Services) -> ControlReport:
    """The same for an operator."""
    rules = control_rules(services.settings)
    state = await _within(_ASK_LIMIT_S, services.subagent_control.read())
    return report(state, rules, datetime.now(UTC))


async def grant(services: Services, tasks: Sequence[Task], now: datetime) -> bool:
    """Take a slot for each task, all or none; False when the limit is reached, or the circuit open, by now.

    At most `ControlView.free` tasks can be granted. Asking again for the same tasks takes no more slots.

    Raises:
        GroundworkError: the store failed, or too many wrote at the same time.
    """
    rules = control_rules(services.settings)
    return await _changed(services, lambda state: granted(state, tasks, rules, now), _ASK_LIMIT_S)


async def begin(services: Services, child_id: str) -> None:
    """Note that this sub-agent is at work, and waits no more. Never raises; may run beside its work."""
    await _booked(services, lambda state: begun(state, child_id), "begin")


async def settle(services: Services, ends: Sequence[Ended]) -> None:
    """Give their slots back, and tell the circuit breaker how they ended: each once. Never raises."""
    rules = control_rules(services.settings)
    now = datetime.now(UTC)
    await _booked(services, lambda state: settled(state, ends, rules, now), "settle")


async def release(services: Services, child_ids: Sequence[str]) -> None:
    """Give the slots of cancelled sub-agents back. Never raises."""
    if child_ids:
        await _booked(services, lambda state: released(state, child_ids), "release")


async def _booked(services: Services, change: Change, action: str) -> None:
    try:
        await _changed(services, change, _BOOK_LIMIT_S)
    except GroundworkError as failed:
        get_logger().warning("subagent_control.failed", action=action, error_type=failed.code)


async def _changed(services: Services, change: Change, limit_s: float) -> bool:
    """Write what `change` makes of the state; False when that is None. Nothing to change is not written."""
    return await _within(limit_s, _swapped(services, change))


async def _swapped(services: Services, change: Change) -> bool:
    store = services.subagent_control
    # One at a time of this process: only processes race.
    async with _turns.setdefault(store, asyncio.Lock()):
        for tries in range(_MAX_TRIES):
            state = await store.read()
            changed = change(state)
            if changed is None:
                return False
            if changed == state:
                return True
            try:
                await store.write(changed)
            except ConflictError:
                await asyncio.sleep(random.uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0**tries)))
            else:
                return True
    raise DependencyError("Too many sub-agents begin and end at the same time.", "Try again in a moment.")


async def _within(limit_s: float, work: Awaitable[Result]) -> Result:
    try:
        async with asyncio.timeout(limit_s):
            return await work
    except TimeoutError:
        raise CallTimeoutError("The state of sub-agents could not be read or written in time.") from None
