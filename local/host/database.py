"""The host's SQLite file, whose contents survive a kill -9."""

import sqlite3
from pathlib import Path


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """Open the file, creating it with its tables if needed. Statements outside BEGIN commit at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    # With the write-ahead log, a killed process loses no committed transaction.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.executescript(schema)
    return connection
