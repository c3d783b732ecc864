"""Models of summaries: values in the journal, model outputs, actions and observations of steps, and views.

Actions and observations contain ids, counts and instants, never content.
"""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from shared.answering.subagent_models import SubagentPlace
from shared.evidence.models import Citation
from shared.platform.models import Model

SummaryStatus = Literal["running", "completed", "failed", "cancelled"]
DocumentOutcome = Literal["done", "partial", "not_found", "failed"]
DocumentProgress = Literal["waiting", "running", "done", "partial", "not_found", "failed"]


class Finding(Model):
    """A statement and the quotation that proves it. `citation.n` is numbered within its result."""

    text: str = Field(description="The statement.")
    citation: Citation = Field(description="The quotation that proves it.")


class Metric(Model):
    """A number stated by a document. `value` occurs verbatim in the quotation."""

    name: str = Field(description="The measured quantity.")
    value: str = Field(description="The number, as the document prints it.")
    unit: str | None = Field(default=None, description="Unit, as the document prints it.")
    citation: Citation = Field(description="The quotation that proves it.")


class DocumentPlan(Model):
    """A document as found by its first step, divided into windows of block ids in page order.

    Attributes:
        left_out_blocks: number of blocks beyond the limit on windows.
        source_url: where a recording can be played, if it was imported from elsewhere.
        language: of the document, ISO 639-1; empty = unknown.
    """

    doc_id: str
    filename: str
    windows: tuple[tuple[str, ...], ...]
    language: str = ""
    left_out_blocks: int = 0
    source_url: str | None = None


class WindowResult(Model):
    """The proved findings and metrics of one window.

    Attributes:
        dropped: number of findings and metrics without a verbatim quotation.
    """

    findings: tuple[Finding, ...] = ()
    metrics: tuple[Metric, ...] = ()
    tags: tuple[str, ...] = ()
    dropped: int = 0


class Statement(Model):
    """Part of a summary's text, and the indexes (from 0) of the findings that it is based on."""

    text: str
    findings: tuple[int, ...] = ()


class DocumentResult(Model):
    """The complete or partial result of one document.

    Attributes:
        findings: referenced by statements; the first `key_count` are its key findings.
        language: of the document, ISO 639-1; empty = unknown.
    """

    doc_id: str
    filename: str = ""
    language: str = ""
    status: DocumentOutcome
    warning: str | None = None
    findings: tuple[Finding, ...] = ()
    key_count: int = 0
    statements: tuple[Statement, ...] = ()
    metrics: tuple[Metric, ...] = ()
    tags: tuple[str, ...] = ()


class SummarisedDocument(Model):
    """Whether and how far a document was summarised. Missing and forbidden documents look the same: only
    the id is shown.
    """

    doc_id: str = Field(description="The document.")
    filename: str = Field(default="", description="Name of the file.")
    status: DocumentOutcome = Field(description="Status.")
    warning: str | None = Field(default=None, description="What is missing, for users.")


class SummaryResult(Model):
    """A finished summary.

    Attributes:
        summary: Markdown; each statement is followed by its sources, numbered as in `citations`.
        warnings: what is missing and why, as sentences for users.
    """

    summary: str = ""
    key_findings: tuple[Finding, ...] = Field(default=(), description="Key findings with their proofs.")
    metrics: tuple[Metric, ...] = Field(default=(), description="Numbers that the documents state.")
    tags: tuple[str, ...] = Field(default=(), description="Categories of the content.")
    citations: tuple[Citation, ...] = Field(
        default=(), description="Quotations with their places, in the order of their numbers."
    )
    documents: tuple[SummarisedDocument, ...] = Field(default=(), description="The outcome of each document.")
    warnings: tuple[str, ...] = ()


class SummaryOutcome(Model):
    """The result of a summary, with the reason if none of its documents could be summarised.

    Attributes:
        used: the documents that contributed.
    """

    result: SummaryResult
    used: tuple[str, ...] = ()
    error: str | None = None
    error_type: str | None = None


class ChildView(Model):
    """The progress of one document."""

    doc_id: str = Field(description="The document.")
    filename: str = Field(default="", description="Name of the file.")
    status: DocumentProgress = Field(description="Status.")
    windows: int = Field(default=0, description="Number of parts; 0 until it is known.")
    windows_done: int = Field(default=0, description="Number of parts read.")


class SummaryView(Model):
    """A summary as shown to its owner, with `result` once it is completed.

    Attributes:
        progress: 0-1, by windows read.
    """

    summary_id: str = Field(description="The summary.")
    status: SummaryStatus = Field(description="Status.")
    focus: str = Field(default="", description="The question it focuses on; may be empty.")
    language: str | None = Field(default=None, description="ISO 639-1 code of its language.")
    created_at: datetime = Field(description="When it was created.")
    finished_at: datetime | None = Field(default=None, description="When it ended; null until then.")
    progress: float = 0.0
    children: tuple[ChildView, ...] = Field(default=(), description="Status of each document.")
    result: SummaryResult | None = Field(default=None, description="The summary, once it is completed.")
    error: str | None = Field(default=None, description="Why it failed, for users; null if it did not.")
    error_type: str | None = Field(default=None, description="Code of the error; null if there is none.")
    status_url: str = Field(description="URL of its progress.")


