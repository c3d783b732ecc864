"""The durable executor: orchestrations, activities and timers in one SQLite file, with an HTTP API.

It replaces the Durable Functions extension and implements its protocol for azure-functions-durable 1.7.0. See
docs/internals/durable-executor.md.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.routing import BaseRoute

from local.durable.clock import Clock, SystemClock, Timer
from local.durable.episode_runner import EpisodeRunner
from local.durable.episode_writer import Committed
from local.durable.functions import ActivityFailed, AppFunctions
from local.durable.history import EventType, HistoryEvent, utc_text
from local.durable.http_api import HttpApi, client_binding_json
from local.durable.protocol import TimerLimits
from local.durable.store import Store
from local.durable.task_hub import TaskHub
from local.durable.work import ActivityWork, TaskKey, TimerWork

# Longest time between checks of the wall clock. The clock of the event loop stops while a machine sleeps.
_MAX_WAIT_S = 60.0


class TimerSet:
    """A set of timers. Each fires once, when the clock has reached its time."""

    def __init__(self, clock: Clock, on_fire: Callable[[TaskKey, HistoryEvent], None]) -> None:
        self._clock = clock
        self._on_fire = on_fire
        self._handles: dict[TaskKey, Timer] = {}

    def arm(self, timer: TimerWork) -> None:
        remaining_s = (timer.fire_at - self._clock.now()).total_seconds()
        wait_s = min(max(0.0, remaining_s), _MAX_WAIT_S)
        self._handles[timer.key] = self._clock.call_later(wait_s, partial(self._look, timer))

    def cancel(self, key: TaskKey) -> None:
        """Cancel the timer with this key. Unknown keys are ignored."""
        if (handle := self._handles.pop(key, None)) is not None:
            handle.cancel()

    def stop(self) -> None:
        for key in list(self._handles):
            self.cancel(key)

    def _look(self, timer: TimerWork) -> None:
        del self._handles[timer.key]
        now = self._clock.now()
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


class ActivityPool:
    """A pool that runs activities and reports the result of each as a history event.

    Args:
        clock: source of the events' timestamps.
        limit: maximum number of concurrent activities; others wait in order.
        is_open: called just before an activity starts. If it returns False, the activity is skipped.
        on_end: called with the TaskCompleted or TaskFailed event.
    """

    def __init__(
        self,
        functions: AppFunctions,
        clock: Clock,
        *,
        limit: int,
        is_open: Callable[[TaskKey], bool],
        on_end: Callable[[TaskKey, HistoryEvent], None],
    ) -> None:
        self._functions = functions
        self._clock = clock
        self._slots = asyncio.Semaphore(limit)
        self._is_open = is_open
        self._on_end = on_end
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, work: ActivityWork) -> None:
        task = asyncio.create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel running activities. Their database rows remain, so they run again after the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, work: ActivityWork) -> None:
        async with self._slots:
            if self._is_open(work.key):
                self._on_end(work.key, await self._execute(work))

    async def _execute(self, work: ActivityWork) -> HistoryEvent:
        if work.name not in self._functions.activities():
            return self._failure_event(work, f"Activity function '{work.name}' does not exist.", "")
        try:
            result = await self._functions.run_activity(work.name, work.input, work.key.instance_id)
        except ActivityFailed as failure:
            return self._failure_event(work, failure.reason, failure.details)
        except Exception as error:  # noqa: BLE001  # a fault of the host must end the activity, not hang its instance
            reason = f"{type(error).__name__}: {error}"
            return self._failure_event(work, reason, "raised by the host, not by the activity")
        return HistoryEvent(
            event_type=EventType.TASK_COMPLETED,
            timestamp=utc_text(self._clock.now()),
            task_scheduled_id=work.key.task_id,
            result=result,
        )

    def _failure_event(self, work: ActivityWork, reason: str, details: str) -> HistoryEvent:
        return HistoryEvent(
            event_type=EventType.TASK_FAILED,
            timestamp=utc_text(self._clock.now()),
            task_scheduled_id=work.key.task_id,
            # The wording follows TaskActivityShim.cs of the real extension.
            reason=_storable(f"Activity function '{work.name}' failed: {reason}"),
            details=_storable(details),
        )


def _storable(text: str) -> str:
    """Replace unpaired surrogates, which JSON and SQLite reject. Messages that quote a damaged document may
    contain them.
    """
    return text.encode("utf-8", "replace").decode()


HEARTBEAT_S = 1.0


@dataclass(frozen=True)
class CrashDelays:
    """The delays in seconds after which interrupted work resumes when the host has crashed. They imitate
    Azure Storage.

    Attributes:
        lease_s: time until another host can acquire the partitions. No orchestration continues earlier.
        control_s: controlQueueVisibilityTimeout, for events being processed.
        work_item_s: workItemQueueVisibilityTimeout, for unfinished activities.
    """

    lease_s: float = 0.0
    control_s: float = 0.0
    work_item_s: float = 0.0


NO_DELAYS = CrashDelays()


class DurableExecutor:
    """The executor of one task hub. Create it, mount `routes()`, then call `start()` and `stop()` on the same
    event loop.

    Args:
        store_path: the SQLite file, created with its folder if missing. One process at a time may open it.
        functions: the application.
        max_parallel_activities: maximum number of concurrent activities, at least 1.
        timer_limits: lengths above which the SDK splits a timer.
        delays: apply after a crash, but not after an orderly stop.
        clock: source of timestamps and timers, but not of the delays after a crash.

    Raises:
        ValueError: max_parallel_activities is not positive.
    """

    def __init__(
        self,
        store_path: Path,
        functions: AppFunctions,
        *,
        max_parallel_activities: int = 16,
        task_hub: str = "local",
        timer_limits: TimerLimits | None = None,
        delays: CrashDelays = NO_DELAYS,
        clock: Clock | None = None,
    ) -> None:
        if max_parallel_activities < 1:
            raise ValueError(f"max_parallel_activities must be positive, not {max_parallel_activities}.")
        self._store_path = store_path
        self._functions = functions
        self._max_parallel_activities = max_parallel_activities
        self._task_hub = task_hub
        self._timer_limits = timer_limits or TimerLimits()
        self._delays = delays
        self._clock = clock or SystemClock()
        self._running: _Running | None = None

    async def start(self) -> None:
        """Open the store and resume all work that the previous process left unfinished.

        Dispatches unfinished activities again, starts timers and processes pending events. After a crash,
        activities and events wait for their delays.

        Raises:
            StoreInUse: another process has the store open.
            RuntimeError: if the executor is already running.
        """
        if self._running is not None:
            raise RuntimeError("The durable executor is already running.")
        store = Store(self._store_path, self._clock)
        pool_size = self._max_parallel_activities
        self._running = _Running(store, self._functions, pool_size, self._timer_limits, self._clock)
        self._running.recover(self._delays)

    async def stop(self) -> None:
        """Wait for running episodes, cancel activities and timers, and close the store. Cancelled work
        resumes at the next start.
        """
        if self._running is not None:
            running, self._running = self._running, None
            await running.stop()

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the client API, below `/orchestrators` and `/instances`. Mount them under a
        prefix.
        """
        return HttpApi(self._hub, self._task_hub).routes()

    def client_binding(self, base_url: str) -> str:
        """Return the durable client binding, as JSON, of an app served at `base_url` (scheme, host and
        port).
        """
        return client_binding_json(base_url, self._task_hub)

    def _hub(self) -> TaskHub | None:
        return self._running.hub if self._running is not None else None


