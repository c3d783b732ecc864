"""Erasing a person: whose a document is, what is counted, what is told. Pure."""

from collections.abc import Iterable
from urllib.parse import quote

from shared.documents.state import DocumentState
from shared.erasure.models import ErasedCounts, ErasureRecord, ErasureView, Kept, OwnDocuments
from shared.platform.hashing import digest

MAX_PASSES = 8  # two hours: who has asked again by then has not left

_STILL_THERE = "The person goes on using the app. Take away their sign-in, and ask for the erasure again."

_KEPT_ANYWAY = (
    Kept(
        what="lines of the log, traces and metrics",
        count=None,
        why="under a pseudonym, with the first 100 characters of searches; they end by themselves",
    ),
    Kept(
        what="histories of ingestions",
        count=None,
        why="they hold names of files, also of deleted ones, and go after RUN_RETENTION_DAYS",
    ),
    Kept(
        what="deleted blobs",
        count=None,
        why="the storage account can bring them back for as many days as it is set to",
    ),
    Kept(what="this report", count=1, why="it proves the erasure, and holds a digest of the id and counts"),
)


def erasure_id(user_id: str) -> str:
    """The name under which the erasure of a person is kept, long after their id is gone."""
    return digest("erasure", user_id)[:32]


def is_owner(state: DocumentState, user_id: str) -> bool:
    """Whether the document is the person's, by the rights that hold or by those that are wanted."""
    return user_id in (state.wanted_rights.owner_id, state.rights.owner_id)


def is_theirs_alone(state: DocumentState, user_id: str) -> bool:
    """Whether it is the person's, and open to nobody else, now or soon."""
    readers = {*state.rights.acl, *state.wanted_rights.acl}
    owners = {state.rights.owner_id, state.wanted_rights.owner_id} - {None}
    return owners == {user_id} and readers <= {user_id}


def names(state: DocumentState, user_id: str) -> bool:
    """Whether the document is somebody else's, and opens to the person by name."""
    return not is_owner(state, user_id) and user_id in {*state.rights.acl, *state.wanted_rights.acl}


def concerns(state: DocumentState, user_id: str) -> bool:
    """Whether the document has to do with the person: theirs, or open to them by name."""
    return is_owner(state, user_id) or names(state, user_id)


def own_documents(states: Iterable[DocumentState], user_id: str) -> OwnDocuments:
    """How many documents have to do with the person."""
    alone = shared = named = 0
    for state in states:
        if is_theirs_alone(state, user_id):
            alone += 1
        elif is_owner(state, user_id):
            shared += 1
        elif names(state, user_id):
            named += 1
    return OwnDocuments(alone=alone, shared=shared, named=named)


def added(counts: ErasedCounts, more: ErasedCounts) -> ErasedCounts:
    """The sums, kind by kind."""
    sums = {name: getattr(counts, name) + getattr(more, name) for name in ErasedCounts.model_fields}
    return ErasedCounts(**sums)


def view_of(record: ErasureRecord, user_id: str) -> ErasureView:
    """The erasure as administrators see it; `user_id` as they gave it, for the record may not know it."""
    return ErasureView(
        user_id=user_id,
        status=record.status,
        documents=record.documents,
        asked_at=record.asked_at,
        finished_at=record.finished_at,
        passes=record.passes,
        next_pass_at=record.not_before if record.status == "running" else None,
        reason=_STILL_THERE if record.status == "failed" else None,
        erased=record.counts,
        kept=_kept(record),
        status_url=f"/api/users/{quote(user_id, safe='')}/erasure",
    )


def _kept(record: ErasureRecord) -> tuple[Kept, ...]:
    documents = record.kept_documents
    alone = "nobody asked to delete them: documents=delete does"
    counted: tuple[Kept, ...] = (
        Kept(what="documents that only they may read", count=documents.alone, why=alone),
        Kept(
            what="documents of theirs that others may read",
            count=documents.shared,
            why="others work with them; their owner and their list still name the person",
        ),
        Kept(
            what="documents of others whose access list names them",
            count=documents.named,
            why="the list is their owner's, who changes it with PUT /api/documents/{doc_id}/access",
        ),
    )
    if record.documents == "delete":
        counted = tuple(one for one in counted if one.why != alone)
    return (*counted, *_KEPT_ANYWAY)
