"""Claims: one ingestion at a time works on a document.

An instance that finds the document claimed leaves a note (`pending`) and ends; the holder checks for notes
before it ends. Changes by users claim nothing (`row_changes`). A holder whose orchestration ended
(`acceptance.check_holder`), or that was silent for 15 minutes, loses its claim, and its later steps do
nothing. All writes compare revisions, so neither notes nor changes are lost.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePosixPath

from shared.access.daily_use import Usage
from shared.documents.ids import document_id, version_folder
from shared.documents.state import DocumentState, PhaseTime
from shared.documents.state_store import DocumentStore
from shared.ingestion.models import Closed, CloseRequest, IngestStep
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobProperties
from shared.platform.errors import (
    ConflictError,
    DependencyError,
    GroundworkError,
    ModelFixableError,
)
from shared.retrieval.models import DocumentStatus

LEASE = timedelta(minutes=15)  # longer than any activity (functionTimeout, 10 minutes)
MAX_TRIES = 3  # failed ingestions of the same bytes before quarantine
MAX_WRITE_ATTEMPTS = 8  # of a conditional write; at most two writers meet on one document


class ClaimLostError(Exception):
    """Another instance works on the document, so this one must stop."""


class IngestTask:
    """One activity of an ingestion: its claim and the services.

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

    async def take(self) -> DocumentState | None:
        """Claim the document; None if another instance holds it and will check again.

        Read the blob afterwards, because claiming deletes earlier notes.
        """
        mine = {"holder": self.step.instance_id, "pending": False}
        for _ in range(MAX_WRITE_ATTEMPTS):
            state = await self.documents.get(self.doc_id)
            try:
                if state is None:
                    fresh = fresh_state(self.step.blob_name).model_copy(update=mine)
                    self.known = await self.documents.create(touched(fresh))
                elif is_held(state) and state.holder != self.step.instance_id:
                    await self.documents.replace(state.model_copy(update={"pending": True}))
                    return None
                else:
                    self.known = await self.documents.replace(touched(state.model_copy(update=mine)))
            except ConflictError:
                continue
            return self.known
        raise contended()

    async def look(self) -> DocumentState:
        """Return the state as known to this claim, without changes.

        Raises:
            ClaimLostError: this instance no longer holds the document.
        """
        self.known = self.known or await self.documents.get(self.doc_id)
        if self.known is None or self.known.holder != self.step.instance_id:
            raise ClaimLostError
        return self.known

    async def reload(self) -> DocumentState:
        """Read the state from the store before a write that isn't guarded by a revision.

        Raises:
            ClaimLostError: this instance no longer holds the document.
        """
        self.known = None
        return await self.look()

    async def update(
        self, change: Callable[[DocumentState], DocumentState] = lambda state: state, /, **fields: object
    ) -> DocumentState:
        """Change the state or some of its fields, and renew the claim.

        Raises:
            ClaimLostError: this instance no longer holds the document.
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
        """Record how the ingestion ended, and release the claim unless an event arrived meanwhile.

        Raises:
            ClaimLostError: this instance no longer holds the document.
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
            # A note stays until the next claim wipes it: this step may run twice, and must say `again` twice.
            return state if state.pending else state.model_copy(update={"holder": None})

        return Closed(again=(await self.update(ended)).holder is not None)

    async def forget(self) -> Closed:
        """Delete the state of a removed document; start with a new one if an event arrived meanwhile.

        Raises:
            ClaimLostError: this instance no longer holds the document.
        """
        for _ in range(MAX_WRITE_ATTEMPTS):
            state = await self.documents.get(self.doc_id)
            if state is None:
                return Closed(again=False)
            if state.holder != self.step.instance_id:
                raise ClaimLostError
            try:
                if not state.pending:
                    await self.documents.delete(state)
                    return Closed(again=False)
                await self.documents.replace(touched(revived(state)))
            except ConflictError:
                continue
            return Closed(again=True)
        raise contended()

    async def enter(self, status: DocumentStatus) -> DocumentState:
        """Record that the ingestion has reached `status`.

        Raises:
            ClaimLostError: this instance no longer holds the document.
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


async def mark_deleted(doc_id: str, documents: DocumentStore) -> bool:
    """Hide a document whose file was deleted, and revoke its claim.

    The holder ends at its next step, and the next one removes what it wrote. False = no such document.

    Raises:
        DependencyError: the store failed, or there were too many concurrent changes.
    """
    for _ in range(MAX_WRITE_ATTEMPTS):
        state = await documents.get(doc_id)
        if state is None or state.is_deleted:
            return state is not None
        try:
            await documents.replace(touched(state.model_copy(update={"is_deleted": True, "holder": None})))
        except ConflictError:
            continue
        return True
    raise contended()


def now() -> datetime:
    """Return the current time, with zone."""
    return datetime.now(UTC)


def is_held(state: DocumentState) -> bool:
    """Return whether a live instance holds the document."""
    return state.holder is not None and state.held_until is not None and state.held_until > now()


def is_quarantined(state: DocumentState) -> bool:
    """Return whether these bytes failed so often that they are no longer tried.

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
    """Return the initial state of an unknown document."""
    return DocumentState(
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
    known = {"revision", "pending", "holder", "wanted_rights", "tried_hash", "corrections", "begun_version"}
    kept = {name: getattr(state, name) for name in known}
    return fresh_state(state.blob_name).model_copy(update=kept)


def touched(state: DocumentState) -> DocumentState:
    """Return the state with new timestamps, which renews a claim."""
    at = now()
    held_until = None if state.holder is None else at + LEASE
    return state.model_copy(update={"updated_at": at, "held_until": held_until})


def contended() -> DependencyError:
    """Return the error for too many concurrent writers on one document."""
    return DependencyError("Too many changes of the document at once.", "Try again.")
