"""Activities run side by side, up to a limit. At least once: one that had no recorded end runs again."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from local.durable.functions import ActivityFailed, AppFunctions
from local.durable.history import EventType, HistoryEvent, utc_text
from local.durable.work import ActivityWork, TaskKey


class ActivityPool:
    """Runs activities and hands over the event that ends each.

    Args:
        limit: how many run at once; the others wait in the order of their submission.
        is_open: asked just before an activity begins; False skips it (its instance has ended meanwhile).
        on_end: called with TaskCompleted or TaskFailed.
    """

    def __init__(
        self,
        functions: AppFunctions,
        *,
        limit: int,
        is_open: Callable[[TaskKey], bool],
        on_end: Callable[[TaskKey, HistoryEvent], None],
    ) -> None:
        self._functions = functions
        self._slots = asyncio.Semaphore(limit)
        self._is_open = is_open
        self._on_end = on_end
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, work: ActivityWork) -> None:
        task = asyncio.create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel what runs. Its rows stay, so it runs again after the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, work: ActivityWork) -> None:
        async with self._slots:
            if self._is_open(work.key):
                self._on_end(work.key, await self._execute(work))

    async def _execute(self, work: ActivityWork) -> HistoryEvent:
        if work.name not in self._functions.activities():
            return _failed(work, f"Activity function '{work.name}' does not exist.", "")
        try:
            result = await self._functions.run_activity(work.name, work.input, work.key.instance_id)
        except ActivityFailed as failure:
            return _failed(work, failure.reason, failure.details)
        except Exception as error:  # noqa: BLE001  # a fault of the host must end the activity, not hang its instance
            return _failed(
                work, f"{type(error).__name__}: {error}", "raised by the host, not by the activity"
            )
        return HistoryEvent(
            event_type=EventType.TASK_COMPLETED,
            timestamp=utc_text(datetime.now(UTC)),
            task_scheduled_id=work.key.task_id,
            result=result,
        )


def _failed(work: ActivityWork, reason: str, details: str) -> HistoryEvent:
    return HistoryEvent(
        event_type=EventType.TASK_FAILED,
        timestamp=utc_text(datetime.now(UTC)),
        task_scheduled_id=work.key.task_id,
        # The words of TaskActivityShim.cs.
        reason=_storable(f"Activity function '{work.name}' failed: {reason}"),
        details=_storable(details),
    )


def _storable(text: str) -> str:
    """A message may quote half a surrogate pair from a broken document; neither JSON nor SQLite takes it."""
    return text.encode("utf-8", "replace").decode()
