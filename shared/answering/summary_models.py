"""Models of summaries: journal values, model outputs, actions and observations of steps, and views.

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
    """A statement and the quotation that proves it. `citation.n` is its number within the result."""

    text: str = Field(description="Text of the statement.")
    citation: Citation = Field(description="Quotation that proves the statement.")


class Metric(Model):
    """A number that a document states. `value` occurs verbatim in the quotation."""

    name: str = Field(description="Name of the measured quantity.")
    value: str = Field(description="Number as printed in the document.")
    unit: str | None = Field(
        default=None, description=("Unit as printed in the document; null if there is none.")
    )
    citation: Citation = Field(description="Quotation that contains the number.")


class DocumentPlan(Model):
    """The plan for reading one document: its windows, as lists of block ids in document order.

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
    """The verified findings and metrics of one window.

    Attributes:
        dropped: number of findings and metrics without a verbatim quotation.
    """

    findings: tuple[Finding, ...] = ()
    metrics: tuple[Metric, ...] = ()
    tags: tuple[str, ...] = ()
    dropped: int = 0


class Statement(Model):
    """Part of a summary's text, with the indexes (from 0) of the findings that support it."""

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
    """Whether and how completely a document was summarised. Missing and forbidden documents look the same."""

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(
        default="", description=("Name of the file; empty if the document is missing or forbidden.")
    )
    status: DocumentOutcome = Field(description="How completely the document was summarised.")
    warning: str | None = Field(
        default=None, description=("Sentences for users about what is missing; null if nothing is.")
    )


class SummaryResult(Model):
    """The result of a summary: its text, its key findings, and the outcome of each document.

    Attributes:
        summary: Markdown; each statement is followed by its sources, numbered as in `citations`.
        warnings: what is missing and why, as sentences for users.
    """

    summary: str = ""
    key_findings: tuple[Finding, ...] = Field(
        default=(), description=("Key findings, each with the quotation that proves it.")
    )
    metrics: tuple[Metric, ...] = Field(
        default=(), description=("Numbers that the documents state, each with its quotation.")
    )
    tags: tuple[str, ...] = Field(default=(), description="Tags that categorise the content.")
    citations: tuple[Citation, ...] = Field(
        default=(), description="Quotations that prove the summary, in the order of their numbers."
    )
    documents: tuple[SummarisedDocument, ...] = Field(default=(), description="Outcome of each document.")
    warnings: tuple[str, ...] = ()


class SummaryOutcome(Model):
    """The result of a summary, and the error if no document could be summarised.

    Attributes:
        used: the documents that contributed.
    """

    result: SummaryResult
    used: tuple[str, ...] = ()
    error: str | None = None
    error_type: str | None = None


class ChildView(Model):
    """Progress of the child that reads one document."""

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(default="", description="Name of the file; empty until the document was opened.")
    status: DocumentProgress = Field(description="Progress of the document.")
    windows: int = Field(
        default=0, description="Number of windows into which the document is divided; 0 until it is known."
    )
    windows_done: int = Field(default=0, description="Number of windows read so far.")


class SummaryView(Model):
    """A summary as shown to its owner. `result` is null while it is running.

    Attributes:
        progress: 0-1, by windows read.
    """

    summary_id: str = Field(description="Id of the summary.")
    status: SummaryStatus = Field(description="Status of the summary.")
    focus: str = Field(
        default="", description=("Question that the summary focuses on; empty if there is none.")
    )
    language: str | None = Field(
        default=None,
        description=("Requested language, an ISO 639-1 code; null for the language of the documents."),
    )
    created_at: datetime = Field(description="Time when the summary was created.")
    finished_at: datetime | None = Field(
        default=None, description=("Time when the summary ended; null until then.")
    )
    progress: float = 0.0
    children: tuple[ChildView, ...] = Field(default=(), description="Progress of each document.")
    result: SummaryResult | None = Field(
        default=None, description=("Result of the summary; null while it is running.")
    )
    error: str | None = Field(
        default=None, description=("Sentence for users about why the summary failed; null if it did not.")
    )
    error_type: str | None = Field(default=None, description="Code of the error; null if there is none.")
    status_url: str = Field(description="URL that returns the progress of the summary.")


