"""One activity of an ingestion, fenced, and the rules of a document's row.

`ingest-{doc_id}` is the only instance that ingests a document, so Durable Functions is its lock. Each
execution writes a token, its fence, into the row, and every row write of its steps compares it: a step that
outlived its execution changes nothing. Events and changes by users write a wish into the row (`row_changes`);
an ingestion is done when it has looked at the newest one. All writes compare revisions, so none is lost.
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

MAX_TRIES = 3  # failed ingestions of the same bytes before quarantine
MAX_SMALL_BYTES = 32 * 1024  # about 9,000 tokens: one embedding request, and done within seconds
_SMALL_SUFFIXES = frozenset(
    {".txt", ".md", ".markdown", ".csv", ".tsv", ".html", ".htm", ".eml", ".vtt", ".srt"}
)
MAX_WRITE_ATTEMPTS = 8  # of a conditional write; at most two writers meet on one document


class FencedError(Exception):
    """Another execution works on the document, or it was deleted, so this step must stop."""


class IngestTask:
    """One activity of an ingestion: its fence and the services.

    It caches the last state read or written. A stale state is harmless: writing it conflicts, and it is read
    again.

    Attributes:
        version_key: of the version being ingested; set once the file was read.
        used: usage of this step, charged to the document's owner.
        model_calls: model replies by phase, stored by the next update.
        blob: the file's properties, if requested in this activity.
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
        """The folder of the version being ingested."""
        return version_folder(self.doc_id, self.version_key)

    @property
    def content_hash(self) -> str:
        """The SHA-256 of the bytes being read, as hex."""
        return self.version_key.partition("-")[0]

    @property
    def looked(self) -> dict[str, Any]:
        """The wish, the backlog row's etag and the number of rests that this execution has read."""
        return self.step.model_dump(include={"wish", "work", "rests"})

    async def take(self) -> DocumentState:
        """Write this execution's fence into the row, and return the row.

        Read the blob afterwards: the row's wish counts what came before, and `close` compares it.
        """
        for _ in range(MAX_WRITE_ATTEMPTS):
            work = await self.documents.open_work.get(self.doc_id)
            state = await self.documents.get(self.doc_id)
            if state is not None and state.is_open and state.fence not in ("", self.step.fence):
                await self.documents.open_work.note_fenced(self.doc_id)
            try:
                if work is None or state is None or not state.is_open:
                    # Open while it is worked on, also if nothing was noted.
                    state, work = await asked(
                        (state or fresh_state(self.step.blob_name)).model_copy(
                            update={"fence": self.step.fence}
                        ),
                        self.documents,
                        "background",
                    )
                elif state.fence != self.step.fence:
                    mine = state.model_copy(update={"fence": self.step.fence})
                    state = await self.documents.replace(touched(mine))
            except ConflictError:
                continue
            self.known = state
            looked = {"wish": state.wish, "work": work.revision, "rests": work.rests}
            self.step = self.step.model_copy(update=looked)
            return state
        raise contended()

    async def look(self) -> DocumentState:
        """Return the state as known to this step, without changes.

        Raises:
            FencedError: the row has another fence.
        """
        self.known = self.known or await self.documents.get(self.doc_id)
        if self.known is None or self.known.fence != self.step.fence:
            raise FencedError
        return self.known

    async def reload(self) -> DocumentState:
        """Read the state from the store before a write that isn't guarded by a revision.

        Raises:
            FencedError: the row has another fence.
        """
        self.known = None
        return await self.look()

    async def update(
        self, change: Callable[[DocumentState], DocumentState] = lambda state: state, /, **fields: object
    ) -> DocumentState:
        """Change the state or some of its fields.

        Raises:
            FencedError: the row has another fence.
        """
        for _ in range(MAX_WRITE_ATTEMPTS):
            state = await self.look()
            self.known = None
            try:
                changed = with_model_calls(change(state), self.model_calls).model_copy(update=fields)
                self.known = await self.documents.replace(touched(changed))
            except ConflictError:
                continue
            self.model_calls.clear()
            return self.known
        raise contended()

    async def close(self, request: CloseRequest) -> Closed:
        """Record how the ingestion ended; `again` = something came after its look at the row.

        Raises:
            FencedError: the row has another fence.
        """

        def ended(state: DocumentState) -> DocumentState:
            # Quarantined stays quarantined, though its rights may have changed: it has failed all the same.
            if request.status == "failed" or (request.status == "ready" and not is_quarantined(state)):
                # A wait for a worker, or a service that is down or busy, says nothing about the file: the
                # reconciliation starts it again, as often as it takes.
                tries = state.failed_tries + (not request.may_pass) if request.status == "failed" else 0
                if state.begun_parses > MAX_TRIES:
                    tries = MAX_TRIES
                outcome = request.model_dump(include={"reason", "hint", "failure"})
                outcome |= {"failed_tries": tries, "begun_parses": 0}
                if request.status == "ready":  # including versions that proved unchanged
                    outcome["blob_etag"] = state.wanted_etag or state.blob_etag
                state = with_status(state, request.status).model_copy(update=outcome)
            # If not even the look succeeded, everything noted so far counts as looked at: an ingestion that
            # can't begin must end.
            return state.model_copy(update={"settled": self.step.wish or state.wish})

        work = self.step.work or await self._newest_work()
        state = await self.update(ended)
        return Closed(again=state.is_open or not await self._is_work_done(work))

    async def end_nothing(self) -> bool:
        """Delete the backlog's row of a document that doesn't exist. False = it may exist by now."""
        work = await self._newest_work()
        state = await self.documents.get(self.doc_id)
        return state is None and await self._is_work_done(work)

    async def rest(self, request: RestRequest) -> Closed:
        """Give up the place until a pause is over; `again` = something came meanwhile.

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
        """Delete the backlog's row. False = it has another etag, so there is a new wish."""
        try:
            if work:
                await self.documents.open_work.delete(self.doc_id, work)
        except ConflictError:
            return False
        return True

    async def forget(self) -> Closed:
        """Delete the state of a removed document; start with a new one if something came meanwhile.

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
                await self.documents.replace(touched(revived(state)))
            except ConflictError:
                continue
            return Closed(again=True)
        raise contended()

    async def enter(self, status: DocumentStatus) -> DocumentState:
        """Record that the ingestion has reached `status`.

        Raises:
            FencedError: the row has another fence.
        """
        return await self.update(partial(with_status, status=status, at=now()))

    def is_retried_after(self, failed: GroundworkError) -> bool:
        """Return whether a failed model call may succeed in a later attempt of this step."""
        may_pass = failed.retryable and not isinstance(failed, ModelFixableError)
        return may_pass and not self.step.last_attempt

    @asynccontextmanager
    async def counted_parse(self) -> AsyncIterator[None]:
        """Uncount a started parse if its step fails, so that only crashes of the host remain counted."""
        try:
            yield
        except GroundworkError:
            await self.update(begun_parses=0)
            raise


async def asked(
    state: DocumentState, documents: DocumentStore, urgency: Urgency | None = None, size_bytes: int = 0
) -> tuple[DocumentState, OpenWork]:
    """Write a state that an ingestion must look at, and before it the backlog's row.

    Args:
        urgency: None = the urgency of a new file.
        size_bytes: 0 = unknown.

    Raises:
        ConflictError: the state was changed or created meanwhile. Read it again, and repeat all of it: the
            ingestion may have deleted the backlog's row.
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
    wanted = state.model_copy(update={"updated_at": moment})
    if state.revision is None:
        return await documents.create(wanted), work
    return await documents.replace(wanted.model_copy(update={"wish": state.wish + 1})), work


