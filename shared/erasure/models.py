"""Models for the erasure of a person's data: the request, the stored progress and the report.

The record of a running erasure contains the person's id. Once the erasure has ended, only a digest of the id
and the counts are kept.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.platform.models import Model

Count = Annotated[int, Field(ge=0)]
DocumentsWish = Literal["keep", "delete"]
ErasureStatus = Literal["running", "completed", "failed"]


class ErasureQuery(Model):
    """Query parameters of DELETE /api/users/{user_id}."""

    documents: DocumentsWish = Field(
        default="keep",
        description="Whether to `keep` or `delete` the person's documents that nobody else may read.",
    )


class ErasedCounts(Model):
    """Number of erased items by kind. Data that the person creates during the erasure is included.

    Attributes:
        runs_at_work: number of the `runs` that were active and had to be ended.
        summaries: document summaries.
        conversations: in chat channels, with stored state.
        chat_messages: unanswered messages.
        sessions: of programs that use the agents as a library, with a waiting clarification.
        quality_records: records about answers, ratings and opened sources.
        limits: rows with the use of limits.
        workspace_files: written by agents for the person.
        queue_messages: messages in poison queues.
        documents: documents; 0 unless their deletion was requested.
        unused_uploads: access lists of uploads that never arrived.
    """

    threads: Count = Field(default=0, description="Number of threads.")
    runs: Count = Field(default=0, description="Number of questions, erased together with their answers.")
    runs_at_work: Count = 0
    summaries: Count = 0
    memories: Count = Field(default=0, description="Number of remembered questions.")
    conversations: Count = 0
    chat_messages: Count = 0
    sessions: Count = 0
    quality_records: Count = 0
    idempotency_keys: Count = Field(default=0, description="Number of idempotency keys.")
    limits: Count = 0
    workspace_files: Count = 0
    queue_messages: Count = 0
    documents: Count = 0
    unused_uploads: Count = 0


class OwnDocuments(Model):
    """Number of documents that are kept, by their relation to the person.

    Attributes:
        alone: owned by the person and readable by nobody else.
        shared: owned by the person and readable by others.
        named: owned by others, with access lists that name the person.
    """

    alone: Count = 0
    shared: Count = 0
    named: Count = 0


class RunPlace(Model):
    """A run that may still have data to delete. `at` is the time of its question."""

    run_id: str
    at: datetime


class ErasureRecord(Model):
    """The stored state of an erasure, from the request to the final report.

    Attributes:
        erasure_id: digest of the person's id.
        user_id: id of the person; empty once the erasure has ended.
        not_before: time at which the next pass is due. Messages that arrive earlier are duplicates.
        passes: number of completed passes.
        counted: number of passes included in `counts`; a repeated pass isn't counted twice.
        threads, runs, instances: work of the last pass, removed as it is done; `instances` are
            orchestrations.
        deleting: counted documents and access lists whose deletion may outlast a pass.
        is_finishing: whether a pass has found nothing new, and the last data is being deleted.
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
    """Queue message that repeats the deletion of a run, because steps active at the first deletion may have
    written data.
    """

    run_id: str


class EraseUserTask(Model):
    """Queue message that starts or continues a pass of a person's erasure."""

    erasure_id: str


class Kept(Model):
    """A kind of data that an erasure keeps. `count` is None if the items can't be counted."""

    what: str = Field(description="Description of the data that is kept.")
    count: Count | None = Field(description="Number of items, or null if they can't be counted.")
    why: str = Field(description="Reason why the data is kept.")


class ErasureView(Model):
    """Reply of DELETE /api/users/{user_id} and GET /api/users/{user_id}/erasure: progress and result of an
    erasure.

    Attributes:
        next_pass_at: time of the next pass; None if the erasure has ended.
        reason: why the erasure failed, and what to do.
        erased: number of items erased up to now.
        kept: data that is kept, with reasons.
    """

    user_id: str = Field(description="Id of the person, as given in the request.")
    status: ErasureStatus = Field(
        description="`running` until a pass finds no new data; `failed` if the person keeps using the app."
    )
    documents: DocumentsWish = Field(
        description="Whether documents that nobody else may read are deleted too."
    )
    asked_at: datetime = Field(description="Time of the request.")
    finished_at: datetime | None = Field(
        description="Time at which the erasure ended, or null while it is running."
    )
    passes: Count = Field(description="Number of completed passes.")
    next_pass_at: datetime | None
    reason: str | None
    erased: ErasedCounts
    kept: tuple[Kept, ...]
    status_url: str = Field(description="URL at which the progress can be read.")
