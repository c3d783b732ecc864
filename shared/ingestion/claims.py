"""The state of a document, and the claim on it: one instance at a time works on a document.

An instance that finds the document held leaves a note (`pending`) and ends; the holder looks again before it
ends. A holder that has ended (`holders.py`), or shows no sign of life for 15 minutes, loses its claim, and
every later step of it does nothing. All writes compare revisions, so no note and no change is lost.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from shared.documents.ids import document_id
from shared.documents.state import DocumentState, DocumentStore, PhaseTime
from shared.ingestion.models import Closed, CloseRequest, IngestStep
from shared.ingestion.quarantine import is_quarantined
from shared.ingestion.work_files import current_sitting
from shared.platform.errors import ConflictError, DependencyError
from shared.retrieval.models import DocumentStatus

LEASE = timedelta(minutes=15)  # longer than any activity may run (functionTimeout, 10 minutes)
CHANGE_LEASE = timedelta(minutes=4)  # longer than an HTTP request may take (230 s in Azure)
_CHANGE = "change-"
_TRIES = 8  # of a compare-and-write; two writers at most meet on one document


class ClaimLostError(Exception):
    """Another instance works on the document: this one must not touch it any more."""


def change_step(blob_name: str) -> IngestStep:
    """A step of nobody's orchestration: whoever changes something about a document claims it by this."""
    return IngestStep(blob_name=blob_name, instance_id=f"{_CHANGE}{uuid.uuid4().hex}")


def is_change(holder: str) -> bool:
    """Whether a document is held for a change, and not by an orchestration."""
    return holder.startswith(_CHANGE)


def now() -> datetime:
    """The wall clock, with zone."""
    return datetime.now(UTC)


async def claim(store: DocumentStore, step: IngestStep) -> DocumentState | None:
    """Claim the document for the step's instance; None when it is held: its holder was told to look again.

    Whoever claims must look at the blob afterwards, not before: a note left earlier is wiped here.
    """
    doc_id = document_id(step.blob_name)
    for _ in range(_TRIES):
        state = await store.get(doc_id)
        try:
            if state is None:
                return _remembered(await store.create(_held(fresh_state(step.blob_name), step)))
            if _is_held_by_other(state, step):
                await store.replace(state.model_copy(update={"pending": True}))
                return None
            return _remembered(await store.replace(_held(state.model_copy(update={"pending": False}), step)))
        except ConflictError:
            continue
    raise _contended()


async def update(
    store: DocumentStore, step: IngestStep, change: Callable[[DocumentState], DocumentState]
) -> DocumentState:
    """Change the state of a document that the step's instance holds, and prolong the claim.

    Raises:
        ClaimLostError: it holds it no more.
    """
    doc_id, known = document_id(step.blob_name), current_sitting().states
    for _ in range(_TRIES):
        # What this activity wrote last is what is there, unless the write below is a conflict.
        state = known.pop(doc_id, None) or await store.get(doc_id)
        if state is None or state.holder != step.instance_id:
            raise ClaimLostError
        try:
            return _remembered(await store.replace(_touched(change(state))))
        except ConflictError:
            continue
    raise _contended()


async def look(store: DocumentStore, step: IngestStep) -> DocumentState:
    """The state of a document that the step's instance holds, as this activity knows it; changes nothing.

    Raises:
        ClaimLostError: it holds it no more.
    """
    doc_id = document_id(step.blob_name)
    state = current_sitting().states.get(doc_id) or await store.get(doc_id)
    if state is None or state.holder != step.instance_id:
        raise ClaimLostError
    return _remembered(state)


def _remembered(state: DocumentState) -> DocumentState:
    current_sitting().states[state.doc_id] = state
    return state


async def enter(store: DocumentStore, step: IngestStep, status: DocumentStatus) -> DocumentState:
    """Note that the ingestion reached `status`.

    Raises:
        ClaimLostError: the step's instance holds the document no more.
    """
    return await update(store, step, lambda state: with_status(state, status))


def with_status(state: DocumentState, status: DocumentStatus) -> DocumentState:
    """The state in another status, and since when; unchanged if it is in it already."""
    if state.status == status and state.phases:
        return state
    phases = (*state.phases, PhaseTime(status=status, at=now()))
    return state.model_copy(update={"status": status, "phases": phases})


