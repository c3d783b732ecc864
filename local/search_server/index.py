"""A search index: a store, the data derived from it, and consistent views for readers during writes.

A write is one transaction. Its effects on store, text index and vectors become visible at the same instant,
so a reader's transaction and its in-memory snapshot always contain the same documents.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import tantivy
from tantivy import Query, Searcher

from local.search_server import store
from local.search_server import store as rows
from local.search_server.definition import IndexDefinition
from local.search_server.documents import Action, ActionKind, Document, document_of_upload, merge_into
from local.search_server.errors import RequestError, not_found
from local.search_server.filter_sql import compile_filter
from local.search_server.schema import Field, Schema
from local.search_server.store import IndexStore
from local.search_server.text_index import Mask, Slots, TextIndex
from local.search_server.text_query import QueryCompiler, TextQuestion
from local.search_server.vectors import VectorColumn, VectorRows


@dataclass(frozen=True)
class Outcome:
    """The result of one indexing action. `status` is 200 (changed or deleted), 201 (new) or 404 (no document
    to merge into).
    """

    key: str
    status: int
    error: str | None = None


class BatchPlan:
    """The effect of a batch on the index, computed without writing. The caller must hold the write lock until
    the plan is written.
    """

    def __init__(self, schema: Schema, connection: sqlite3.Connection) -> None:
        self._schema = schema
        self._connection = connection
        self._old_slots: dict[str, int | None] = {}
        self._remaining: dict[str, Document | None] = {}

    def add(self, action: Action) -> Outcome:
        key = action.key
        if key not in self._old_slots:
            self._old_slots[key] = store.find_slot(self._connection, key)
        exists = (
            self._remaining[key] is not None if key in self._remaining else self._old_slots[key] is not None
        )
        if action.kind is ActionKind.DELETE:
            self._remaining[key] = None
            return Outcome(key, 200)
        if action.kind is ActionKind.UPLOAD or (action.kind is ActionKind.MERGE_OR_UPLOAD and not exists):
            self._remaining[key] = document_of_upload(self._schema, action)
            return Outcome(key, 200 if exists else 201)
        if not exists:
            return Outcome(key, 404, "Document not found.")
        self._remaining[key] = merge_into(self._schema, self._document(key), action)
        return Outcome(key, 200)

    def documents(self) -> list[Document]:
        """Return the documents to insert."""
        return [document for document in self._remaining.values() if document is not None]

    def replaced_slots(self) -> Sequence[int]:
        """Return the slots to delete: the old versions of changed and deleted documents."""
        slots = (self._old_slots[key] for key in self._remaining)
        return [slot for slot in slots if slot is not None]

    def _document(self, key: str) -> Document:
        document = self._remaining.get(key)
        slot = self._old_slots[key]
        if document is None and slot is not None:
            return store.read_document(self._connection, slot)
        return document or Document({})


# Maximum number of cached masks. A mask takes one byte per slot, so they take 13 MB in all for 100,000
# documents.
MAX_CACHED_FILTERS: Final = 128


@dataclass(frozen=True)
class Selection:
    """A set of documents, as a mask over all slots and as a sorted array of slots."""

    mask: Mask
    slots: Slots


@dataclass(frozen=True)
class Snapshot:
    """The in-memory data after one write. `selections` caches the result of each filter by its text."""

    layout: tantivy.Schema
    searcher: Searcher
    vectors: dict[str, VectorRows]
    alive: Selection
    selections: dict[str, Selection] = field(default_factory=dict)


class View:
    """The data that one request sees: a snapshot and a store transaction with the same documents."""

    def __init__(self, schema: Schema, snapshot: Snapshot, connection: sqlite3.Connection) -> None:
        self.schema = schema
        self.snapshot = snapshot
        self.connection = connection

    @property
    def searcher(self) -> Searcher:
        return self.snapshot.searcher

    def select(self, filter_text: str | None) -> Selection:
        """Return the documents that pass a filter, or all documents if there is no filter.

        Raises:
            RequestError: 400, see `compile_filter`.
        """
        if filter_text is None or not filter_text.strip():
            return self.snapshot.alive
        cached = self.snapshot.selections.get(filter_text)
        if cached is not None:
            return cached
        condition = compile_filter(self.schema, filter_text)
        try:
            slots = rows.slots_of(self.connection.execute(condition.text, condition.values))
        except sqlite3.OperationalError as error:
            raise RequestError(f"Invalid expression: the filter is too complex ({error}).") from error
        selection = selection_of(slots, len(self.snapshot.alive.mask))
        if len(self.snapshot.selections) >= MAX_CACHED_FILTERS:
            self.snapshot.selections.clear()
        self.snapshot.selections[filter_text] = selection
        return selection

    def compile(self, question: TextQuestion) -> Query:
        return QueryCompiler(self.schema, self.snapshot.layout, question).compile()


class Index:
    """A thread-safe search index. Read through `view`, write through `apply`."""

    def __init__(self, schema: Schema, store: IndexStore, etag: str) -> None:
        self.schema = schema
        self.etag = etag
        self._store = store
        self._write_lock = threading.Lock()
        self._publish_lock = threading.RLock()
        self._closed = False
        self._derive_everything()

    def close(self) -> None:
        with self._write_lock, self._publish_lock:
            self._closed = True
            self._store.close()

    @contextmanager
    def view(self) -> Iterator[View]:
        """Yield a consistent view of the documents, which later writes don't change.

        Raises:
            RequestError: 404, if the index has been deleted.
        """
        with self._publish_lock:
            if self._closed:
                raise not_found("The index was deleted.")
            view = View(self.schema, self._snapshot, self._store.borrow_reader())
        try:
            yield view
        finally:
            self._store.return_reader(view.connection)

    def apply(self, actions: Sequence[Action]) -> list[Outcome]:
        """Apply a batch in order and in one transaction. When this returns, the changes are committed and
        searchable.
        """
        with self._write_lock:
            with self.view() as view:
                plan = BatchPlan(self.schema, view.connection)
                outcomes = [plan.add(action) for action in actions]
            additions = [(self._next_slot + at, document) for at, document in enumerate(plan.documents())]
            removed = plan.replaced_slots()
            if additions or removed:
                self._write(additions, removed)
            return outcomes

    def redefine(self, schema: Schema, etag: str) -> None:
        """Change the definition and keep all documents. Derived data is rebuilt if the change affects it."""
        # The lock blocks readers, because a view must never combine the column numbers of the old schema with
        # the new tables.
        with self._write_lock, self._publish_lock:
            derives = _derives_alike(self.schema.definition, schema.definition)
            with self._store.writing() as connection:
                define(connection, schema, etag, rebuild=not derives)
            self.schema, self.etag = schema, etag
            if not derives:
                self._derive_everything()

    def count(self) -> int:
        return len(self._snapshot.alive.slots)

    def size_bytes(self) -> tuple[int, int]:
        """Return the bytes on disk and the bytes of vectors in memory."""
        return self._store.size_bytes(), sum(column.size_bytes() for column in self._columns.values())

    def _write(self, additions: Sequence[tuple[int, Document]], removed: Sequence[int]) -> None:
        try:
            with self._store.writing() as connection:
                rows.delete_slots(connection, removed)
                rows.insert_documents(connection, self.schema, additions)
                snapshot = self._derive(additions, removed)
                # Readers open their transaction and snapshot under this lock, so both precede or both follow
                # this commit.
                with self._publish_lock:
                    connection.execute("COMMIT")
                    self._snapshot = snapshot
        except BaseException:
            # The derived data may contain changes that the store has rolled back, so rebuild all of it.
            self._derive_everything()
            raise

    def _derive(self, additions: Sequence[tuple[int, Document]], removed: Sequence[int]) -> Snapshot:
        self._text.delete(removed)
        self._text.add((slot, document.body) for slot, document in additions)
        self._next_slot += len(additions)
        mask = np.zeros(self._next_slot, dtype=np.bool_)
        before = self._snapshot.alive.mask
        mask[: len(before)] = before
        mask[list(removed)] = False
        mask[[slot for slot, _ in additions]] = True
        for path, column in self._columns.items():
            for slot, document in additions:
                if path in document.vectors:
                    column.append(slot, document.vectors[path])
            column.drop_dead(mask)
        return self._snapshot_of(mask)

    def _derive_everything(self) -> None:
        """Rebuild the text index and the vectors from the store."""
        connection = self._store.borrow_reader()
        try:
            slots = rows.live_slots(connection)
            self._next_slot = int(slots.max()) + 1 if len(slots) else 0
            self._text = TextIndex(self.schema)
            self._text.add(rows.iterate_bodies(connection))
            self._columns = {one.path: _column(connection, one) for one in self.schema.vector_fields}
        finally:
            self._store.return_reader(connection)
        snapshot = self._snapshot_of(selection_of(slots, self._next_slot).mask)
        with self._publish_lock:
            self._snapshot = snapshot

    def _snapshot_of(self, mask: Mask) -> Snapshot:
        vectors = {path: column.rows() for path, column in self._columns.items()}
        alive = Selection(mask, np.flatnonzero(mask))
        return Snapshot(self._text.layout, self._text.commit(), vectors, alive)


def selection_of(slots: Slots, slot_count: int) -> Selection:
    mask = np.zeros(slot_count, dtype=np.bool_)
    mask[slots] = True
    return Selection(mask, np.flatnonzero(mask))


def define(connection: sqlite3.Connection, schema: Schema, etag: str, *, rebuild: bool = True) -> None:
    """Store the definition and, if `rebuild`, recreate the derived tables for it."""
    rows.write_meta(connection, "definition", schema.definition.model_dump_json(by_alias=True))
    rows.write_meta(connection, "etag", etag)
    if rebuild:
        rows.rebuild_derived_tables(connection, schema)


def _derives_alike(one: IndexDefinition, other: IndexDefinition) -> bool:
    """Return whether two definitions need the same tables, text index and vectors."""
    return (one.fields, one.suggesters, one.vector_search) == (
        other.fields,
        other.suggesters,
        other.vector_search,
    )


def _column(connection: sqlite3.Connection, one: Field) -> VectorColumn:
    column = VectorColumn(one.definition.dimensions or 0)
    for slot, vector in rows.iterate_vectors(connection, one.path):
        column.append(slot, vector)
    return column
