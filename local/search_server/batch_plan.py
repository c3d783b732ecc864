"""What a batch of actions comes to: per key the remaining document, per action its outcome. Writes nothing.

Actions are carried out in order, each seeing the ones before it, so one key may occur several times.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from local.search_server import store
from local.search_server.documents import Action, ActionKind, Document, merged, uploaded
from local.search_server.schema import Schema


@dataclass(frozen=True)
class Outcome:
    """What became of one action; 200 changed or already gone, 201 new, 404 nothing to merge into."""

    key: str
    status: int
    error: str | None = None


class BatchPlan:
    """Reads the store through `connection`; the caller holds the write lock until the plan is written."""

    def __init__(self, schema: Schema, connection: sqlite3.Connection) -> None:
        self._schema = schema
        self._connection = connection
        self._old_slots: dict[str, int | None] = {}
        self._remaining: dict[str, Document | None] = {}

    def carry_out(self, action: Action) -> Outcome:
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
            self._remaining[key] = uploaded(self._schema, action)
            return Outcome(key, 200 if exists else 201)
        if not exists:
            return Outcome(key, 404, "Document not found.")
        self._remaining[key] = merged(self._schema, self._document(key), action)
        return Outcome(key, 200)

    def documents(self) -> list[Document]:
        """Documents to insert."""
        return [document for document in self._remaining.values() if document is not None]

    def replaced_slots(self) -> Sequence[int]:
        """Slots to delete: changed and deleted documents."""
        slots = (self._old_slots[key] for key in self._remaining)
        return [slot for slot in slots if slot is not None]

    def _document(self, key: str) -> Document:
        document = self._remaining.get(key)
        slot = self._old_slots[key]
        if document is None and slot is not None:
            return store.read_document(self._connection, slot)
        return document or Document({})
