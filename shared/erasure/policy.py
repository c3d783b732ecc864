"""Rules for the erasure of a person: which documents are theirs, how counts are added, and what the report
shows.
"""

from collections import Counter
from collections.abc import Iterable
from urllib.parse import quote

from shared.documents.state import DocumentState
from shared.erasure.models import ErasedCounts, ErasureRecord, ErasureView, Kept, OwnDocuments
from shared.platform.hashing import digest

MAX_PASSES = 8  # two hours of passes; a person who still creates data after that is still active

_STILL_THERE = "The person still uses the app. Disable their sign-in, then request the erasure again."

_KEPT_ANYWAY = (
    Kept(
        what="lines of the log, traces and metrics",
        count=None,
        why="under a pseudonym, with the first 100 characters of searches; they expire",
    ),
    Kept(
        what="histories of ingestions",
        count=None,
        why="they hold file names, also of deleted files, and are deleted after RUN_RETENTION_DAYS",
    ),
    Kept(
        what="deleted blobs",
        count=None,
        why="the storage account can restore them until its retention period ends",
    ),
    Kept(what="this report", count=1, why="proof of the erasure: a digest of the id, and counts"),
)


def erasure_id(user_id: str) -> str:
    """Return the id of a person's erasure, a digest of the user id. The report is stored under it after the
    user id has been deleted.
    """
    return digest("erasure", user_id)[:32]


def is_alone(state: DocumentState, user_id: str) -> bool:
    """Return whether only the person owns and may read a document, also after pending changes."""
    readers = {*state.rights.acl, *state.wanted_rights.acl}
    return state.owners == {user_id} and readers <= {user_id}


def own_documents(states: Iterable[DocumentState], user_id: str, *, named_count: int) -> OwnDocuments:
    """Count the documents of a person.

    Args:
        states: of the documents that the person owns.
        named_count: number of other people's documents whose access lists name the person.
    """
    counts = Counter(is_alone(state, user_id) for state in states)
    return OwnDocuments(alone=counts[True], shared=counts[False], named=named_count)


def sum_counts(counts: ErasedCounts, more: ErasedCounts) -> ErasedCounts:
    """Return the sums of two sets of counts, kind by kind."""
    sums = {name: getattr(counts, name) + getattr(more, name) for name in ErasedCounts.model_fields}
    return ErasedCounts(**sums)


def view_of(record: ErasureRecord, user_id: str) -> ErasureView:
    """Return an erasure as administrators see it. `user_id` comes from their request, because the record of
    an ended erasure no longer contains it.
    """
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
        kept=_kept_documents(record),
        status_url=f"/api/users/{quote(user_id, safe='')}/erasure",
    )


def _kept_documents(record: ErasureRecord) -> tuple[Kept, ...]:
    documents = record.kept_documents
    alone = Kept(
        what="documents that only they may read",
        count=documents.alone,
        why="documents=delete removes them, too",
    )
    others = (
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
    return (*([] if record.documents == "delete" else [alone]), *others, *_KEPT_ANYWAY)
