"""Fenced access to a document's row during an ingestion, and functions that compute new states of the row.

`ingest-{doc_id}` is the only orchestration instance that ingests a document, so Durable Functions acts as
the lock. Each execution writes a token, its fence, into the document's row, and each write by its steps
checks it, so a step that outlives its execution changes nothing. Events and changes by users increase the
wish counter in the row (`row_changes`); an ingestion is finished when it has read the newest value. All
writes are conditional on the row's etag, so no change is lost.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from shared.access.daily_use import Usage
from shared.documents.ids import document_id, folder_of, has_own_sidecar, version_folder
from shared.documents.open_work import OpenWork, Urgency
from shared.documents.state import DocumentState, PhaseTime
from shared.documents.state_store import DocumentStore
from shared.ingestion.models import Closed, CloseRequest, IngestStep, RestRequest
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobProperties
from shared.platform.errors import (
    ConflictError,
    DependencyError,
    GroundworkError,
    ModelFixableError,
)
from shared.retrieval.models import DocumentStatus

# Number of failed ingestions of the same bytes after which a document is quarantined.
MAX_TRIES = 3
# Maximum size of a small document. It has about 9,000 tokens, which need one embedding request and are
# ingested within seconds.
MAX_SMALL_BYTES = 32 * 1024
_SMALL_SUFFIXES = frozenset(
    {".txt", ".md", ".markdown", ".csv", ".tsv", ".html", ".htm", ".eml", ".vtt", ".srt"}
)
# Maximum number of attempts for a conditional write. More than two writers rarely compete for a document.
MAX_WRITE_ATTEMPTS = 8


class FencedError(Exception):
    """Raised if another execution has taken over the document, or if the document was deleted. The step must
    stop.
    """


class IngestTask:
    """Context of one ingestion activity: its input, the services, and fenced access to the document's row.

    It caches the last state read or written. A stale state is harmless: writing it causes a conflict, after
    which it is read again.

    Attributes:
        version_key: key of the version being ingested; "" until the file was read.
        used: usage of this step, to be charged to the document's owner.
        model_calls: model calls by phase, stored by the next `update`.
        blob: properties of the file, if this activity has read them.
    """

    def __init__(self, step: IngestStep, services: IngestionServices) -> None:
        self.step = step
        self.services = services
        self.documents = services.documents
        self.blobs = services.blobs
        self.doc_id = document_id(step.blob_name)
        self.known: DocumentState | None = None
        self.version_key = step.version_key
        self.used = Usage()
        self.model_calls: Counter[DocumentStatus] = Counter()
        self.blob: BlobProperties | None = None

    @property
    def folder(self) -> str:
        """Folder of the version being ingested."""
        return version_folder(self.doc_id, self.version_key)

    @property
    def content_hash(self) -> str:
        """SHA-256 digest of the bytes being ingested, in hexadecimal."""
        return self.version_key.partition("-")[0]

    @property
    def observed_values(self) -> dict[str, Any]:
        """Values that this execution read from the document's rows: wish counter, etag of the backlog row,
        and number of pauses.
        """
        return self.step.model_dump(include={"wish", "work", "rests"})

    async def acquire(self) -> DocumentState:
        """Write this execution's fence token into the document's row, which stops every other execution.
        Return the new state.

        Call this before reading the blob: `close` compares the wish counter read here with the current one,
        so that later events lead to another ingestion.
        """
        for _ in range(MAX_WRITE_ATTEMPTS):
            work = await self.documents.open_work.get(self.doc_id)
            state = await self.documents.get(self.doc_id)
            if state is not None and state.is_open and state.fence not in ("", self.step.fence):
                await self.documents.open_work.note_fenced(self.doc_id)
            try:
                if work is None or state is None or not state.is_open:
                    # Mark the document as open during its ingestion, even if nothing has requested one.
                    state, work = await request_ingestion(
                        (state or fresh_state(self.step.blob_name)).model_copy(
                            update={"fence": self.step.fence}
                        ),
                        self.documents,
                        "background",
                    )
                elif state.fence != self.step.fence:
                    mine = state.model_copy(update={"fence": self.step.fence})
                    state = await self.documents.replace(with_new_timestamp(mine))
            except ConflictError:
                continue
            self.known = state
            read_values = {"wish": state.wish, "work": work.revision, "rests": work.rests}
            self.step = self.step.model_copy(update=read_values)
            return state
        raise contention_error()

    async def current_state(self) -> DocumentState:
        """Return the state that this activity has read or written last. On the first call, read the row.

        Raises:
            FencedError: the row has another fence.
        """
        self.known = self.known or await self.documents.get(self.doc_id)
        if self.known is None or self.known.fence != self.step.fence:
            raise FencedError
        return self.known

    async def reload(self) -> DocumentState:
        """Read the state again. Call this before a write that the etag of the row doesn't protect, to check
        the fence.

        Raises:
            FencedError: the row has another fence.
        """
        self.known = None
        return await self.current_state()

    async def update(
        self, change: Callable[[DocumentState], DocumentState] = lambda state: state, /, **fields: object
    ) -> DocumentState:
        """Change the state or some of its fields, and write it. Conflicting writes are retried.

        Raises:
            FencedError: the row has another fence.
        """
        for _ in range(MAX_WRITE_ATTEMPTS):
            state = await self.current_state()
            self.known = None
            try:
                changed = with_model_calls(change(state), self.model_calls).model_copy(update=fields)
                self.known = await self.documents.replace(with_new_timestamp(changed))
            except ConflictError:
                continue
            self.model_calls.clear()
            return self.known
        raise contention_error()

    async def close(self, request: CloseRequest) -> Closed:
        """Record how the ingestion ended. In the reply, `again` is true if a new request arrived meanwhile.

        Raises:
            FencedError: the row has another fence.
        """

        def ended(state: DocumentState) -> DocumentState:
            # A quarantined document stays quarantined even if only its permissions were updated successfully.
            if request.status == "failed" or (request.status == "ready" and not is_quarantined(state)):
                # A wait for a worker or a service doesn't mean that the file is bad, so it isn't counted as a
                # try. The reconciliation starts the ingestion again.
                tries = state.failed_tries + (not request.may_pass) if request.status == "failed" else 0
                if state.begun_parses > MAX_TRIES:
                    tries = MAX_TRIES
                outcome = request.model_dump(include={"reason", "hint", "failure"})
                outcome |= {"failed_tries": tries, "begun_parses": 0}
                # Record the etag even if the version was already indexed.
                if request.status == "ready":
                    outcome["blob_etag"] = state.wanted_etag or state.blob_etag
                state = with_status(state, request.status).model_copy(update=outcome)
            # If the first step already failed, treat all requests so far as processed, because an ingestion
            # that can't start must still end.
            return state.model_copy(update={"settled": self.step.wish or state.wish})

        work = self.step.work or await self._newest_work()
        state = await self.update(ended)
        return Closed(again=state.is_open or not await self._is_work_done(work))

    async def end_without_document(self) -> bool:
        """Delete the backlog row of a document that doesn't exist. Return False if the document may have been
        created meanwhile.
        """
        work = await self._newest_work()
        state = await self.documents.get(self.doc_id)
        return state is None and await self._is_work_done(work)

    async def rest(self, request: RestRequest) -> Closed:
        """Release the document's place and pause the document. In the reply, `again` is true if a new request
        arrived meanwhile.

        Raises:
            FencedError: the row has another fence.
        """
        await self.update(begun_parses=0)
        work = await self.documents.open_work.get(self.doc_id)
        if work is None or (request.step.work and work.revision != request.step.work):
            return Closed(again=True)
        due_at = now() + timedelta(seconds=request.pause_s)
        resting = {"due_at": due_at, "rests": work.rests + request.has_failed}
        try:
            await self.documents.open_work.replace(work.model_copy(update=resting))
        except ConflictError:
            return Closed(again=True)
        return Closed(again=False)

    async def _newest_work(self) -> str:
        work = await self.documents.open_work.get(self.doc_id)
        return (work and work.revision) or ""

    async def _is_work_done(self, work: str) -> bool:
        """Delete the backlog row if its etag is still `work`. Return False if the etag has changed, because a
        new request arrived.
        """
        try:
            if work:
                await self.documents.open_work.delete(self.doc_id, work)
        except ConflictError:
            return False
        return True

    async def forget(self) -> Closed:
        """Delete the state of a removed document. If a new request arrived meanwhile, reset the state
        instead.

        Raises:
            FencedError: the row has another fence.
        """
        for _ in range(MAX_WRITE_ATTEMPTS):
            state = await self.documents.get(self.doc_id)
            if state is None:
                return Closed(again=not await self._is_work_done(self.step.work))
            if state.fence != self.step.fence:
                raise FencedError
            try:
                if state.wish == self.step.wish:
                    await self.documents.delete(state)
                    return Closed(again=not await self._is_work_done(self.step.work))
                await self.documents.replace(with_new_timestamp(reset_after_deletion(state)))
            except ConflictError:
                continue
            return Closed(again=True)
        raise contention_error()

    async def enter(self, status: DocumentStatus) -> DocumentState:
        """Set the status of the document to `status`, a phase of the ingestion that starts now. Return the
        new state.

        Raises:
            FencedError: the row has another fence.
        """
        return await self.update(partial(with_status, status=status, at=now()))

    def is_retried_after(self, failed: GroundworkError) -> bool:
        """Return whether this step will be retried after a failed model call that may succeed the next
        time.
        """
        may_pass = failed.retryable and not isinstance(failed, ModelFixableError)
        return may_pass and not self.step.last_attempt

    @asynccontextmanager
    async def count_parse(self) -> AsyncIterator[None]:
        """Reset the counter of unfinished parses if the block raises `GroundworkError`, so that only crashes
        of the host are counted.
        """
        try:
            yield
        except GroundworkError:
            await self.update(begun_parses=0)
            raise


async def request_ingestion(
    state: DocumentState, documents: DocumentStore, urgency: Urgency | None = None, size_bytes: int = 0
) -> tuple[DocumentState, OpenWork]:
    """Request an ingestion. This writes the backlog row, then the document's state with an increased wish
    counter.

    Args:
        urgency: None = "upload" for files sent by users, otherwise "background".
        size_bytes: size of the file; 0 = unknown.

    Raises:
        ConflictError: the state was changed or created meanwhile. Read it again and call this function
            again, as an ingestion may have deleted the backlog row.
    """
    name = state.blob_name
    moment = now()
    work = await documents.open_work.put(
        OpenWork(
            doc_id=state.doc_id,
            blob_name=name,
            whose=folder_of(name),
            urgency=urgency or ("upload" if has_own_sidecar(name) else "background"),
            is_long=not is_small(name, size_bytes),
            asked_at=moment,
        )
    )
    new_state = state.model_copy(update={"updated_at": moment})
    if state.revision is None:
        return await documents.create(new_state), work
    return await documents.replace(new_state.model_copy(update={"wish": state.wish + 1})), work


async def mark_deleted(doc_id: str, documents: DocumentStore) -> bool:
    """Hide a document whose file was deleted, and fence off a running ingestion. Return False if the document
    is unknown.

    The running ingestion stops at its next step. The requested one removes the document's data.

    Raises:
        DependencyError: the store failed, or there were too many concurrent changes.
    """
    for _ in range(MAX_WRITE_ATTEMPTS):
        state = await documents.get(doc_id)
        if state is None or state.is_deleted:
            return state is not None
        if state.is_open and state.fence:
            await documents.open_work.note_fenced(doc_id)
        hidden = state.model_copy(update={"is_deleted": True, "fence": ""})
        try:
            await request_ingestion(hidden, documents, "change")
        except ConflictError:
            continue
        return True
    raise contention_error()


def is_small(filename: str, size_bytes: int) -> bool:
    """Return whether a file is a short text that can be ingested in a single activity."""
    return size_bytes <= MAX_SMALL_BYTES and PurePosixPath(filename).suffix.lower() in _SMALL_SUFFIXES


def now() -> datetime:
    """Return the current time in UTC as an aware datetime."""
    return datetime.now(UTC)


def is_quarantined(state: DocumentState) -> bool:
    """Return whether the file has failed so often that it is not tried again.

    It stays quarantined until its bytes change or a user requests an ingestion. Otherwise a file that crashes
    its parser would do so after every event and reconciliation.
    """
    return state.status == "failed" and state.failed_tries >= MAX_TRIES


def with_status(state: DocumentState, status: DocumentStatus, at: datetime | None = None) -> DocumentState:
    """Return the state with a new status, which is added to its phases with the time `at` (default: now). If
    the state has this status already, return it unchanged.
    """
    if state.status == status and state.phases:
        return state
    phases = (*state.phases, PhaseTime(status=status, at=at or now()))
    return state.model_copy(update={"status": status, "phases": phases})


def with_model_calls(state: DocumentState, calls: Mapping[DocumentStatus, int]) -> DocumentState:
    """Return the state with these numbers of model calls, keyed by status, added to its phases."""
    phases = tuple(
        phase.model_copy(update={"model_calls": phase.model_calls + calls.get(phase.status, 0)})
        for phase in state.phases
    )
    return state.model_copy(update={"phases": phases})


def fresh_state(blob_name: str) -> DocumentState:
    """Return the initial state of a document that was never ingested, with its first ingestion already
    requested.
    """
    return DocumentState(
        wish=1,
        doc_id=document_id(blob_name),
        blob_name=blob_name,
        filename=PurePosixPath(blob_name).name,
        updated_at=now(),
    )


def reset_after_deletion(state: DocumentState) -> DocumentState:
    """Return a fresh state for a document whose file was uploaded again during its deletion. Other states are
    returned unchanged.

    Corrections are kept, because synchronisation tools replace a file by deleting it first. Index rows of the
    old version are compared with the new version as usual.
    """
    if not state.is_deleted:
        return state
    # Keep the pending permissions until the permissions of the new file are read, so that the owner can see
    # the document meanwhile. Keep the last version number, because blocks of that version may still exist.
    kept_names = {"revision", "wish", "settled", "fence", "noted_etag"}
    kept_names |= {"wanted_rights", "tried_hash", "corrections", "begun_version"}
    kept_fields = {name: getattr(state, name) for name in kept_names}
    return fresh_state(state.blob_name).model_copy(update=kept_fields)


def with_new_timestamp(state: DocumentState) -> DocumentState:
    """Return the state with the current time as `updated_at`."""
    return state.model_copy(update={"updated_at": now()})


def contention_error() -> DependencyError:
    """Return the error for too many concurrent writes to one document."""
    return DependencyError("Too many concurrent changes to the document.", "Try again.")
