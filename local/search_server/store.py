"""The SQLite file of one index, which is its system of record: documents and rows derived from them. It
contains no code for queries or HTTP.

A slot identifies one version of one document. A changed document gets a new slot, and slots are never reused
within a process, so a slot that a reader remembers never refers to different content.
"""

import json
import queue
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from local.search_server import edm
from local.search_server.documents import Document
from local.search_server.edm import SqlValue, Vector
from local.search_server.schema import JsonObject, Schema, values_at

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS documents (slot INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (slot INTEGER, field TEXT, vector BLOB NOT NULL,
    PRIMARY KEY (slot, field));
"""
_BATCH_OF_SLOTS = 500  # number of bound parameters per statement; SQLite allows 32,766
_CACHE_KIB = 65_536  # enough for the columns of 100,000 blocks and the pages of recent documents


class IndexStore:
    """Access to the file of one index, for many readers and one writer. The caller must ensure that writes
    don't overlap.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = self._connect()
        self._writer.executescript(_TABLES)
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()

    def close(self) -> None:
        self._writer.close()
        while not self._readers.empty():
            self._readers.get_nowait().close()

    def size_bytes(self) -> int:
        log = self.path.with_name(self.path.name + "-wal")
        return self.path.stat().st_size + (log.stat().st_size if log.exists() else 0)

    def borrow_reader(self) -> sqlite3.Connection:
        """Return a connection in a read transaction that sees exactly the last commit. The caller must return
        it with `return_reader`.
        """
        connection = self._connect() if self._readers.empty() else self._take_reader()
        connection.execute("BEGIN")
        # SQLite fixes the snapshot at the first read, not at BEGIN.
        connection.execute("SELECT 1 FROM meta LIMIT 1").fetchone()
        return connection

    def return_reader(self, connection: sqlite3.Connection) -> None:
        connection.rollback()
        self._readers.put(connection)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the write connection in a transaction. It is committed at the end of the block unless the
        block has committed it, and rolled back on an exception.
        """
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield self._writer
            if self._writer.in_transaction:
                self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _take_reader(self) -> sqlite3.Connection:
        try:
            return self._readers.get_nowait()
        except queue.Empty:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL survives a process crash; only a power failure may lose the last transactions.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA busy_timeout = 10000")
        return connection


def read_meta(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def write_meta(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def open_store(path: Path) -> tuple[IndexStore, str | None, str | None]:
    """Open a store. Return it with its definition (JSON) and etag, which are None if creation was
    interrupted.
    """
    store = IndexStore(path)
    reader = store.borrow_reader()
    try:
        return store, read_meta(reader, "definition"), read_meta(reader, "etag")
    finally:
        store.return_reader(reader)


def rebuild_derived_tables(connection: sqlite3.Connection, schema: Schema) -> None:
    """Recreate the derived tables `columns` and `elements` for this schema from the stored documents."""
    names = "".join(f", {field.column}" for field in schema.column_fields)
    connection.execute("DROP TABLE IF EXISTS columns")
    connection.execute("DROP TABLE IF EXISTS elements")
    # Columns have no declared type, so that SQLite compares values as bound, without conversion.
    connection.execute(f"CREATE TABLE columns (slot INTEGER PRIMARY KEY{names})")
    connection.execute(
        "CREATE TABLE elements (field INTEGER, value, slot INTEGER, PRIMARY KEY (field, value, slot))"
        " WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX elements_by_slot ON elements (slot)")
    bodies = connection.execute("SELECT slot, body FROM documents")
    for rows in iter(lambda: bodies.fetchmany(1000), []):
        _insert_derived(connection, schema, [(int(slot), json.loads(body)) for slot, body in rows])


def insert_documents(
    connection: sqlite3.Connection, schema: Schema, rows: Sequence[tuple[int, Document]]
) -> None:
    key = schema.key.path
    connection.executemany(
        "INSERT INTO documents VALUES (?, ?, ?)",
        [(slot, row.body[key], json.dumps(row.body, ensure_ascii=False)) for slot, row in rows],
    )
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?, ?)",
        [(slot, path, vector.tobytes()) for slot, row in rows for path, vector in row.vectors.items()],
    )
    _insert_derived(connection, schema, [(slot, row.body) for slot, row in rows])


def delete_slots(connection: sqlite3.Connection, slots: Iterable[int]) -> None:
    doomed = [(slot,) for slot in slots]
    for table in ("documents", "columns", "elements", "vectors"):
        connection.executemany(f"DELETE FROM {table} WHERE slot = ?", doomed)  # noqa: S608 - four literal names


def find_slot(connection: sqlite3.Connection, key: str) -> int | None:
    row = connection.execute("SELECT slot FROM documents WHERE key = ?", (key,)).fetchone()
    return None if row is None else int(row[0])


def read_document(connection: sqlite3.Connection, slot: int) -> Document:
    (body,) = connection.execute("SELECT body FROM documents WHERE slot = ?", (slot,)).fetchone()
    return Document(json.loads(body), read_vectors(connection, [slot]).get(slot, {}))


def read_bodies(connection: sqlite3.Connection, slots: Sequence[int]) -> dict[int, JsonObject]:
    bodies: dict[int, JsonObject] = {}
    for part in _parts(slots):
        query = f"SELECT slot, body FROM documents WHERE slot IN ({_marks(part)})"  # noqa: S608 - question marks only
        bodies.update((int(slot), json.loads(body)) for slot, body in connection.execute(query, part))
    return bodies


def read_vectors(connection: sqlite3.Connection, slots: Sequence[int]) -> dict[int, dict[str, Vector]]:
    """Return the vectors of the given slots, by slot and field path."""
    vectors: dict[int, dict[str, Vector]] = {}
    for part in _parts(slots):
        query = f"SELECT slot, field, vector FROM vectors WHERE slot IN ({_marks(part)})"  # noqa: S608 - question marks only
        for slot, path, blob in connection.execute(query, part):
            vectors.setdefault(int(slot), {})[path] = np.frombuffer(blob, dtype=np.float32)
    return vectors


def iterate_bodies(connection: sqlite3.Connection) -> Iterator[tuple[int, JsonObject]]:
    for slot, body in connection.execute("SELECT slot, body FROM documents ORDER BY slot"):
        yield int(slot), json.loads(body)


def iterate_vectors(connection: sqlite3.Connection, path: str) -> Iterator[tuple[int, Vector]]:
    query = "SELECT slot, vector FROM vectors WHERE field = ? ORDER BY slot"
    for slot, blob in connection.execute(query, (path,)):
        yield int(slot), np.frombuffer(blob, dtype=np.float32)


def live_slots(connection: sqlite3.Connection) -> npt.NDArray[np.int64]:
    return slots_of(connection.execute("SELECT slot FROM documents"))


def slots_of(cursor: sqlite3.Cursor) -> npt.NDArray[np.int64]:
    """Return the first column of all rows as an array of slots."""
    return np.fromiter((row[0] for row in cursor), dtype=np.int64)


def _insert_derived(
    connection: sqlite3.Connection, schema: Schema, rows: Sequence[tuple[int, JsonObject]]
) -> None:
    marks = ", ".join("?" * (1 + len(schema.column_fields)))
    connection.executemany(
        f"INSERT INTO columns VALUES ({marks})",  # noqa: S608 - question marks only
        [(slot, *_columns_of(schema, body)) for slot, body in rows],
    )
    connection.executemany(
        # A collection may repeat a value, but filters and facets count it once per document.
        "INSERT OR IGNORE INTO elements VALUES (?, ?, ?)",
        [(field, value, slot) for slot, body in rows for field, value in _elements_of(schema, body)],
    )


def _columns_of(schema: Schema, body: JsonObject) -> Iterator[SqlValue]:
    for field in schema.column_fields:
        values = values_at(body, field.path)
        yield edm.sql_value(field.type, values[0]) if values else None


def _elements_of(schema: Schema, body: JsonObject) -> Iterator[tuple[int, SqlValue]]:
    for field in schema.element_fields:
        for value in values_at(body, field.path):
            yield field.number, edm.sql_value(field.element_type or "", value)


def _parts(slots: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(slots), _BATCH_OF_SLOTS):
        yield [int(slot) for slot in slots[start : start + _BATCH_OF_SLOTS]]


def _marks(part: Sequence[int]) -> str:
    return ", ".join("?" * len(part))
