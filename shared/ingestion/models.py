"""Inputs and replies of ingestion steps, parser results and audit reports."""

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

    It names the blob rather than what happened, because events arrive late, twice and out of order.
    """

    blob_name: str


class WatchMessage(Model):
    """Message of the queue `ingestions`: look after the ingestions in progress.

    Attributes:
        token: of the watch that continues; "" = look once.
    """

    token: str = ""


class IngestStep(Model):
    """Input of every activity of an ingestion.

    Attributes:
        fence: token of the execution; a step whose token isn't in the document's row does nothing.
        wish: the newest one when the execution looked at the row; 0 = it hasn't yet.
        work: etag of the backlog's row, read before that; "" = it hasn't been read, or is missing.
        rests: number of waits for a failed service so far.
        version_key: of the version being ingested, once the file was read.
        first, end: range of new blocks to write or new figures to caption; `end` is exclusive.
        last_attempt: a failure is final now, so optional results are replaced by fallbacks.
    """

    blob_name: str
    fence: str
    wish: int = 0
    work: str = ""
    rests: int = 0
    version_key: str = ""
    first: int = 0
    end: int = 0
    last_attempt: bool = False


class Parsed(Model):
    """The file was parsed, unless its bytes are unchanged."""

    kind: Literal["parsed"] = "parsed"
    version_key: str
    same_bytes: bool = False


class Done(Model):
    """The step is done; its result is stored in the version's folder or in the indexes."""

    kind: Literal["done"] = "done"


class IngestResult(Model):
    """Output of the orchestration. Counts are 0 if nothing of the kind was done."""

    outcome: Literal["ready", "current", "rights", "removed", "nothing", "overtaken", "rests", "failed"]
    reason: str | None = None
    new_count: int = 0
    kept_count: int = 0
    moved_count: int = 0
    gone_count: int = 0


class SmallDone(Model):
    """A small document is completely ingested and closed, as in `Closed`."""

    kind: Literal["small_done"] = "small_done"
    result: IngestResult
    again: bool


class Accepted(Model):
    """The work to do.

    `nothing`: the document never existed. `gone`: remove it. `current`: nothing to do. `changed`: see the
    flags. `small`: ingest it in one step; `done`: it was ingested at once. `wish`, `work`, `rests`: as in the
    step, once the row was read.
    """

    kind: Literal["accepted"] = "accepted"
    outcome: Literal["nothing", "gone", "current", "changed"]
    wish: int = 0
    work: str = ""
    rests: int = 0
    content_changed: bool = False
    rights_changed: bool = False
    small: bool = False
    done: SmallDone | None = None


BLOCK_COUNTS = {"new_count", "kept_count", "moved_count", "gone_count"}  # copied from the plan to the result


class Planned(Model):
    """The number of changed blocks, which include new figures."""

    kind: Literal["planned"] = "planned"
    new_count: int
    new_figure_count: int = 0
    moved_count: int
    kept_count: int
    gone_count: int


class Closed(Model):
    """The ingestion's end is recorded; `again` = something was noted meanwhile, so look again."""

    kind: Literal["closed"] = "closed"
    again: bool


class Fenced(Model):
    """Another execution works on the document, or it was deleted: look again."""

    kind: Literal["fenced"] = "fenced"


class IngestFailure(Model):
    """A step failed; users see `reason` and `hint`, or their client's text for `failure`.

    `retryable`: it may succeed later. `waits`: others have their turn first. `wish`, `work`, `rests`: as in
    the step.
    """

    kind: Literal["failed"] = "failed"
    reason: str
    hint: str = ""
    failure: FileFailure = "internal"
    retryable: bool = False
    retry_after_s: float | None = None
    waits: bool = False
    wish: int = 0
    work: str = ""
    rests: int = 0


IngestReply = Annotated[
    Accepted | Parsed | Done | Planned | Closed | SmallDone | Fenced | IngestFailure,
    Field(discriminator="kind"),
]


def is_last(reply: IngestReply) -> bool:
    """Return whether an execution ends with this reply, and leaves no work."""
    if isinstance(reply, Accepted):
        return reply.outcome == "nothing" or (reply.done is not None and not reply.done.again)
    return isinstance(reply, Closed | SmallDone) and not reply.again


class IngestReplyEnvelope(Model):
    """Output of every ingestion activity: expected failures are replies, not exceptions."""

    reply: IngestReply


