"""The erasure of a person's data: request, progress and results.

The record outlives the person's id: while active it contains the id, afterwards only a digest and counts.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.platform.models import Model

Count = Annotated[int, Field(ge=0)]
DocumentsWish = Literal["keep", "delete"]
ErasureStatus = Literal["running", "completed", "failed"]


class ErasureQuery(Model):
    """Parameters of DELETE /api/users/{user_id}."""

    documents: DocumentsWish = Field(
        default="keep", description="`delete`: also delete their documents that nobody else may read."
    )


class ErasedCounts(Model):
    """Counts of erased data by kind; it grows if the person keeps using the app.

    Attributes:
        runs_at_work: `runs` that were active and had to be ended.
        summaries: of documents.
        conversations: in chat channels, with stored state.
        chat_messages: unanswered messages.
        sessions: of programs that use the agents as a library, with a waiting clarification.
        quality_records: of answers, ratings and openings.
        limits: rows of usage.
        workspace_files: written by agents for the person.
        queue_messages: in poison queues.
        documents: 0 unless requested.
        unused_uploads: access lists of uploads that never arrived.
    """

    threads: Count = Field(default=0, description="Threads.")
    runs: Count = Field(default=0, description="Questions with their answers.")
    runs_at_work: Count = 0
    summaries: Count = 0
    memories: Count = Field(default=0, description="Remembered questions.")
    conversations: Count = 0
    chat_messages: Count = 0
    sessions: Count = 0
    quality_records: Count = 0
    idempotency_keys: Count = Field(default=0, description="Idempotency keys.")
    limits: Count = 0
    workspace_files: Count = 0
    queue_messages: Count = 0
    documents: Count = 0
    unused_uploads: Count = 0


class OwnDocuments(Model):
    """Counts of documents that stay.

    Attributes:
        alone: owned by the person and readable by nobody else.
        shared: owned by the person and readable by others.
        named: owned by others, with access lists that name the person.
    """

    alone: Count = 0
    shared: Count = 0
    named: Count = 0


class RunPlace(Model):
    """A run with traces still to delete. `at`: time of its question."""

    run_id: str
    at: datetime


class ErasureRecord(Model):
    """The stored state of an erasure.

    Attributes:
        erasure_id: digest of the person's id.
        user_id: empty once it has ended.
        not_before: when the next pass is due; earlier messages are duplicates.
        passes: number of completed passes.
        counted: number of passes included in `counts`; a repeated pass isn't counted twice.
        threads, runs, instances: work of the last pass, removed as it is done; `instances` are
            orchestrations.
        deleting: counted documents and access lists whose deletion may outlast a pass.
        is_finishing: a pass found nothing new, and the last traces are being deleted.
    """

    erasure_id: str
    user_id: str
    documents: DocumentsWish
    status: ErasureStatus = "running"
    asked_at: datetime
    finished_at: datetime | None = None
    not_before: datetime
    passes: Count = 0
    counted: Count = 0
    counts: ErasedCounts = ErasedCounts()
    kept_documents: OwnDocuments = OwnDocuments()
    threads: tuple[str, ...] = ()
    runs: tuple[RunPlace, ...] = ()
    instances: tuple[str, ...] = ()
    deleting: tuple[str, ...] = ()
    is_finishing: bool = False


class EraseRunTask(Model):
    """Message of the queue `erasures`: delete again what late steps of a deleted run have written."""

    run_id: str


class EraseUserTask(Model):
    """Message of the queue `erasures`: continue an erasure."""

    erasure_id: str


class Kept(Model):
    """Data that is not erased. `count` is None if it can't be counted."""

    what: str = Field(description="Data that is kept.")
    count: Count | None = Field(description="Number of items.")
    why: str = Field(description="Why it is kept.")


class ErasureView(Model):
    """Response of DELETE /api/users/{user_id} and of GET /api/users/{user_id}/erasure.

    Attributes:
        next_pass_at: when it continues; None when it has ended.
        reason: why it failed, and what to do.
        erased: counts so far.
        kept: data that stays, with reasons.
    """

    user_id: str = Field(description="The person.")
    status: ErasureStatus = Field(description="`running` until a pass finds nothing more.")
    documents: DocumentsWish = Field(description="Whether documents readable by nobody else are deleted too.")
    asked_at: datetime = Field(description="When it was requested.")
    finished_at: datetime | None = Field(description="When it ended; null until then.")
    passes: Count = Field(description="Number of completed passes.")
    next_pass_at: datetime | None
    reason: str | None
    erased: ErasedCounts
    kept: tuple[Kept, ...]
    status_url: str = Field(description="URL of its progress.")