class _Running:
    """The components of an executor, from start to stop."""

    def __init__(
        self, store: Store, functions: AppFunctions, pool_size: int, limits: TimerLimits, clock: Clock
    ) -> None:
        self._store = store
        self._timers = TimerSet(clock, self._timer_fired)
        self._activities = ActivityPool(
            functions, clock, limit=pool_size, is_open=store.is_open, on_end=self._activity_ended
        )
        self._episodes = EpisodeRunner(store, functions, limits, clock, self._dispatch)
        self.hub = TaskHub(store, functions, clock, wake=self._episodes.wake)
        self._background: list[asyncio.Task[None]] = []

    def recover(self, delays: CrashDelays) -> None:
        crashed_at = self._store.last_heartbeat()
        passed_s = None if crashed_at is None else time.time() - crashed_at
        for timer in self._store.open_timers():
            self._timers.arm(timer)
        if passed_s is None or passed_s >= max(delays.lease_s, delays.control_s, delays.work_item_s):
            self._dispatch_again(self._store.open_activities())
            self._wake(self._store.instances_with_news())
        else:
            self._episodes.hold()
            self._background.append(asyncio.create_task(self._recover_late(delays, passed_s)))
        self._background.append(asyncio.create_task(self._beat()))

    async def _recover_late(self, delays: CrashDelays, passed_s: float) -> None:
        activities, pending = self._store.open_activities(), self._store.instances_with_news()
        steps: list[tuple[float, Callable[[], None]]] = [
            (delays.work_item_s, lambda: self._dispatch_again(activities)),
            (delays.lease_s, lambda: self._episodes.release(but=pending)),
            (delays.control_s, lambda: self._wake(pending)),
        ]
        for due_s, step in sorted(steps, key=lambda one: one[0]):
            await asyncio.sleep(max(0.0, due_s - passed_s))
            passed_s = max(passed_s, due_s)
            step()

    def _dispatch_again(self, activities: list[ActivityWork]) -> None:
        for work in activities:
            self._activities.submit(work)

    def _wake(self, instance_ids: list[str]) -> None:
        for instance_id in instance_ids:
            self._episodes.wake(instance_id)

    async def _beat(self) -> None:
        while True:
            self._store.beat(time.time())
            await asyncio.sleep(HEARTBEAT_S)

    async def stop(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._timers.stop()
        await asyncio.gather(self._episodes.stop(), self._activities.stop())
        # The last episode may have dispatched more work, so timers and activities are stopped after it.
        self._timers.stop()
        await self._activities.stop()
        self._store.beat(None)
        self._store.close()

    def _dispatch(self, committed: Committed) -> None:
        for work in committed.activities:
            self._activities.submit(work)
        for timer in committed.timers:
            self._timers.arm(timer)
        for key in committed.cancelled_timers:
            self._timers.cancel(key)
        for instance_id in committed.woken:
            self._episodes.wake(instance_id)

    def _activity_ended(self, key: TaskKey, event: HistoryEvent) -> None:
        if self._store.end_activity(key, event):
            self._episodes.wake(key.instance_id)

    def _timer_fired(self, key: TaskKey, event: HistoryEvent) -> None:
        if self._store.end_timer(key, event):
            self._episodes.wake(key.instance_id)
