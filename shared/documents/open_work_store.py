"""Storage of the ingestion backlog, which has a row for each document that needs work, and of the list of
documents being ingested.

These rows are in separate partitions of the document table. A writer stores the backlog row before the state
of the document. The ingestion deletes the backlog row last, and only if its etag is still the one read at the
start. Therefore a crash may leave an unneeded row, but never a document with forgotten work.
"""

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.documents.open_work import Admission, OpenWork, SecondLook
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError
from shared.platform.models import Model
from shared.platform.tables import Entity, Table, revision_of

_OPEN = "~open"
_ADMISSION = "~admission"
_SECOND_LOOKS = "~second-look"
_PLACES_ROW = "places"
_ASKED_ROW = "asked"
_ASKED_EVERY = timedelta(seconds=5)
# After a question, its user counts as waiting for this long, which is about the time to read an answer and
# ask again.
_ASKED_FOR = timedelta(seconds=15)
# Shortest pause between two scans of the backlog.
_SHORTEST_S = 1.0
# Maximum fraction of the time that is spent on scans of the backlog.
_SCAN_SHARE = 0.1


class OpenWorkStore:
    """Store for the ingestion backlog and the documents that have an ingestion place. It caches the backlog,
    so changes by other processes may be missing.

    Attributes:
        changing: lock that a task of this process holds while it changes the admission.
    """

    def __init__(self, table: Table) -> None:
        self.changing = asyncio.Lock()
        self._table = table
        self._copy: dict[str, OpenWork] = {}
        # Documents that this process changed during a scan, which may have read their rows before the change.
        self._touched: set[str] = set()
        self._scan_at = 0.0
        self._asked_at = datetime.min.replace(tzinfo=UTC)
        self._asked_read_at = self._asked_at

    async def put(self, work: OpenWork) -> OpenWork:
        """Store the backlog row of a document, replacing any earlier one, and return it with its etag as
        `revision`.
        """
        revision = await self._put(_entity(_OPEN, work.doc_id, work))
        return self._note(work.model_copy(update={"revision": revision}))

    async def replace(self, work: OpenWork) -> OpenWork:
        """Replace a backlog row that was read earlier. Raises `ConflictError` if the row has changed
        since.
        """
        revision = await self._table.swap(_entity(_OPEN, work.doc_id, work), work.revision)
        return self._note(work.model_copy(update={"revision": revision}))

    async def get(self, doc_id: str) -> OpenWork | None:
        """Return the backlog row of a document, or None if it has no outstanding work."""
        entity = await self._table.get(_OPEN, doc_id)
        if entity is None:
            self._forget(doc_id)
            return None
        return self._note(_work(entity))

    async def delete(self, doc_id: str, revision: str) -> None:
        """Delete a backlog row. Raises `ConflictError` if more work was requested after the row was read."""
        await self._table.delete(_OPEN, doc_id, revision)
        self._forget(doc_id)

    async def backlog(self, *, is_fresh: bool = False) -> Collection[OpenWork]:
        """Return the backlog rows of all documents. Recent changes by other processes may be missing.

        Args:
            is_fresh: whether to read all rows now. By default, reads take at most a tenth of the time.
        """
        began = time.monotonic()
        if is_fresh or began >= self._scan_at:
            self._touched.clear()
            rows = {str(row["RowKey"]): _work(row) async for row in self._table.query(_IN_BACKLOG)}
            mine = {key: self._copy[key] for key in self._touched if key in self._copy}
            self._copy = {key: row for key, row in rows.items() if key not in self._touched} | mine
            ended = time.monotonic()
            self._scan_at = ended + max(_SHORTEST_S, (ended - began) / _SCAN_SHARE)
        return self._copy.values()

    async def admission(self) -> Admission:
        """Return the documents that are being ingested now."""
        entity = await self._table.get(_ADMISSION, _PLACES_ROW)
        if entity is None:
            return Admission()
        admission = Admission.from_stored(str(entity["content"]))
        return admission.model_copy(update={"revision": revision_of(entity)})

    async def admit(self, admission: Admission) -> Admission:
        """Replace the stored list of documents that are being ingested. Raises `ConflictError` if another
        process has changed it since it was read.
        """
        revision = await self._table.swap(_entity(_ADMISSION, _PLACES_ROW, admission), admission.revision)
        return admission.model_copy(update={"revision": revision})

    async def note_fenced(self, doc_id: str) -> None:
        """Record that an ingestion of the document is about to be fenced off. Its blocks are checked later,
        because that ingestion may still be writing.
        """
        look = SecondLook(doc_id=doc_id, fenced_at=datetime.now(UTC))
        await self._table.put(_entity(_SECOND_LOOKS, doc_id, look))

    async def second_looks(self, before: datetime) -> list[SecondLook]:
        """Return the documents with an ingestion that was fenced off at or before the given time."""
        looks = [
            SecondLook.from_stored(str(row["content"])).model_copy(update={"revision": revision_of(row)})
            async for row in self._table.query(f"PartitionKey eq '{_SECOND_LOOKS}'")
        ]
        return [look for look in looks if look.fenced_at <= before]

    async def forget_second_look(self, look: SecondLook) -> None:
        """Delete the record of an ingestion that was fenced off. If another ingestion was fenced off since it
        was read, the record is kept.
        """
        try:
            await self._table.delete(_SECOND_LOOKS, look.doc_id, look.revision)
        except ConflictError:
            return

    async def note_question(self) -> None:
        """Record that a user is waiting for an answer. At most one write occurs every five seconds, and
        storage errors are ignored, because they must not prevent the answer.
        """
        now = datetime.now(UTC)
        if now - self._asked_at >= _ASKED_EVERY:
            self._asked_at = now
            with suppress(GroundworkError):
                await self._put({"PartitionKey": _ADMISSION, "RowKey": _ASKED_ROW, "at": now})

    async def is_asked(self) -> bool:
        """Return whether any user has waited for an answer within the last 15 seconds. Questions sent to
        other workers are noticed with up to five seconds' delay.
        """
        now = datetime.now(UTC)
        if now - max(self._asked_at, self._asked_read_at) >= _ASKED_EVERY:
            self._asked_read_at = now
            entity = await self._table.get(_ADMISSION, _ASKED_ROW)
            if entity is not None:
                self._asked_at = max(self._asked_at, entity["at"])
        return now - self._asked_at < _ASKED_FOR

    async def _put(self, entity: Entity) -> str:
        try:
            return await self._table.put(entity)
        except NotFoundError:
            await self._table.ensure()
            return await self._table.put(entity)

    def _note(self, work: OpenWork) -> OpenWork:
        self._copy[work.doc_id] = work
        self._touched.add(work.doc_id)
        return work

    def _forget(self, doc_id: str) -> None:
        self._copy.pop(doc_id, None)
        self._touched.add(doc_id)


_IN_BACKLOG = f"PartitionKey eq '{_OPEN}'"


def _entity(partition: str, key: str, content: Model) -> dict[str, Any]:
    return {"PartitionKey": partition, "RowKey": key, "content": content.model_dump_json()}


def _work(entity: Mapping[str, Any]) -> OpenWork:
    work = OpenWork.from_stored(str(entity["content"]))
    return work.model_copy(update={"revision": revision_of(entity)})
