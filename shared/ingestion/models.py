"""Inputs and replies of ingestion activities, results of the parser, and audit reports."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.documents.models import Chunk, Figure
from shared.evidence.models import PageArea
from shared.platform.errors import FileFailure
from shared.platform.models import Model
from shared.retrieval.metadata_text import MetadataName


class IngestRequest(Model):
    """Input of the `ingest_document` orchestration, which updates the indexes to match this blob, even if the
    blob was deleted.

    It doesn't say what happened to the blob, because events may arrive late, twice or out of order.
    """

    blob_name: str


class WatchMessage(Model):
    """Message in the queue `ingestions`, which triggers a check of the ingestions in progress.

    Attributes:
        token: token of the watch to continue; "" = check once.
    """

    token: str = ""


class IngestStep(Model):
    """Input of every activity of an ingestion.

    Attributes:
        fence: token of the execution; a step whose token isn't in the document's row does nothing.
        wish: the row's wish counter when the execution read it; 0 = not read yet.
        work: etag of the document's backlog row, read before `wish`; "" = not read yet, or no such row.
        rests: number of pauses so far because a service had failed.
        version_key: key of the version being ingested, once the file was read.
        first, end: range of new blocks to write or new figures to caption; `end` is exclusive.
        last_attempt: whether the step won't be retried, so optional results are replaced by fallbacks.
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
    """Reply of the parsing step, which either parsed the file or found its bytes unchanged."""

    kind: Literal["parsed"] = "parsed"
    version_key: str
    same_bytes: bool = False


class Done(Model):
    """Reply of a step without other values to return. Its result is in the version's folder or in the
    indexes.
    """

    kind: Literal["done"] = "done"


class IngestResult(Model):
    """Output of the ingestion orchestration. The counts are numbers of blocks, and are 0 if no block was
    written.
    """

    outcome: Literal["ready", "current", "rights", "removed", "nothing", "overtaken", "rests", "failed"]
    reason: str | None = None
    new_count: int = 0
    kept_count: int = 0
    moved_count: int = 0
    gone_count: int = 0


class SmallDone(Model):
    """Reply of the activity that ingests a small document completely, including the final status."""

    kind: Literal["small_done"] = "small_done"
    result: IngestResult
    again: bool


class Accepted(Model):
    """Reply of the first step of an ingestion: the work that the ingestion must do.

    Attributes:
        outcome: `nothing`: the document never existed. `gone`: remove its data. `current`: nothing to do.
            `changed`: see the flags.
        wish, work, rests: as in `IngestStep`, once the row was read.
        small: ingest the document in one step.
        done: the result if the first step has ingested the document.
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


# Fields that the orchestration copies from `Planned` to `IngestResult`.
BLOCK_COUNTS = {"new_count", "kept_count", "moved_count", "gone_count"}


class Planned(Model):
    """Reply of the planning step: the numbers of new, moved, unchanged and deleted blocks."""

    kind: Literal["planned"] = "planned"
    new_count: int
    new_figure_count: int = 0
    moved_count: int
    kept_count: int
    gone_count: int


class Closed(Model):
    """Reply of the last step, which recorded how the ingestion ended."""

    kind: Literal["closed"] = "closed"
    again: bool


class Fenced(Model):
    """Reply of a step that stopped because another execution has taken over the document, or the document was
    deleted.
    """

    kind: Literal["fenced"] = "fenced"


class IngestFailure(Model):
    """Reply of a failed step. Users see `reason` and `hint`, or their client's translation of `failure`.

    Attributes:
        retryable: the step may succeed later.
        waits: the step must wait for a free worker.
        wish, work, rests: as in `IngestStep`.
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
    """Return whether an execution ends with this reply and no further ingestion is needed."""
    if isinstance(reply, Accepted):
        return reply.outcome == "nothing" or (reply.done is not None and not reply.done.again)
    return isinstance(reply, Closed | SmallDone) and not reply.again


class IngestReplyEnvelope(Model):
    """Output of every ingestion activity. Expected failures are returned as replies, not raised as
    exceptions.
    """

    reply: IngestReply


class CloseRequest(Model):
    """Input of the last activity of an ingestion, which records the final status.

    Attributes:
        may_pass: don't count the failure against the file, because no worker was free or a service failed.
    """

    step: IngestStep
    status: Literal["ready", "failed"] | None
    reason: str | None = None
    hint: str | None = None
    failure: FileFailure | None = None
    may_pass: bool = False


