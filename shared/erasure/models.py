"""The erasure of everything that is kept about one person: what is asked, how far it is, what it found.

Its record outlives the person's id: while it is at work it holds the id, afterwards a digest and counts.
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
        default="keep", description="`delete`: also documents that are theirs and that nobody else may read."
    )


class ErasedCounts(Model):
    """What was found of the person and erased, by kind; a person who keeps using the app adds to it.

    Attributes:
        runs_at_work: of `runs`, those that were ended for it.
        summaries: of documents.
        conversations: in chat channels, of which something was remembered.
        chat_messages: that waited for their answer.
        sessions: of programs that use the agents as a library, in which a question waited.
        quality_records: of answers, ratings and openings.
        limits: rows of what they used up.
        workspace_files: that agents wrote for them.
        queue_messages: in poison queues.
        documents: 0 unless it was asked for.
        unused_uploads: access lists of uploads that never came.
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
    idempotency_keys: Count = Field(default=0, description="Keys of requests that could be repeated.")
    limits: Count = 0
    workspace_files: Count = 0
    queue_messages: Count = 0
    documents: Count = 0
    unused_uploads: Count = 0


class OwnDocuments(Model):
    """What stays of documents, in numbers.

    Attributes:
        alone: they own them, and nobody else may read them.
        shared: they own them, and others may read them.
        named: somebody else's, whose access lists name the person.
    """

    alone: Count = 0
    shared: Count = 0
    named: Count = 0


class RunPlace(Model):
    """A run whose last traces are still to go. `at`: when its question came."""

    run_id: str
    at: datetime


class ErasureRecord(Model):
    """An erasure as it is stored.

    Attributes:
        erasure_id: digest of the person's id.
        user_id: empty once it has ended.
        not_before: when the next pass is due; an earlier message is a repeated one.
        passes: that came to their end.
        counted: passes whose finds are in `counts`: one that is repeated counts nothing twice.
        threads, runs, summaries, instances: what the last pass looks for again, and takes off as it is
            done; `instances` are orchestrations.
        deleting: documents, and access lists of uploads, that are counted: they may take longer than a pass.
        is_finishing: a pass has found nothing new, and the last traces are going.
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
    summaries: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    deleting: tuple[str, ...] = ()
    is_finishing: bool = False


class EraseUserTask(Model):
    """Message of the queue `erasures`: resume an erasure."""

    erasure_id: str


class Kept(Model):
    """Something that is not erased. `count` is None where nobody can count it."""

    what: str = Field(description="What stays.")
    count: Count | None = Field(description="How many.")
    why: str = Field(description="Why it stays.")


class ErasureView(Model):
    """Answer of DELETE /api/users/{user_id} and of GET /api/users/{user_id}/erasure.

    Attributes:
        next_pass_at: when it continues; None when it has ended.
        reason: why it failed, and what to do.
        erased: so far.
        kept: what stays, and why.
    """

    user_id: str = Field(description="The person.")
    status: ErasureStatus = Field(description="`running` until a pass finds nothing more.")
    documents: DocumentsWish = Field(description="Whether documents that nobody else can read go, too.")
    asked_at: datetime = Field(description="When it was ordered.")
    finished_at: datetime | None = Field(description="When it ended; null until then.")
    passes: Count = Field(description="How often everything was searched.")
    next_pass_at: datetime | None
    reason: str | None
    erased: ErasedCounts
    kept: tuple[Kept, ...]
    status_url: str = Field(description="Where to see how far it is.")
