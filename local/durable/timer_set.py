"""Durable timers that this process has armed. The store keeps them; this wakes up when they are due."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from local.durable.history import EventType, HistoryEvent, utc_text
from local.durable.work import TaskKey, TimerWork

# The event loop's clock stands still while a machine sleeps: look at the real one at least this often.
_MAX_WAIT_S = 60.0


class TimerSet:
    """Fires each timer once, not before its time by the wall clock."""

    def __init__(self, on_fire: Callable[[TaskKey, HistoryEvent], None]) -> None:
        self._on_fire = on_fire
        self._handles: dict[TaskKey, asyncio.TimerHandle] = {}

    def arm(self, timer: TimerWork) -> None:
        remaining_s = (timer.fire_at - datetime.now(UTC)).total_seconds()
        wait_s = min(max(0.0, remaining_s), _MAX_WAIT_S)
        self._handles[timer.key] = asyncio.get_running_loop().call_later(wait_s, self._look, timer)

    def cancel(self, key: TaskKey) -> None:
        """Forget a timer; one that is not armed is ignored."""
        if (handle := self._handles.pop(key, None)) is not None:
            handle.cancel()

    def stop(self) -> None:
        for key in list(self._handles):
            self.cancel(key)

    def _look(self, timer: TimerWork) -> None:
        del self._handles[timer.key]
        now = datetime.now(UTC)
        if now < timer.fire_at:
            self.arm(timer)
            return
        fired = HistoryEvent(
            event_type=EventType.TIMER_FIRED,
            timestamp=utc_text(now),
            timer_id=timer.key.task_id,
            fire_at=utc_text(timer.fire_at),
        )
        self._on_fire(timer.key, fired)
