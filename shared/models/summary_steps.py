"""What crosses the durable boundaries of `summarize_documents`: ids, counts and instants, never content."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.summaries import DocumentOutcome


class SummaryStart(Model):
    """Input of the parent.

    Attributes:
        at_once: children at work at the same time.
        map_until: no further attempt at windows that failed is begun after it.
        children_until: those still at work then are ended.
    """

    summary_id: str
    document_count: int
    at_once: int
    map_until: datetime
    children_until: datetime


class DocumentStart(Model):
    """Input of a child: the document at place `index` (from 0) of the request."""

    summary_id: str
    index: int
    map_until: datetime


class SummaryStep(Model):
    """Input of every activity. `first` and `end` are a range of windows; others leave them 0."""

    summary_id: str
    index: int = 0
    first: int = 0
    end: int = 0


class DocumentOpened(Model):
    """The document is split into windows."""

    kind: Literal["opened"] = "opened"
    window_count: int


class WindowsRead(Model):
    """A range of windows was worked through.

    Attributes:
        again: windows that failed in a way that may pass.
    """

    kind: Literal["read"] = "read"
    done: int
    failed: int = 0
    again: int = 0


class DocumentEnded(Model):
    """The document's result is stored."""

    kind: Literal["ended"] = "ended"
    status: DocumentOutcome


class SummaryClosed(Model):
    """The summary has its end: by this step, or before it. Nothing is left to do."""

    kind: Literal["closed"] = "closed"
    status: Literal["completed", "failed", "cancelled"]


class SummaryStepFailed(Model):
    """A step did not succeed. `retryable`: it may later."""

    kind: Literal["step_failed"] = "step_failed"
    error_type: str
    retryable: bool = False


SummaryReply = Annotated[
    DocumentOpened | WindowsRead | DocumentEnded | SummaryClosed | SummaryStepFailed,
    Field(discriminator="kind"),
]


class SummaryReplyEnvelope(Model):
    """Output of every activity."""

    reply: SummaryReply
