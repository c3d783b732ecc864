"""Ingestion's messages: what is asked of a step, what it answers, and the state that people can read.

They cross durable boundaries: names, counts and hashes only, never the content of a document.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.blocks import Chunk, Figure
from shared.models.documents import DocumentStatus


class IngestRequest(Model):
    """Input of the `ingest_document` orchestration: bring the indexes in line with this blob, or its absence.

    It says where to look, not what happened: events come late, twice and out of order.
    """

    blob_name: str


class IngestStep(Model):
    """Input of every activity of an ingestion.

    Attributes:
        instance_id: who works on the document; a step of an instance that lost its claim does nothing.
        content_hash: sha256 hex of the file, once it is known.
        first, end: positions in the list of new blocks to write, or of new figures to caption; `end` is
            excluded.
        last_attempt: a failure now is final; what can be done without is done without.
    """

    blob_name: str
    instance_id: str
    content_hash: str = ""
    first: int = 0
    end: int = 0
    last_attempt: bool = False


class Accepted(Model):
    """What there is to do.

    `noted`: another instance works on the document and will look again when it ends. `nothing`: there is no
    such document and never was. `gone`: remove it. `current`: all is as it should be. `changed`: see the
    flags. `small`: its content takes one step.
    """

    kind: Literal["accepted"] = "accepted"
    outcome: Literal["noted", "nothing", "gone", "current", "changed"]
    content_changed: bool = False
    rights_changed: bool = False
    small: bool = False


class Parsed(Model):
    """The file is parsed and its chunks lie in the work container, unless it has the same bytes as before."""

    kind: Literal["parsed"] = "parsed"
    content_hash: str
    same_bytes: bool = False
    chunk_count: int = 0


class Described(Model):
    """The document's metadata lie in the work container. `by_model` is false when rules made them."""

    kind: Literal["described"] = "described"
    by_model: bool


class Planned(Model):
    """Which blocks change; the lists lie in the work container. New figures count as new blocks, too."""

    kind: Literal["planned"] = "planned"
    new_count: int
    new_figure_count: int = 0
    moved_count: int
    kept_count: int
    gone_count: int


class Captioned(Model):
    """Figures have captions. `by_rule_count` of them by rule, because the model could not."""

    kind: Literal["captioned"] = "captioned"
    figure_count: int
    by_rule_count: int = 0


class Written(Model):
    """Blocks were embedded and written."""

    kind: Literal["written"] = "written"
    block_count: int


class RightsApplied(Model):
    """Both indexes carry the document's rights."""

    kind: Literal["rights_applied"] = "rights_applied"
    block_count: int


class Closed(Model):
    """The instance gave up its claim; but if `again`, an event came meanwhile: look at the blob anew."""

    kind: Literal["closed"] = "closed"
    again: bool


class IngestResult(Model):
    """Output of the orchestration. Counts are 0 where nothing of the kind was done."""

    outcome: Literal["ready", "current", "rights", "removed", "nothing", "noted", "superseded", "failed"]
    reason: str | None = None
    new_count: int = 0
    kept_count: int = 0
    moved_count: int = 0
    gone_count: int = 0


class SmallDone(Model):
    """All of a small document is done, and the claim given up as `Closed` says."""

    kind: Literal["small_done"] = "small_done"
    result: IngestResult
    again: bool


class Superseded(Model):
    """Another instance took the document over: whatever this one would do is its business no more."""

    kind: Literal["superseded"] = "superseded"


class IngestFailure(Model):
    """A step failed; people see `reason` and `hint`.

    If `retryable`, it may succeed after the time that was asked for; if it `waits`, others are before it.
    """

    kind: Literal["failed"] = "failed"
    reason: str
    hint: str = ""
    retryable: bool = False
    retry_after_s: float | None = None
    waits: bool = False


IngestReply = Annotated[
    Accepted
    | Parsed
    | Described
    | Planned
    | Captioned
    | Written
    | RightsApplied
    | Closed
    | SmallDone
    | Superseded
    | IngestFailure,
    Field(discriminator="kind"),
]


class IngestReplyEnvelope(Model):
    """Output of every activity of an ingestion: expected failures are replies, never exceptions."""

    reply: IngestReply