async def mark_deleted(doc_id: str, documents: DocumentStore) -> bool:
    """Hide a document whose file was deleted, and fence off the ingestion at work.

    It ends at its next step, and the next one removes what it wrote. False = no such document.

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
            await asked(hidden, documents, "change")
        except ConflictError:
            continue
        return True
    raise contended()


def is_small(filename: str, size_bytes: int) -> bool:
    """Return whether a file is a short text, which is ingested in one activity."""
    return size_bytes <= MAX_SMALL_BYTES and PurePosixPath(filename).suffix.lower() in _SMALL_SUFFIXES


def now() -> datetime:
    """Return the current time, with zone."""
    return datetime.now(UTC)


def is_quarantined(state: DocumentState) -> bool:
    """Return whether the file failed so often that it is not tried again.

    They stay quarantined until they change or a user asks: otherwise a file that crashes its parser would do
    so at every event and reconciliation, also as a new version with the same bytes.
    """
    return state.status == "failed" and state.failed_tries >= MAX_TRIES


def with_status(state: DocumentState, status: DocumentStatus, at: datetime | None = None) -> DocumentState:
    """Return the state with another status, entered at `at` (None = now); unchanged if it has that status."""
    if state.status == status and state.phases:
        return state
    phases = (*state.phases, PhaseTime(status=status, at=at or now()))
    return state.model_copy(update={"status": status, "phases": phases})


def with_model_calls(state: DocumentState, calls: Mapping[DocumentStatus, int]) -> DocumentState:
    """Return the state with model replies added to each phase."""
    phases = tuple(
        phase.model_copy(update={"model_calls": phase.model_calls + calls.get(phase.status, 0)})
        for phase in state.phases
    )
    return state.model_copy(update={"phases": phases})


def fresh_state(blob_name: str) -> DocumentState:
    """Return the initial state of an unknown document, which an ingestion must look at."""
    return DocumentState(
        wish=1,
        doc_id=document_id(blob_name),
        blob_name=blob_name,
        filename=PurePosixPath(blob_name).name,
        updated_at=now(),
    )


def revived(state: DocumentState) -> DocumentState:
    """Return the state of a document that was uploaded again during its deletion.

    Corrections are kept, because synchronisation tools replace a file by deleting it first. Index rows of the
    old version are compared with the new one as usual.
    """
    if not state.is_deleted:
        return state
    # Wanted rights stay until the new file's are read: its owner must see it meanwhile. The old version's
    # blocks may still be there, so its number is not used again.
    known = {"revision", "wish", "settled", "fence", "noted_etag"}
    known |= {"wanted_rights", "tried_hash", "corrections", "begun_version"}
    kept = {name: getattr(state, name) for name in known}
    return fresh_state(state.blob_name).model_copy(update=kept)


def touched(state: DocumentState) -> DocumentState:
    """Return the state with a new timestamp."""
    return state.model_copy(update={"updated_at": now()})


def contended() -> DependencyError:
    """Return the error for too many concurrent writers on one document."""
    return DependencyError("Too many changes of the document at once.", "Try again.")
