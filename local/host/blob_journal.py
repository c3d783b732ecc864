"""Journal of blob versions and their pending events, in SQLite. Every operation is one transaction.

The receipt of a blob version and its event are written together, so a crash neither loses an event nor
creates it twice. Events are handled at least once.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.host.database import open_database

SCHEMA = """
CREATE TABLE IF NOT EXISTS blob_receipts (
    function TEXT NOT NULL, place TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT NULL,
    PRIMARY KEY (function, place, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blob_events (
    id INTEGER PRIMARY KEY, function TEXT NOT NULL, place TEXT NOT NULL, name TEXT NOT NULL, etag TEXT NOT
    NULL, tries INTEGER NOT NULL DEFAULT 0, visible_at REAL NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS blob_deletions (id INTEGER PRIMARY KEY, message TEXT NOT NULL);
"""


@dataclass(frozen=True)
class BlobVersion:
    """A version of a blob that one function must handle. `place` is connection/container."""

    function: str
    place: str
    name: str
    etag: str


@dataclass(frozen=True)
class BlobEvent:
    """A pending blob event. `tries` is the number of attempts started so far."""

    event_id: int
    version: BlobVersion
    tries: int


@dataclass(frozen=True)
class Deletion:
    """A message about a deleted blob, not sent to the deletion queue yet."""

    deletion_id: int
    message: str


class BlobJournal:
    """The store of blob receipts (etags that have already raised an event) and pending events, for one
    process and one event loop.
    """

    def __init__(self, path: Path) -> None:
        self._database = open_database(path, SCHEMA)
        rows = self._database.execute("SELECT function, place, name, etag FROM blob_receipts")
        # Kept in memory, because every listing (up to two per second) is compared with it. The nested keys
        # are place, blob name and function; the value is an etag.
        self._etags: dict[str, dict[str, dict[str, str]]] = {}  # place -> name -> function -> etag
        for function, place, name, etag in rows:
            self._remember(BlobVersion(function, place, name, etag))

    def record(self, versions: Iterable[BlobVersion]) -> int:
        """Store an event for each version whose etag is new. Return the number of events."""
        new = [version for version in versions if self._etag(version) != version.etag]
        if not new:
            return 0
        with self._transaction() as database:
            for version in new:
                row = (version.function, version.place, version.name, version.etag)
                database.execute("INSERT OR REPLACE INTO blob_receipts VALUES (?, ?, ?, ?)", row)
                database.execute(
                    "INSERT INTO blob_events (function, place, name, etag) VALUES (?, ?, ?, ?)", row
                )
        for version in new:
            self._remember(version)
        return len(new)

    def names(self, place: str) -> set[str]:
        """Return the names of all blobs with a receipt for the place."""
        return set(self._etags.get(place, ()))

    def record_deletion(self, place: str, name: str, message: str) -> None:
        """Delete the receipts of a deleted blob and store a message to send. If a blob with this name is
        created again, it raises a new event.
        """
        with self._transaction() as database:
            database.execute("DELETE FROM blob_receipts WHERE place = ? AND name = ?", (place, name))
            database.execute("INSERT INTO blob_deletions (message) VALUES (?)", (message,))
        self._etags.get(place, {}).pop(name, None)

    def due_events(self, limit: int, excluded: Iterable[int]) -> list[BlobEvent]:
        """Return up to `limit` events that are due, oldest first. Events in `excluded` are already in
        progress.
        """
        if limit <= 0:
            return []
        query = (
            "SELECT id, function, place, name, etag, tries FROM blob_events WHERE visible_at <= ?"
            " AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?"
        )
        rows = self._database.execute(query, (time.time(), json.dumps(list(excluded)), limit))
        return [BlobEvent(row[0], BlobVersion(*row[1:5]), row[5]) for row in rows]

    def begin(self, event: BlobEvent) -> None:
        """Count an attempt before it starts, so that a blob that crashes the process is also
        dead-lettered.
        """
        self._database.execute("UPDATE blob_events SET tries = tries + 1 WHERE id = ?", (event.event_id,))

    def finish(self, event: BlobEvent) -> None:
        self._database.execute("DELETE FROM blob_events WHERE id = ?", (event.event_id,))

    def postpone(self, event: BlobEvent, delay_s: float) -> None:
        """Postpone the next attempt at an event by `delay_s` seconds."""
        self._database.execute(
            "UPDATE blob_events SET visible_at = ? WHERE id = ?", (time.time() + delay_s, event.event_id)
        )

    def pending_deletions(self) -> list[Deletion]:
        rows = self._database.execute("SELECT id, message FROM blob_deletions ORDER BY id LIMIT 100")
        return [Deletion(*row) for row in rows]

    def finish_deletion(self, deletion: Deletion) -> None:
        self._database.execute("DELETE FROM blob_deletions WHERE id = ?", (deletion.deletion_id,))

    def close(self) -> None:
        self._database.close()

    def _etag(self, version: BlobVersion) -> str | None:
        return self._etags.get(version.place, {}).get(version.name, {}).get(version.function)

    def _remember(self, version: BlobVersion) -> None:
        self._etags.setdefault(version.place, {}).setdefault(version.name, {})[version.function] = (
            version.etag
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")
