"""The SQLite file of the host. Committed data survives a kill of the process."""

import sqlite3
from pathlib import Path


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """Open an SQLite file and create its missing tables with `schema`. The connection is in autocommit
    mode.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    # With a write-ahead log, a killed process loses no committed transaction.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.executescript(schema)
    return connection