class SummaryItem(Model):
    """A summary in a list, without its result, which GET /api/summaries/{summary_id} returns."""

    summary_id: str = Field(description="Id of the summary.")
    status: SummaryStatus = Field(description="Status of the summary.")
    focus: str = Field(description="Question that the summary focuses on; empty if there is none.")
    language: str | None = Field(
        description=("Requested language, an ISO 639-1 code; null for the language of the documents.")
    )
    document_count: int = Field(description="Number of documents to summarise.")
    created_at: datetime = Field(description="Time when the summary was created.")
    finished_at: datetime | None = Field(description="Time when the summary ended; null until then.")
    error_type: str | None = Field(description="Code of the error; null if there is none.")
    status_url: str = Field(description="URL that returns the progress of the summary.")


class SummaryList(Model):
    """Response of GET /api/summaries, with the newest summaries first."""

    summaries: tuple[SummaryItem, ...] = Field(description="Summaries on this page.")
    count: int = Field(description="Number of summaries on this page.")
    cursor: str | None = Field(default=None, description="Cursor of the next page; null on the last page.")


class WindowFinding(Model):
    """A finding in one window of a document: a statement with the quotation that proves it."""

    text: str = Field(description="One self-contained sentence in the requested language.")
    quote: str = Field(description="Copied letter by letter from one block; proves the text.")


class WindowMetric(Model):
    """A number stated in one window of a document, with the quotation that contains it."""

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
    """The children that read the documents of a summary, in the order of the documents."""

    children: tuple[SubagentPlace, ...]


class OpenDocument(Model):
    """Action that splits a document into windows."""

    kind: Literal["open_document"] = "open_document"


class ReadWindows(Model):
    """Action that reads the windows from `first` up to but excluding `end`. Windows that were already read
    are skipped.
    """

    kind: Literal["read_windows"] = "read_windows"
    first: int
    end: int


class ReduceDocument(Model):
    """Action that merges the findings of a document's windows."""

    kind: Literal["reduce_document"] = "reduce_document"
    window_count: int


DocumentAction = OpenDocument | ReadWindows | ReduceDocument
"""An action of a child that reads one document."""


class DocumentsChosen(Model):
    """Observation after the documents were chosen, so that a child must now read each of them.

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
    """Observation after the document was split into windows."""

    is_last: ClassVar[bool] = False
    kind: Literal["document_opened"] = "document_opened"
    window_count: int
    filename: str = ""


class WindowRead(Model):
    """Observation after one window was read. Its findings are stored in the journal."""

    is_last: ClassVar[bool] = False
    kind: Literal["window_read"] = "window_read"


class WindowsRead(Model):
    """Observation after all windows of a range were processed.

    Attributes:
        again: number of failed windows that may succeed if they are read again.
    """

    is_last: ClassVar[bool] = False
    kind: Literal["windows_read"] = "windows_read"
    done: int
    failed: int = 0
    again: int = 0


class DocumentEnded(Model):
    """Observation after the result of the document was stored in the journal."""

    is_last: ClassVar[bool] = True
    kind: Literal["document_ended"] = "document_ended"
    status: DocumentOutcome


class SummaryMerged(Model):
    """Observation after the summary of all documents was stored in the journal."""

    is_last: ClassVar[bool] = True
    kind: Literal["summary_merged"] = "summary_merged"


class SummaryStale(Model):
    """Observation after the user lost access to a document of the merged summary, so that it must be merged
    again without the document.
    """

    is_last: ClassVar[bool] = True
    kind: Literal["summary_stale"] = "summary_stale"


SummaryObservation = (
    DocumentsChosen | DocumentOpened | WindowRead | WindowsRead | DocumentEnded | SummaryMerged | SummaryStale
)
