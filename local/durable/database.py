"""The SQLite file of the executor: schema, durability and exclusive access.

WAL with synchronous=NORMAL: a commit survives a crash of this process. A power failure may lose the last
commits, but never half of one.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS instances (
    instance_id TEXT PRIMARY KEY,
    execution_id TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    input TEXT,
    output TEXT,
    custom_status TEXT,
    runtime_status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    parent_instance_id TEXT,
    parent_execution_id TEXT,
    parent_task_id INTEGER
) WITHOUT ROWID;
-- One row per episode: the events that it added.
CREATE TABLE IF NOT EXISTS history (
    instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE,
    episode INTEGER NOT NULL,
    events TEXT NOT NULL,
    PRIMARY KEY (instance_id, episode)
) WITHOUT ROWID;
-- Events that came in and that no episode has taken yet.
CREATE TABLE IF NOT EXISTS inbox (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE,
    event TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS inbox_by_instance ON inbox (instance_id, position);
-- Activities that have not ended: a row is removed in the transaction that records the result.
CREATE TABLE IF NOT EXISTS activities (
    instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE,
    task_id INTEGER NOT NULL,
    execution_id TEXT NOT NULL,
    name TEXT NOT NULL,
    input TEXT NOT NULL,
    PRIMARY KEY (instance_id, task_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS timers (
    instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE,
    task_id INTEGER NOT NULL,
    execution_id TEXT NOT NULL,
    fire_at TEXT NOT NULL,
    PRIMARY KEY (instance_id, task_id)
) WITHOUT ROWID;
-- When the executor was last known to run. The row is deleted when it stops gracefully.
CREATE TABLE IF NOT EXISTS heartbeat (id INTEGER PRIMARY KEY CHECK (id = 1), at REAL NOT NULL);
"""
_SCHEMA_VERSION = 1


class StoreInUse(Exception):  # noqa: N818  # a mistake of the user, who runs two stacks on one folder
    """Error raised if another process has the SQLite file open."""


class Database:
    """One SQLite connection for use by a single thread. All writes happen inside `transaction`."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it with its schema, and lock it for this process.

        Raises:
            StoreInUse: if another process has the file open. Two executors on one store would run all work
                twice.
            ValueError: if the file has a different schema version.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        self._connection.row_factory = sqlite3.Row
        try:
            self._prepare(path)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, path: Path) -> None:
        try:
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _SCHEMA_VERSION):
                raise ValueError(
                    f"{path} has schema version {version}, not {_SCHEMA_VERSION}; remove the file."
                )
            with self.transaction() as database:
                for statement in _SCHEMA.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreInUse(f"{path} is in use by another process.") from error
            raise

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction, which is committed on exit and rolled back on an
        exception.
        """
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def rows(self, sql: str, *parameters: str | int | None) -> list[sqlite3.Row]:
        """Return all rows of a read-only statement."""
        return self._connection.execute(sql, parameters).fetchall()