def with_model_calls(state: DocumentState, status: DocumentStatus, calls: int) -> DocumentState:
    """The state with `calls` more answers of models told of its phase `status`."""
    phases = tuple(
        phase.model_copy(update={"model_calls": phase.model_calls + calls})
        if phase.status == status
        else phase
        for phase in state.phases
    )
    return state.model_copy(update={"phases": phases})


async def release(store: DocumentStore, step: IngestStep) -> bool:
    """Give the claim up; True when an event came meanwhile, so that an ingestion must be started.

    For those who change something about a document outside of its orchestration.

    Raises:
        ClaimLostError: the instance holds the document no more.
    """
    state = await update(store, step, lambda current: current.model_copy(update={"holder": None}))
    return state.pending


async def close(store: DocumentStore, request: CloseRequest) -> Closed:
    """Set how the ingestion ended, and give the claim up unless an event came meanwhile.

    Raises:
        ClaimLostError: the instance holds the document no more.
    """

    def ended(state: DocumentState) -> DocumentState:
        # Quarantined stays quarantined, though its rights may have changed: it has failed all the same.
        if request.status == "failed" or (request.status == "ready" and not is_quarantined(state)):
            # Who only waited has tried nothing: the reconciliation starts it again, as often as it takes.
            tries = state.failed_tries + (not request.waited) if request.status == "failed" else 0
            told = {"reason": request.reason, "hint": request.hint, "failed_tries": tries}
            if request.status == "ready":  # also of a version that turned out to be as before
                told["blob_etag"] = state.wanted_etag or state.blob_etag
            state = with_status(state, request.status).model_copy(update=told)
        # A note stays until the next claim wipes it: this step may run twice, and must say `again` twice.
        return state if state.pending else state.model_copy(update={"holder": None})

    state = await update(store, request.step, ended)
    return Closed(again=state.holder is not None)


async def forget(store: DocumentStore, step: IngestStep) -> Closed:
    """Remove the state of a document that is gone; when an event came meanwhile, begin with a fresh one.

    Raises:
        ClaimLostError: the instance holds the document no more.
    """
    for _ in range(_TRIES):
        state = await store.get(document_id(step.blob_name))
        if state is None:
            return Closed(again=False)
        if state.holder != step.instance_id:
            raise ClaimLostError
        try:
            if not state.pending:
                await store.delete(state)
                return Closed(again=False)
            # Rights that were wanted stay until the new file's are read: its owner must see it meanwhile.
            kept = {"revision": state.revision, "pending": True, "wanted_rights": state.wanted_rights}
            await store.replace(_held(fresh_state(step.blob_name).model_copy(update=kept), step))
        except ConflictError:
            continue
        return Closed(again=True)
    raise _contended()


def fresh_state(blob_name: str) -> DocumentState:
    """The state of a document that nothing is known of yet."""
    return DocumentState(
        doc_id=document_id(blob_name),
        blob_name=blob_name,
        filename=PurePosixPath(blob_name).name,
        updated_at=now(),
    )


def queued_anew(state: DocumentState) -> DocumentState:
    """The state as another version of the file has come, and nobody has looked at it yet."""
    told: dict[str, object] = {"status": "queued", "phases": (), "reason": None, "hint": None}
    if not state.content_hash:
        told["warnings"] = ()  # else they tell of what is in the indexes: it may be the same bytes again
    return _touched(state.model_copy(update=told))


def _held(state: DocumentState, step: IngestStep) -> DocumentState:
    """The state with the step's instance as its holder."""
    return _touched(state.model_copy(update={"holder": step.instance_id}))


def _touched(state: DocumentState) -> DocumentState:
    """The state with its times: a claim, if there is one, lasts from now on."""
    at = now()
    held_until = None if state.holder is None else at + (CHANGE_LEASE if is_change(state.holder) else LEASE)
    return state.model_copy(update={"updated_at": at, "held_until": held_until})


def _is_held_by_other(state: DocumentState, step: IngestStep) -> bool:
    held = state.holder is not None and state.held_until is not None and state.held_until > now()
    return held and state.holder != step.instance_id


def _contended() -> DependencyError:
    return DependencyError("The document's state is being changed by too many at once.", "Try again.")