class SummaryItem(Model):
    """A summary in a list. GET /api/summaries/{summary_id} returns its result."""

    summary_id: str = Field(description="The summary.")
    status: SummaryStatus = Field(description="Status.")
    focus: str = Field(description="The question it focuses on; may be empty.")
    language: str | None = Field(description="ISO 639-1 code of its language.")
    document_count: int = Field(description="Number of documents.")
    created_at: datetime = Field(description="When it was created.")
    finished_at: datetime | None = Field(description="When it ended; null until then.")
    error_type: str | None = Field(description="Code of the error; null if there is none.")
    status_url: str = Field(description="URL of its progress.")


class SummaryList(Model):
    """Response of GET /api/summaries, newest first."""

    summaries: tuple[SummaryItem, ...] = Field(description="Summaries on this page.")
    count: int = Field(description="Number of summaries on this page.")
    cursor: str | None = Field(default=None, description="Cursor of the next page; null at the end.")


class WindowFinding(Model):
    """One finding of a window."""

    text: str = Field(description="One self-contained sentence in the requested language.")
    quote: str = Field(description="Copied letter by letter from one block; proves the text.")


class WindowMetric(Model):
    """One number of a window."""

    name: str = Field(description="The quantity, such as 'maximum operating pressure'.")
    value: str = Field(description="The number as printed, without its unit.")
    unit: str | None = Field(description="The unit as printed, or null.")
    quote: str = Field(description="Copied letter by letter from one block; contains the number.")


class WindowSummary(Model):
    """Structured output for one window."""

    findings: tuple[WindowFinding, ...] = Field(description="0-8, most important first.")
    metrics: tuple[WindowMetric, ...] = Field(description="0-10 numbers that matter.")
    tags: tuple[str, ...] = Field(description="1-5 categories, lower case.")


class FindingChoice(Model):
    """Structured output: the most important findings."""

    numbers: tuple[int, ...] = Field(description="Numbers of findings, most important first.")


class MergedStatement(Model):
    """One or two sentences of the narrative."""

    text: str = Field(description="Based only on the findings. No numbers in brackets.")
    findings: tuple[int, ...] = Field(description="Numbers of the findings behind it, at least one.")


class MergedSummary(Model):
    """Structured output: a narrative over findings."""

    statements: tuple[MergedStatement, ...] = Field(description="The narrative, in order.")
    key_findings: tuple[int, ...] = Field(
        description="Numbers of the 3-12 most important findings, in order."
    )
    tags: tuple[str, ...] = Field(description="3-8 categories, from the given ones where possible.")


class DocumentPlaces(Model):
    """The children of a summary, one for each of its documents, in order."""

    children: tuple[SubagentPlace, ...]


class OpenDocument(Model):
    """Split a document into windows."""

    kind: Literal["open_document"] = "open_document"


class ReadWindows(Model):
    """Read the windows from `first` up to, but not including, `end`. Those already read are skipped."""

    kind: Literal["read_windows"] = "read_windows"
    first: int
    end: int


class ReduceDocument(Model):
    """Merge the findings of a document's windows."""

    kind: Literal["reduce_document"] = "reduce_document"
    window_count: int


DocumentAction = OpenDocument | ReadWindows | ReduceDocument
"""An action of a child that reads one document."""


class DocumentsChosen(Model):
    """The documents are chosen; next, a child reads each of them.

    Attributes:
        until: time with zone at which unfinished children are terminated.
        at_once: maximum number of concurrent children.
    """

    is_last: ClassVar[bool] = False
    kind: Literal["documents_chosen"] = "documents_chosen"
    children: tuple[SubagentPlace, ...]
    until: datetime
    at_once: int


class DocumentOpened(Model):
    """The document was split into windows."""

    is_last: ClassVar[bool] = False
    kind: Literal["document_opened"] = "document_opened"
    window_count: int
    filename: str = ""


class WindowRead(Model):
    """A window was read; its findings are in the journal."""

    is_last: ClassVar[bool] = False
    kind: Literal["window_read"] = "window_read"


class WindowsRead(Model):
    """A range of windows was processed.

    Attributes:
        again: number of failed windows that may succeed if they are read again.
    """

    is_last: ClassVar[bool] = False
    kind: Literal["windows_read"] = "windows_read"
    done: int
    failed: int = 0
    again: int = 0


class DocumentEnded(Model):
    """The document's result is in the journal."""

    is_last: ClassVar[bool] = True
    kind: Literal["document_ended"] = "document_ended"
    status: DocumentOutcome


class SummaryMerged(Model):
    """The summary of all documents is in the journal."""

    is_last: ClassVar[bool] = True
    kind: Literal["summary_merged"] = "summary_merged"


class SummaryStale(Model):
    """The user has lost access to a document since the summary was merged, so it must be merged again without
    that document.
    """

    is_last: ClassVar[bool] = True
    kind: Literal["summary_stale"] = "summary_stale"


SummaryObservation = (
    DocumentsChosen | DocumentOpened | WindowRead | WindowsRead | DocumentEnded | SummaryMerged | SummaryStale
)