class CloseRequest(Model):
    """Input of the last activity: how the state ends; None = as it is. `waited`: no try, it had no turn."""

    step: IngestStep
    status: Literal["ready", "failed"] | None
    reason: str | None = None
    hint: str | None = None
    waited: bool = Field(default=False, exclude_if=lambda waited: not waited)  # as older versions sent it


class Rights(Model):
    """Who may read a document, and where it belongs.

    Attributes:
        acl: principals, sorted, the owner among them; empty = nobody.
        source_url: where it was taken from, such as the recording that a transcript is of.
        warning: what was wrong with the rights that came with the file; it is open to its owner only.
    """

    acl: tuple[str, ...] = ()
    owner_id: str | None = None
    project_id: str | None = None
    source_url: str | None = None
    warning: str | None = None


class PhaseTime(Model):
    """When a document entered a status, and how many answers of models it has cost there so far."""

    status: DocumentStatus
    at: datetime
    model_calls: int = 0


Corrections = dict[str, str | tuple[str, ...] | None]
"""Fields of a document's metadata as a person set them; None = left empty on purpose."""


class DocumentState(Model):
    """What is known of a document's ingestion; readable at any moment, also before it can be searched.

    Attributes:
        revision: the store's version of this row; a replace of an older one is a conflict.
        blob_etag, content_hash, pipeline, rights: what the indexes hold now; empty until the first success.
        wanted_etag, wanted_rights: what they are to hold when this ingestion is done.
        pipeline: hash of what else decides the blocks: embedding model, block size, version of the rules.
        copied_hash: hash of the fields that each block's row copies from its document.
        version: 1 for the first content, one more for each later one.
        holder, held_until: the instance that works on the document, and until when it is believed alive.
        pending: an event came while the document was held; the holder looks again before it ends.
        phases: statuses of the last ingestion in order.
        rows_outdated: what rows copy of the document changed while it was held; the last step writes it.
        sidecar_etag: of the file with rights that was read last; empty when there was none.
        corrections: metadata as people corrected them; they win over whatever is extracted.
        failed_tries: ingestions of the same bytes that failed, one after the other.
        tried_hash, tried_reason: of the bytes that were read last, and why they failed before.
    """

    doc_id: str
    blob_name: str
    filename: str
    revision: str | None = None
    status: DocumentStatus = "queued"
    reason: str | None = None
    hint: str | None = None
    warnings: tuple[str, ...] = ()
    rights: Rights = Rights()
    wanted_rights: Rights = Rights()
    blob_etag: str = ""
    wanted_etag: str = ""
    content_hash: str = ""
    pipeline: str = ""
    copied_hash: str = ""
    version: int = 0
    page_count: int | None = None
    block_count: int = 0
    holder: str | None = None
    held_until: datetime | None = None
    pending: bool = False
    phases: tuple[PhaseTime, ...] = ()
    rows_outdated: bool = False
    sidecar_etag: str = ""
    corrections: Corrections = Field(default_factory=dict)
    failed_tries: int = 0
    tried_hash: str = ""
    tried_reason: str | None = None
    updated_at: datetime


class ParsedFile(Model):
    """What the worker process makes of a file; kept in the work container until the document is ready.

    Attributes:
        figures: those that get a block; their pictures lie in the container of figures.
        opening: the first 6,000 characters of text, from which metadata are made.
        unread_pages: those without text that no text recognition has read.
        first_heading: the first heading of the highest level, None when there is none.
    """

    chunks: tuple[Chunk, ...]
    figures: tuple[Figure, ...] = ()
    page_count: int | None = None
    title: str | None = None
    author: str | None = None
    first_heading: str | None = None
    opening: str = ""
    unread_pages: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


class BlockChanges(Model):
    """The record manager's verdict. Positions count the document's blocks from 0: chunks, then figures.

    Attributes:
        new: blocks to embed and write; figures among them to caption.
        moved: blocks whose row exists, with another page or place: merged without embedding.
        kept: blocks whose row needs nothing.
        gone: ids of rows to delete.
    """

    new: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    gone: tuple[str, ...] = ()