class RestRequest(Model):
    """Input of the activity that ends an execution and pauses its document, so that no execution has to wait
    for long.

    Attributes:
        pause_s: seconds until the document is admitted again.
        has_failed: whether a service failed; otherwise no worker was free.
    """

    step: IngestStep
    pause_s: float
    has_failed: bool


class ParsedFile(Model):
    """Chunks, figures and properties that the parser has extracted from one file.

    Attributes:
        figures: figures to index; their pictures are in the version's folder.
        date: day on which an e-mail was sent, in ISO 8601; None for other formats.
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
    date: str | None = None
    first_heading: MetadataName | None = None
    opening: str = ""
    unread_pages: tuple[int, ...] = ()
    unreadable_pages: int = 0
    warnings: tuple[str, ...] = ()


class BlockChanges(Model):
    """Comparison of a document's blocks with its index rows. Positions are indexes into the list of its
    blocks: first all chunks, then all figures.

    Attributes:
        new: blocks to embed and write; new figures are captioned first.
        moved: blocks whose row has another page or position, which is updated without embedding.
        kept: blocks with unchanged rows.
        gone: ids of rows to delete.
    """

    new: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    gone: tuple[str, ...] = ()


PieceKind = Literal["heading", "paragraph", "list_item", "table", "code", "figure"]


class LayoutPiece(Model):
    """A heading, paragraph, table or other piece of a page layout.

    Attributes:
        text: a figure's caption; empty for tables.
        level: 1-6 for headings, otherwise None.
        rows: rows of a table, header first; a spanning cell is repeated in every position that it covers.
        words: words inside a figure, which are also separate pieces.
        area: a figure's position on the page; None = unknown.
    """

    kind: PieceKind
    text: str = ""
    page_number: int | None = None
    level: int | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    words: str = ""
    area: PageArea | None = None


class Layout(Model):
    """A document's layout as returned by a parser service.

    Attributes:
        page_count: number of pages read by the service.
        service: name of the service for use in messages, with the article.
    """

    pieces: tuple[LayoutPiece, ...]
    page_count: int
    service: str


class PageTexts(Model):
    """Recognised text by page number, with blank lines between paragraphs. Pages that were not read are
    missing.
    """

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
    """One difference found by an audit. `place` is the blob name if known, otherwise the document id."""

    kind: DifferenceKind = Field(description="Kind of difference.")
    place: str = Field(description="Blob name, or document id if the name is unknown or hidden.")
    detail: str = Field(description="Explanation of the difference.")


class AuditCounts(Model):
    """Numbers of files, states, index rows, blocks and figures that an audit has found."""

    files: int = Field(default=0, description="Number of documents with a file in storage.")
    states: int = Field(default=0, description="Number of documents with an ingestion state.")
    rows: int = Field(default=0, description="Number of documents in the document index.")
    blocks: int = Field(default=0, description="Number of blocks in the content index.")
    figures: int = Field(default=0, description="Number of stored figure pictures.")
    failed: int = Field(default=0, description="Number of documents whose ingestion failed.")


class UnreadableDocument(Model):
    """A document that no user can read because its access list is empty."""

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="Name of the file.")
    status: str = Field(description="Ingestion status of the document.")
    warning: str | None = Field(description="Warning about the document's permissions, if any.")


class AuditReport(Model):
    """Response of GET /api/maintenance/audit: the differences between files, states and indexes.

    Attributes:
        agrees: whether there are no differences. A failed document isn't a difference.
        share: share of documents compared; 1 = all. If there are many, each call compares another part.
        difference_count: number of differences, including those not listed.
        differences: differences, at most 500.
        unreadable: documents without readers, at most 500. They don't count as differences.
    """

    agrees: bool
    at: datetime = Field(description="Time of the report.")
    share: float
    counts: AuditCounts = Field(description="Number of documents, rows and blocks found.")
    difference_count: int
    differences: tuple[Difference, ...]
    unreadable: tuple[UnreadableDocument, ...]


class ReconcileReport(Model):
    """Result of one reconciliation: the ingestions that it started and the data that it removed.

    Attributes:
        started: number of ingestions started, by kind of difference.
        removed_orphans: number of documents of which only index rows remained.
        left: number of differences left for the next run.
        share: share of documents compared, as in an audit.
    """

    started: dict[str, int]
    removed_orphans: int
    left: int
    share: float
