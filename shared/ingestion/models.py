"""Inputs and replies of the steps of an ingestion, what parsers return, and reports of audits."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.documents.models import Chunk, Figure
from shared.evidence.models import PageArea
from shared.platform.errors import FileFailure
from shared.platform.models import Model
from shared.retrieval.metadata_text import MetadataName


class IngestRequest(Model):
    """Input of the `ingest_document` orchestration: bring the indexes in line with this blob, or its absence.

    It says where to look, not what happened: events come late, twice and out of order.
    """

    blob_name: str


class DeferredFile(Model):
    """Message of the queue `deferred-documents`: the event of a blob whose sender has too many files at work.

    Attributes:
        occasion: what tells this event from others of the same blob, such as its etag.
        deferrals: how often it was deferred, this time included.
    """

    blob_name: str
    occasion: str
    deferrals: int = 0


class IngestStep(Model):
    """Input of every activity of an ingestion.

    Attributes:
        instance_id: who works on the document; a step of an instance that lost its claim does nothing.
        version_key: of the version that is being made, once the file was read.
        first, end: positions in the list of new blocks to write, or of new figures to caption; `end` is
            excluded.
        last_attempt: a failure now is final; what can be done without is done without.
    """

    blob_name: str
    instance_id: str
    version_key: str = ""
    first: int = 0
    end: int = 0
    last_attempt: bool = False


class Parsed(Model):
    """The file is parsed, unless it has the same bytes as before."""

    kind: Literal["parsed"] = "parsed"
    version_key: str
    same_bytes: bool = False


class Done(Model):
    """The step is done; what it made is stored in the version's folder or in the indexes."""

    kind: Literal["done"] = "done"


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


class Accepted(Model):
    """What there is to do.

    `noted`: another instance works on the document and will look again when it ends. `nothing`: there is no
    such document and never was. `gone`: remove it. `current`: all is as it should be. `changed`: see the
    flags. `small`: its content takes one step; `done`: it was taken at once.
    """

    kind: Literal["accepted"] = "accepted"
    outcome: Literal["noted", "nothing", "gone", "current", "changed"]
    content_changed: bool = False
    rights_changed: bool = False
    small: bool = False
    done: SmallDone | None = None


BLOCK_COUNTS = {"new_count", "kept_count", "moved_count", "gone_count"}  # from a plan into the result


class Planned(Model):
    """How many blocks change. New figures count as new blocks, too."""

    kind: Literal["planned"] = "planned"
    new_count: int
    new_figure_count: int = 0
    moved_count: int
    kept_count: int
    gone_count: int


class Closed(Model):
    """The instance gave up its claim; but if `again`, an event came meanwhile: look at the blob again."""

    kind: Literal["closed"] = "closed"
    again: bool


class Superseded(Model):
    """Another instance took the document over: whatever this one would do is its business no more."""

    kind: Literal["superseded"] = "superseded"


class IngestFailure(Model):
    """A step failed; people see `reason` and `hint`, or what their client says of a `failure`.

    If `retryable`, it may succeed after the time that was asked for; if it `waits`, others are before it.
    `held_s`: seconds until what is in its way has ended at the latest.
    """

    kind: Literal["failed"] = "failed"
    reason: str
    hint: str = ""
    failure: FileFailure = "internal"
    retryable: bool = False
    retry_after_s: float | None = None
    waits: bool = False
    held_s: float | None = None


IngestReply = Annotated[
    Accepted | Parsed | Done | Planned | Closed | SmallDone | Superseded | IngestFailure,
    Field(discriminator="kind"),
]


class IngestReplyEnvelope(Model):
    """Output of every activity of an ingestion: expected failures are replies, never exceptions."""

    reply: IngestReply


class CloseRequest(Model):
    """Input of the last activity: how the state ends.

    Attributes:
        may_pass: the failure doesn't count as a try of these bytes: it had no turn, or a service failed.
    """

    step: IngestStep
    status: Literal["ready", "failed"] | None
    reason: str | None = None
    hint: str | None = None
    failure: FileFailure | None = None
    may_pass: bool = False


