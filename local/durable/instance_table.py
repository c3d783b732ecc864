"""The table of instances and their pending events: read, list, insert and delete."""

import base64
import binascii
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from local.durable.database import Database
from local.durable.history import EventType, HistoryEvent
from local.durable.instances import ENDED, Instance, InstanceExists, ParentTask, RuntimeStatus

_PAGE = """
SELECT * FROM instances
WHERE (:created_from IS NULL OR created_at >= :created_from)
  AND (:created_to IS NULL OR created_at <= :created_to)
  AND (:statuses IS NULL OR runtime_status IN (SELECT value FROM json_each(:statuses)))
  AND (:id_prefix IS NULL OR substr(instance_id, 1, length(:id_prefix)) = :id_prefix)
  AND instance_id > :after
ORDER BY instance_id LIMIT :size
"""


_NO_LIMIT = -1


@dataclass(frozen=True)
class InstanceFilter:
    """Criteria for listing instances. A criterion of None matches everything. Times are ISO 8601 text, and
    both limits are inclusive.
    """

    created_from: str | None = None
    created_to: str | None = None
    statuses: Sequence[str] | None = None
    id_prefix: str | None = None


@dataclass(frozen=True)
class InstancePage:
    """A page of instances. `continuation_token` is None on the last page."""

    instances: list[Instance]
    continuation_token: str | None


def find(database: Database, instance_id: str) -> Instance | None:
    rows = database.rows("SELECT * FROM instances WHERE instance_id = ?", instance_id)
    return _instance(rows[0]) if rows else None


def list_page(database: Database, criteria: InstanceFilter, size: int, token: str | None) -> InstancePage:
    """Return a page of matching instances, ordered by instance id as in Azure Storage.

    Raises:
        ValueError: the continuation token is invalid.
    """
    after = _decode_token(token) if token else ""
    with database.transaction() as connection:
        rows = _select(connection, criteria, size=size + 1, after=after)
    instances = [_instance(row) for row in rows[:size]]
    more = len(rows) > size
    return InstancePage(instances, _encode_token(instances[-1].instance_id) if more else None)


def insert(connection: sqlite3.Connection, instance: Instance) -> None:
    """Insert an instance. An ended instance with the same id is first deleted with all its data.

    Raises:
        InstanceExists: an instance with the same id has not ended.
    """
    row = connection.execute(
        "SELECT runtime_status FROM instances WHERE instance_id = ?", (instance.instance_id,)
    ).fetchone()
    if row is not None:
        status = RuntimeStatus(row[0])
        if status not in ENDED:
            raise InstanceExists(status)
        remove(connection, instance.instance_id)
    parent = instance.parent
    values = (
        instance.instance_id,
        instance.execution_id,
        instance.name,
        instance.version,
        instance.input,
        instance.output,
        instance.custom_status,
        instance.runtime_status,
        instance.created_at,
        instance.updated_at,
        parent.instance_id if parent else None,
        parent.execution_id if parent else None,
        parent.task_id if parent else None,
    )
    connection.execute("INSERT INTO instances VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def remove(connection: sqlite3.Connection, instance_id: str) -> None:
    """Delete an instance with its history, pending events, activities and timers."""
    connection.execute("DELETE FROM instances WHERE instance_id = ?", (instance_id,))


def purge(database: Database, criteria: InstanceFilter) -> int:
    """Delete all matching instances that have ended, and return their number."""
    with database.transaction() as connection:
        rows = _select(connection, criteria, size=_NO_LIMIT)
        ended = [row["instance_id"] for row in rows if RuntimeStatus(row["runtime_status"]) in ENDED]
        for instance_id in ended:
            remove(connection, instance_id)
    return len(ended)


def _select(
    connection: sqlite3.Connection, criteria: InstanceFilter, *, size: int, after: str = ""
) -> list[sqlite3.Row]:
    parameters = {
        "created_from": criteria.created_from,
        "created_to": criteria.created_to,
        "statuses": None if criteria.statuses is None else json.dumps(list(criteria.statuses)),
        "id_prefix": criteria.id_prefix,
        "after": after,
        "size": size,
    }
    return connection.execute(_PAGE, parameters).fetchall()


def _instance(row: sqlite3.Row) -> Instance:
    parent = None
    if row["parent_instance_id"] is not None:
        parent = ParentTask(row["parent_instance_id"], row["parent_execution_id"], row["parent_task_id"])
    return Instance(
        instance_id=row["instance_id"],
        execution_id=row["execution_id"],
        name=row["name"],
        version=row["version"],
        input=row["input"],
        runtime_status=RuntimeStatus(row["runtime_status"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        output=row["output"],
        custom_status=row["custom_status"],
        parent=parent,
    )


def _encode_token(instance_id: str) -> str:
    return base64.urlsafe_b64encode(instance_id.encode()).decode()


def _decode_token(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("The continuation token is not valid.") from error


@dataclass(frozen=True)
class WaitingEvent:
    """A pending event. `position` orders events by arrival across all instances."""

    position: int
    event: HistoryEvent


def create(connection: sqlite3.Connection, instance: Instance) -> None:
    """Insert an instance with a pending ExecutionStarted event.

    Raises:
        InstanceExists: an instance with this id has not ended.
    """
    insert(connection, instance)
    put(connection, instance.instance_id, started_event(instance, instance.created_at))


def started_event(instance: Instance, timestamp: str) -> HistoryEvent:
    return HistoryEvent(
        event_type=EventType.EXECUTION_STARTED,
        timestamp=timestamp,
        name=instance.name,
        version=instance.version,
        input=instance.input,
    )


def post(connection: sqlite3.Connection, instance_id: str, event: HistoryEvent) -> bool:
    """Add a pending event to an instance. Return False if the instance doesn't exist or has ended."""
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
