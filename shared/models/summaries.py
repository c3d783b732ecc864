"""Summaries of documents: the request, what is kept on the way, the result, and what callers see."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from shared.models.base import Model
from shared.models.citations import Citation
from shared.models.identity import UserContext

MAX_DOCUMENTS = 20
DocId = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128)]

SummaryStatus = Literal["running", "completed", "failed", "cancelled"]
DocumentOutcome = Literal["done", "partial", "not_found", "failed"]
DocumentProgress = Literal["waiting", "running", "done", "partial", "not_found", "failed"]


class SummaryOrder(Model):
    """Body of POST /api/summaries."""

    doc_ids: tuple[DocId, ...] = Field(
        min_length=1, max_length=MAX_DOCUMENTS, description="Documents, 1-20; repeated ones count once."
    )
    focus: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)] = Field(
        default="", description="A question that the summary should look at above all."
    )
    language: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$",
        description="Language to write in, such as `de`; left out: that of the documents.",
    )


class SummaryRequest(Model):
    """What a summary works from, kept before its orchestration starts.

    Attributes:
        map_until: no window is begun after it; what is read by then is reduced.
        children_until: children that are still at work then are ended.
        deadline: when the result is there at the latest, but for what a crash costs.
    """

    summary_id: str
    user: UserContext
    order: SummaryOrder
    created_at: datetime
    map_until: datetime
    children_until: datetime
    deadline: datetime


class Finding(Model):
    """A statement and the quotation that proves it. `citation.n` counts within the result that holds it."""

    text: str
    citation: Citation


class Metric(Model):
    """A number that a document states. `value` stands in the quotation as it is written here."""

    name: str
    value: str
    unit: str | None = None
    citation: Citation


class DocumentPlan(Model):
    """One document as it was when its turn came: windows of block ids, in the order of pages.

    Attributes:
        left_out_blocks: blocks behind the last window that the limit on windows admits.
        source_url: where a recording can be seen, if it was taken from elsewhere.
    """

    doc_id: str
    filename: str
    windows: tuple[tuple[str, ...], ...]
    left_out_blocks: int = 0
    source_url: str | None = None


class WindowResult(Model):
    """What one window gave: proved findings and metrics only.

    Attributes:
        dropped: findings and metrics whose quotation stands in no block of the window.
    """

    findings: tuple[Finding, ...] = ()
    metrics: tuple[Metric, ...] = ()
    tags: tuple[str, ...] = ()
    dropped: int = 0


class Statement(Model):
    """A piece of the narrative, and the findings that it rests on, by their places (from 0)."""

    text: str
    findings: tuple[int, ...] = ()


class DocumentResult(Model):
    """What one document gave, whole or in part.

    Attributes:
        findings: what statements refer to; the first `key_count` are its key findings.
    """

    doc_id: str
    filename: str = ""
    status: DocumentOutcome
    warning: str | None = None
    findings: tuple[Finding, ...] = ()
    key_count: int = 0
    statements: tuple[Statement, ...] = ()
    metrics: tuple[Metric, ...] = ()
    tags: tuple[str, ...] = ()


class SummarisedDocument(Model):
    """How it went with one document. Not found and not allowed are the same: then only the id is told."""

    doc_id: str
    filename: str = ""
    status: DocumentOutcome
    warning: str | None = None


class SummaryResult(Model):
    """A finished summary.

    Attributes:
        summary: Markdown; each statement is followed by its sources, numbered as in `citations`.
        warnings: what is missing, and why: sentences for people.
    """

    summary: str = ""
    key_findings: tuple[Finding, ...] = ()
    metrics: tuple[Metric, ...] = ()
    tags: tuple[str, ...] = ()
    citations: tuple[Citation, ...] = ()
    documents: tuple[SummarisedDocument, ...] = ()
    warnings: tuple[str, ...] = ()


class SummaryEnd(Model):
    """How a summary ended; written once."""

    status: Literal["completed", "failed", "cancelled"]
    finished_at: datetime
    result: SummaryResult | None = None
    error: str | None = None
    error_type: str | None = None


class ChildView(Model):
    """How far one document is. `windows` is 0 until it was looked at."""

    doc_id: str
    filename: str = ""
    status: DocumentProgress
    windows: int = 0
    windows_done: int = 0


class SummaryView(Model):
    """A summary as its owner sees it; `result` once it is completed.

    Attributes:
        progress: 0-1, by windows read.
    """

    summary_id: str
    status: SummaryStatus
    focus: str = ""
    language: str | None = None
    created_at: datetime
    finished_at: datetime | None = None
    progress: float = 0.0
    children: tuple[ChildView, ...] = ()
    result: SummaryResult | None = None
    error: str | None = None
    error_type: str | None = None
    status_url: str