class ParsedFile(Model):
    """What the worker process makes of a file.

    Attributes:
        figures: those that get a block; their pictures lie in the version's folder.
        opening: the first 6,000 characters of text, from which metadata are made.
        unread_pages: those without text that no text recognition has read.
        unreadable_pages: how many pages hold no text that could be read.
        first_heading: the first heading of the highest level, None when there is none.
    """

    chunks: tuple[Chunk, ...]
    figures: tuple[Figure, ...] = ()
    page_count: int | None = None
    title: MetadataName | None = None
    author: MetadataName | None = None
    first_heading: MetadataName | None = None
    opening: str = ""
    unread_pages: tuple[int, ...] = ()
    unreadable_pages: int = 0
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


PieceKind = Literal["heading", "paragraph", "list_item", "table", "code", "figure"]


class LayoutPiece(Model):
    """One piece.

    Attributes:
        text: of a figure, its caption; empty for tables.
        level: 1-6 for headings, else None.
        rows: of a table, the header first; a cell that spans others stands in every place that it covers.
        words: the words in a figure; they are pieces of their own, too.
        area: of a figure, where it is on its page; None = not known.
    """

    kind: PieceKind
    text: str = ""
    page_number: int | None = None
    level: int | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    words: str = ""
    area: PageArea | None = None


class Layout(Model):
    """A document as a parser service returns it.

    Attributes:
        page_count: pages that the service read.
        service: its name in messages, with the article.
    """

    pieces: tuple[LayoutPiece, ...]
    page_count: int
    service: str


class PageTexts(Model):
    """The words of pages by their number, paragraphs parted by blank lines; absent = not read."""

    texts: dict[int, str]


DifferenceKind = Literal[
    "not_ingested",
    "outdated",
    "in_work",
    "file_gone",
    "rights_differ",
    "row_missing",
    "row_differs",
    "row_orphaned",
    "blocks_missing",
    "blocks_differ",
    "blocks_orphaned",
    "figures_missing",
    "figures_orphaned",
    "work_left",
]


class Difference(Model):
    """One thing that does not agree. `place` is a blob's name where it is known, else a document's id."""

    kind: DifferenceKind = Field(description="What differs.")
    place: str = Field(description="Where it was found.")
    detail: str = Field(description="What exactly is wrong.")


class AuditCounts(Model):
    """How many there are of each."""

    files: int = Field(default=0, description="Files in the storage.")
    states: int = Field(default=0, description="Documents whose ingestion is recorded.")
    rows: int = Field(default=0, description="Documents in the index.")
    blocks: int = Field(default=0, description="Blocks in the index.")
    figures: int = Field(default=0, description="Pictures of documents.")
    failed: int = Field(default=0, description="Documents whose ingestion failed.")


class UnreadableDocument(Model):
    """A document that nobody may read, and how its ingestion stands."""

    doc_id: str = Field(description="The document.")
    filename: str = Field(description="Name of the file.")
    status: str = Field(description="`failed` or `partial`.")
    warning: str | None = Field(description="What is missing, for users.")


class AuditReport(Model):
    """Answer of GET /api/maintenance/audit.

    Attributes:
        agrees: nothing differs. A document that failed on its own is no difference.
        differences: the first MAX_DIFFERENCES of them.
        difference_count: all of them.
        share: of the documents that were looked at, 1 = all; of very many it is another part each time.
        unreadable: the first MAX_DIFFERENCES documents that nobody may read; they are no differences.
    """

    agrees: bool
    at: datetime = Field(description="When it was made.")
    share: float
    counts: AuditCounts = Field(description="How many of each kind there are.")
    difference_count: int
    differences: tuple[Difference, ...]
    unreadable: tuple[UnreadableDocument, ...]


class ReconcileReport(Model):
    """What one reconciliation did.

    Attributes:
        started: ingestions, by the kind of difference.
        removed_orphans: documents of which only index rows were left.
        left: differences that the next run will find again.
        share: of the documents that were looked at, as in an audit.
    """

    started: dict[str, int]
    removed_orphans: int
    left: int
    share: float
