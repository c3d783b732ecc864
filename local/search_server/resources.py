"""What is defined beside the indexes, by kind and name: aliases, synonym maps, data sources."""

import json
import sqlite3
import threading
from pathlib import Path

from local.search_server.catalog import check_precondition, new_etag
from local.search_server.errors import RequestError, conflict, not_found
from local.search_server.schema import JsonObject

_TABLE = """
CREATE TABLE IF NOT EXISTS resources (kind TEXT, name TEXT, etag TEXT NOT NULL, body TEXT NOT NULL,
PRIMARY KEY (kind, name))
"""


class Resources:
    """Every method may be called from any thread.

    Raises:
        RequestError: 404 unknown, 409 exists, 412 another etag, 400 no name.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(_TABLE)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._connection.close()

    def all(self, kind: str) -> list[JsonObject]:
        with self._lock:
            found = self._connection.execute(
                "SELECT etag, body FROM resources WHERE kind = ? ORDER BY name", (kind,)
            ).fetchall()
        return [_echo(etag, body) for etag, body in found]

    def has(self, kind: str, name: str) -> bool:
        with self._lock:
            return self._row(kind, name) is not None

    def get(self, kind: str, name: str) -> JsonObject:
        with self._lock:
            row = self._row(kind, name)
        if row is None:
            raise not_found(f"No {kind} with the name '{name}' was found in the service.")
        return _echo(*row)

    def create(self, kind: str, body: JsonObject) -> JsonObject:
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise RequestError("The request is invalid. Details: a name is required.")
        with self._lock:
            if self._row(kind, name) is not None:
                raise conflict(f"'{name}' already exists.")
            return self._put(kind, name, body)

    def create_or_update(
        self, kind: str, name: str, body: JsonObject, *, if_match: str | None, if_none_match: str | None
    ) -> tuple[JsonObject, bool]:
        """The stored definition, and whether it is new."""
        with self._lock:
            row = self._row(kind, name)
            check_precondition(row[0] if row else None, if_match, if_none_match)
            return self._put(kind, name, body), row is None

    def delete(self, kind: str, name: str, *, if_match: str | None, if_none_match: str | None) -> None:
        with self._lock:
            row = self._row(kind, name)
            if row is None:
                raise not_found(f"No {kind} with the name '{name}' was found in the service.")
            check_precondition(row[0], if_match, if_none_match)
            self._connection.execute("DELETE FROM resources WHERE kind = ? AND name = ?", (kind, name))

    def _row(self, kind: str, name: str) -> tuple[str, str] | None:
        query = "SELECT etag, body FROM resources WHERE kind = ? AND name = ?"
        row = self._connection.execute(query, (kind, name)).fetchone()
        return None if row is None else (str(row[0]), str(row[1]))

    def _put(self, kind: str, name: str, body: JsonObject) -> JsonObject:
        etag = new_etag()
        kept = json.dumps({key: value for key, value in body.items() if not key.startswith("@odata.")})
        self._connection.execute(
            "INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?)", (kind, name, etag, kept)
        )
        return _echo(etag, kept)


def _echo(etag: str, body: str) -> JsonObject:
    return {"@odata.etag": etag, **json.loads(body)}
