"""The durable executor: orchestrations, activities and timers on one SQLite file, driven over HTTP.

It stands where the Durable Functions extension stands in Azure, and speaks its protocol with
azure-functions-durable 1.7.0. See docs/durable-executor.md.
"""

import asyncio
from pathlib import Path

from starlette.routing import BaseRoute

from local.durable.activity_pool import ActivityPool
from local.durable.client_binding import client_binding_json
from local.durable.episode_runner import EpisodeRunner
from local.durable.episode_writer import Committed
from local.durable.functions import AppFunctions
from local.durable.history import HistoryEvent
from local.durable.http_api import HttpApi
from local.durable.protocol import TimerLimits
from local.durable.store import Store
from local.durable.task_hub import TaskHub
from local.durable.timer_set import TimerSet
from local.durable.work import TaskKey


class DurableExecutor:
    """One task hub. Make it, mount `routes()`, `start()` it, and `stop()` it in the same event loop.

    Args:
        store_path: the SQLite file; made if missing, with its folder. One process at a time may hold it.
        functions: the application.
        max_parallel_activities: how many activities run at once; at least 1.
        timer_limits: from which length on the SDK splits a timer.

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
    ) -> None:
        if max_parallel_activities < 1:
            raise ValueError(f"max_parallel_activities must be positive, not {max_parallel_activities}")
        self._store_path = store_path
        self._functions = functions
        self._max_parallel_activities = max_parallel_activities
        self._task_hub = task_hub
        self._timer_limits = timer_limits or TimerLimits()
        self._running: _Running | None = None

    async def start(self) -> None:
        """Open the store and go on where the last process left off.

        Activities without a recorded end are dispatched again, timers armed, waiting events taken.

        Raises:
            StoreInUse: another process holds the store.
            RuntimeError: it is running already.
        """
        if self._running is not None:
            raise RuntimeError("The durable executor is running already.")
        store = Store(self._store_path)
        self._running = _Running(store, self._functions, self._max_parallel_activities, self._timer_limits)
        self._running.recover()

    async def stop(self) -> None:
        """Let running episodes end, cancel activities and timers (they resume at the next start), close."""
        if self._running is not None:
            running, self._running = self._running, None
            await running.stop()

    def routes(self) -> list[BaseRoute]:
        """The client API, with paths from `/orchestrators` and `/instances` on: mount it under a prefix."""
        return HttpApi(self._hub, self._task_hub).routes()

    def client_binding(self, base_url: str) -> str:
        """The JSON of a durable client binding for an app served at `base_url` (scheme, host and port)."""
        return client_binding_json(base_url, self._task_hub)

    def _hub(self) -> TaskHub | None:
        return self._running.hub if self._running is not None else None


class _Running:
    """The moving parts between start and stop."""

    def __init__(
        self, store: Store, functions: AppFunctions, max_parallel_activities: int, limits: TimerLimits
    ) -> None:
        self._store = store
        self._timers = TimerSet(self._timer_fired)
        self._activities = ActivityPool(
            functions, limit=max_parallel_activities, is_open=store.is_open, on_end=self._activity_ended
        )
        self._episodes = EpisodeRunner(store, functions, limits, self._dispatch)
        self.hub = TaskHub(store, functions, wake=self._episodes.wake)

    def recover(self) -> None:
        for work in self._store.open_activities():
            self._activities.submit(work)
        for timer in self._store.open_timers():
            self._timers.arm(timer)
        for instance_id in self._store.instances_with_news():
            self._episodes.wake(instance_id)

    async def stop(self) -> None:
        self._timers.stop()
        await asyncio.gather(self._episodes.stop(), self._activities.stop())
        # An episode that ended last may have dispatched once more.
        self._timers.stop()
        await self._activities.stop()
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
