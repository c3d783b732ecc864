"""Timer triggers: runs functions on NCRONTAB schedules in UTC. After a stop of the host, a single run makes
up for all missed runs.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from croniter import CroniterBadCronError, croniter

from local.host.database import open_database
from local.host.settings import AppError
from local.host.storage import StorageClients
from local.host.wire import Call, FunctionDocument, json_value
from local.host.worker_process import Worker

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

SCHEMA = """
CREATE TABLE IF NOT EXISTS timer_status (
    function TEXT PRIMARY KEY, last TEXT NOT NULL, next TEXT NOT NULL, updated TEXT NOT NULL
);
"""
# A timer must check the clock this often, because it jumps when a computer wakes from sleep.
LONGEST_SLEEP_S = 30.0
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TimerStatus:
    """The times of a timer's last run (None before the first) and its next one."""

    last: datetime | None
    next: datetime


class Schedule:
    """A parsed NCRONTAB expression: six fields, the first for seconds."""

    def __init__(self, expression: str) -> None:
        """Parse the expression. Raise `AppError` if it is invalid."""
        if len(expression.split()) != 6:
            raise AppError(f"schedule {expression!r} must have six fields, of which the first is for seconds")
        self._expression = expression
        try:
            self.after(datetime.now(UTC))
        except (CroniterBadCronError, ValueError) as error:
            raise AppError(f"schedule {expression!r} cannot be parsed: {error}") from error

    def after(self, moment: datetime) -> datetime:
        """Return the first scheduled time after `moment`."""
        scheduled: datetime = croniter(self._expression, moment, second_at_beginning=True).get_next(datetime)
        return scheduled


class TimerStatusStore:
    """Persistent store of the status of all timers."""

    def __init__(self, path: Path) -> None:
        self._database: sqlite3.Connection = open_database(path, SCHEMA)

    def read(self, function_name: str) -> TimerStatus | None:
        row = self._database.execute(
            "SELECT last, next FROM timer_status WHERE function = ?", (function_name,)
        ).fetchone()
        if row is None:
            return None
        return TimerStatus(datetime.fromisoformat(row[0]) if row[0] else None, datetime.fromisoformat(row[1]))

    def write(self, function_name: str, status: TimerStatus) -> None:
        last = status.last.isoformat() if status.last else ""
        row = (function_name, last, status.next.isoformat(), datetime.now(UTC).isoformat())
        self._database.execute("INSERT OR REPLACE INTO timer_status VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        self._database.close()


class TimerListener:
    """Listener for one function with a timer trigger. As in the real host, its runs never overlap."""

    def __init__(
        self, function: FunctionDocument, storage: StorageClients, worker: Worker, store: TimerStatusStore
    ) -> None:
        """Parse the schedule. Raise `AppError` if it is invalid, and `SettingError` if it refers to a missing
        setting.
        """
        self.function = function
        self._schedule = Schedule(storage.resolve(function.trigger["schedule"]))
        self._worker = worker
        self._store = store

    async def listen(self) -> None:
        """Run the function on schedule. At start, run it once if runOnStartup is set or a run was missed.
        Never returns.
        """
        now = datetime.now(UTC)
        status = self._store.read(self.function.name)
        is_past_due = (
            status is not None and status.next < now and self.function.trigger.get("useMonitor") is not False
        )
        if status is None or status.next < now:
            status = TimerStatus(status.last if status else None, self._schedule.after(now))
        if self.function.trigger.get("runOnStartup") or is_past_due:
            status = await self._run(status, is_past_due=is_past_due)
        self._store.write(self.function.name, status)
        while True:
            await _sleep_until(status.next)
            status = await self._run(status, is_past_due=False)

    async def _run(self, status: TimerStatus, *, is_past_due: bool) -> TimerStatus:
        try:
            await self._call(status, is_past_due=is_past_due)
        except Exception:  # app code may raise any exception; the next run remains scheduled
            log.exception("function %s failed", self.function.name)
        now = datetime.now(UTC)
        following = TimerStatus(now, self._schedule.after(max(now, status.next)))
        self._store.write(self.function.name, following)
        return following

    async def _call(self, status: TimerStatus, *, is_past_due: bool) -> None:
        request: Mapping[str, object] = {
            "Schedule": {"AdjustForDST": True},
            "ScheduleStatus": {
                "Last": status.last.isoformat() if status.last else "0001-01-01T00:00:00+00:00",
                "Next": status.next.isoformat(),
                "LastUpdated": datetime.now(UTC).isoformat(),
            },
            "IsPastDue": is_past_due,
        }
        await self._worker.ready()
        await self._worker.call(Call(self.function.name, json_value(request)))


async def _sleep_until(moment: datetime) -> None:
    while (remaining := moment - datetime.now(UTC)) > timedelta(0):  # noqa: ASYNC110 # there is no event to wait for
        await asyncio.sleep(min(remaining.total_seconds(), LONGEST_SLEEP_S))
