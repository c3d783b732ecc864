"""Events that wait for an instance's next episode, and the instances that begin with one."""

import sqlite3
from dataclasses import dataclass

from local.durable import instance_table
from local.durable.history import EventType, HistoryEvent
from local.durable.instances import ENDED, Instance, RuntimeStatus


@dataclass(frozen=True)
class WaitingEvent:
    """position: the order of arrival over all instances."""

    position: int
    event: HistoryEvent


def create(connection: sqlite3.Connection, instance: Instance) -> None:
    """Add an instance with its ExecutionStarted waiting.

    Raises:
        InstanceExists: an instance with this id has not ended.
    """
    instance_table.insert(connection, instance)
    put(connection, instance.instance_id, started(instance, instance.created_at))


def started(instance: Instance, timestamp: str) -> HistoryEvent:
    return HistoryEvent(
        event_type=EventType.EXECUTION_STARTED,
        timestamp=timestamp,
        name=instance.name,
        version=instance.version,
        input=instance.input,
    )


def post(connection: sqlite3.Connection, instance_id: str, event: HistoryEvent) -> bool:
    """Let an event wait for an instance; False when there is none, or it has ended."""
    row = connection.execute(
        "SELECT runtime_status FROM instances WHERE instance_id = ?", (instance_id,)
    ).fetchone()
    if row is None or RuntimeStatus(row[0]) in ENDED:
        return False
    put(connection, instance_id, event)
    return True


def put(connection: sqlite3.Connection, instance_id: str, event: HistoryEvent) -> None:
    connection.execute(
        "INSERT INTO inbox (instance_id, event) VALUES (?, ?)",
        (instance_id, event.model_dump_json(by_alias=True, exclude_none=True)),
    )
