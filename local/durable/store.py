"""The durable state of the executor. Each episode and each result is written in one transaction."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from local.durable import instance_table
from local.durable.clock import Clock
from local.durable.database import Database
from local.durable.episode import Episode
from local.durable.episode_writer import NOTHING, Committed, EpisodeWriter
from local.durable.history import HistoryEvent, load_events, parse_utc
from local.durable.instances import Instance
from local.durable.work import ActivityWork, TaskKey, TimerWork


class Store:
    """The stored state of a task hub. It is not thread-safe; only the event loop's thread uses it."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.database = Database(path)
        self._clock = clock

    def close(self) -> None:
        self.database.close()

    def last_heartbeat(self) -> float | None:
        """Return the Unix time of the last heartbeat, or None if the executor was stopped properly."""
        rows = self.database.rows("SELECT at FROM heartbeat")
        return rows[0]["at"] if rows else None

    def beat(self, at: float | None) -> None:
        """Store the time of a heartbeat in Unix seconds. None deletes it, which marks a proper stop."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM heartbeat")
            if at is not None:
                connection.execute("INSERT INTO heartbeat VALUES (1, ?)", (at,))

    def find(self, instance_id: str) -> Instance | None:
        return instance_table.find(self.database, instance_id)

    def history(self, instance_id: str) -> list[HistoryEvent]:
        rows = self.database.rows(
            "SELECT events FROM history WHERE instance_id = ? ORDER BY episode", instance_id
        )
        # Each row is a JSON array; without their brackets, the rows join into one array.
        return load_events("[" + ",".join(row["events"][1:-1] for row in rows) + "]")

    def waiting(self, instance_id: str) -> list[instance_table.WaitingEvent]:
        """Return the pending events of an instance, oldest first."""
        rows = self.database.rows(
            "SELECT position, event FROM inbox WHERE instance_id = ? ORDER BY position", instance_id
        )
        return [
            instance_table.WaitingEvent(row["position"], HistoryEvent.model_validate_json(row["event"]))
            for row in rows
        ]

    def instances_with_news(self) -> list[str]:
        return [row["instance_id"] for row in self.database.rows("SELECT DISTINCT instance_id FROM inbox")]

    def open_activities(self) -> list[ActivityWork]:
        rows = self.database.rows("SELECT * FROM activities ORDER BY instance_id, task_id")
        return [ActivityWork(_key(row), row["name"], row["input"]) for row in rows]

    def open_timers(self) -> list[TimerWork]:
        rows = self.database.rows("SELECT * FROM timers")
        return [TimerWork(_key(row), parse_utc(row["fire_at"])) for row in rows]

    def is_open(self, key: TaskKey) -> bool:
        """Return whether an activity is still needed by its instance."""
        return bool(
            self.database.rows(
                "SELECT 1 FROM activities WHERE instance_id = ? AND task_id = ? AND execution_id = ?",
                key.instance_id,
                key.task_id,
                key.execution_id,
            )
        )

    def create(self, instance: Instance) -> None:
        """Insert an instance with a pending ExecutionStarted event.

        Raises:
            InstanceExists: an instance with this id has not ended.
        """
        with self.database.transaction() as connection:
            instance_table.create(connection, instance)

    def post(self, instance_id: str, event: HistoryEvent) -> bool:
        """Add a pending event to an instance. Return False if the instance doesn't exist or has ended."""
        with self.database.transaction() as connection:
            return instance_table.post(connection, instance_id, event)

    def purge(self, instance_id: str) -> bool:
        with self.database.transaction() as connection:
            exists = instance_table.find(self.database, instance_id) is not None
            instance_table.remove(connection, instance_id)
            return exists

    def end_activity(self, key: TaskKey, event: HistoryEvent) -> bool:
        """Store the result event of an activity, at most once. Return False if the instance no longer needs
        it.
        """
        return self._end(
            "DELETE FROM activities WHERE instance_id = ? AND task_id = ? AND execution_id = ?", key, event
        )

    def end_timer(self, key: TaskKey, event: HistoryEvent) -> bool:
        """Store the event of a fired timer, at most once. Return False if the timer was cancelled."""
        return self._end(
            "DELETE FROM timers WHERE instance_id = ? AND task_id = ? AND execution_id = ?", key, event
        )

    def _end(self, removal: str, key: TaskKey, event: HistoryEvent) -> bool:
        with self.database.transaction() as connection:
            removed = connection.execute(removal, (key.instance_id, key.task_id, key.execution_id))
            return removed.rowcount == 1 and instance_table.post(connection, key.instance_id, event)

    def commit(self, instance: Instance, positions: Sequence[int], episode: Episode) -> Committed:
        """Write an episode and return its effects. Nothing is written if the instance was purged or replaced
        while the episode ran.
        """
        with self.database.transaction() as connection:
            current = instance_table.find(self.database, instance.instance_id)
            if current is None or current.execution_id != instance.execution_id:
                return NOTHING
            return EpisodeWriter(connection, instance, self._clock.now()).write(positions, episode)


def _key(row: sqlite3.Row) -> TaskKey:
    return TaskKey(row["instance_id"], row["execution_id"], row["task_id"])