class CloseRequest(Model):
    """Input of the last activity: the final status.

    Attributes:
        may_pass: the failure doesn't count against these bytes: they had no turn, or a service failed.
    """

    step: IngestStep
    status: Literal["ready", "failed"] | None
    reason: str | None = None
    hint: str | None = None
    failure: FileFailure | None = None
    may_pass: bool = False


class RestRequest(Model):
    """Input of the activity that ends an execution which would wait for long.

    Attributes:
        pause_s: seconds until the document is admitted again.
        has_failed: a service failed; otherwise others have their turn first.
    """

    step: IngestStep
    pause_s: float
    has_failed: bool


class ParsedFile(Model):
    """The worker process's result for a file.

    Attributes:
        figures: figures with a block; their pictures are in the version's folder.
        opening: the first 6,000 characters of text, used for metadata.
        unread_pages: pages without text that no text recognition has read.
        unreadable_pages: number of pages without readable text.
        first_heading: the first heading of the highest level; None if there is none.
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
    """The changed blocks. Positions count the document's blocks from 0: chunks, then figures.

    Attributes:
        new: blocks to embed and write; figures among them are captioned.
        moved: blocks whose rows exist with another page or position: merged without embedding.
        kept: blocks with unchanged rows.
        gone: ids of rows to delete.
    """

    new: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    gone: tuple[str, ...] = ()


PieceKind = Literal["heading", "paragraph", "list_item", "table", "code", "figure"]


class LayoutPiece(Model):
    """One piece of a layout.

    Attributes:
        text: a figure's caption; empty for tables.
        level: 1-6 for headings, otherwise None.
        rows: of a table, header first; spanning cells are repeated in every position that they cover.
        words: words in a figure, which are also separate pieces.
        area: a figure's position on its page; None = unknown.
    """

    kind: PieceKind
    text: str = ""
    page_number: int | None = None
    level: int | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    words: str = ""
    area: PageArea | None = None


class Layout(Model):
    """A document as returned by a parser service.

    Attributes:
        page_count: number of pages read by the service.
        service: its name in messages, with the article.
    """

    pieces: tuple[LayoutPiece, ...]
    page_count: int
    service: str


class PageTexts(Model):
    """The words of pages by page number, with blank lines between paragraphs; missing = unread."""

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
    """One difference. `place` is the blob's name if known, otherwise the document's id."""

    kind: DifferenceKind = Field(description="What differs.")
    place: str = Field(description="Where it was found.")
    detail: str = Field(description="What exactly is wrong.")


class AuditCounts(Model):
    """The number of items of each kind."""

    files: int = Field(default=0, description="Files in the storage.")
    states: int = Field(default=0, description="Documents whose ingestion is recorded.")
    rows: int = Field(default=0, description="Documents in the index.")
    blocks: int = Field(default=0, description="Blocks in the index.")
    figures: int = Field(default=0, description="Pictures of documents.")
    failed: int = Field(default=0, description="Documents whose ingestion failed.")


class UnreadableDocument(Model):
    """A document without readers, and the status of its ingestion."""

    doc_id: str = Field(description="The document.")
    filename: str = Field(description="Name of the file.")
    status: str = Field(description="`failed` or `partial`.")
    warning: str | None = Field(description="What is missing, for users.")


class AuditReport(Model):
    """Response of GET /api/maintenance/audit.

    Attributes:
        agrees: there is no difference. A failed document isn't a difference.
        differences: the first MAX_DIFFERENCES of them.
        difference_count: number of all differences.
        share: of documents compared, 1 = all; each call compares another part if there are many.
        unreadable: the first MAX_DIFFERENCES documents without readers, which aren't differences.
    """

    agrees: bool
    at: datetime = Field(description="When it was made.")
    share: float
    counts: AuditCounts = Field(description="How many of each kind there are.")
    difference_count: int
    differences: tuple[Difference, ...]
    unreadable: tuple[UnreadableDocument, ...]


class ReconcileReport(Model):
    """The result of one reconciliation.

    Attributes:
        started: ingestions by kind of difference.
        removed_orphans: documents of which only index rows remained.
        left: differences left for the next run.
        share: of documents compared, as in an audit.
    """

    started: dict[str, int]
    removed_orphans: int
    left: int
    share: float
