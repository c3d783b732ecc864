"""Documents as the API shows them."""

from datetime import datetime

from shared.models.base import Model
from shared.models.documents import DocumentStatus


class DocumentView(Model):
    """One document of a list: complete ones with their metadata, others with how far they are.

    Attributes:
        status_reason, hint: why it failed and what its owner can do; None while all is well.
        warnings: what is not as it could be with a document that is ready all the same.
    """

    doc_id: str
    filename: str
    status: DocumentStatus
    title: str | None = None
    document_type: str | None = None
    department: str | None = None
    author: str | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    page_count: int | None = None
    upload_date: datetime | None = None
    summary_brief: str | None = None
    version: int | None = None
    status_reason: str | None = None
    hint: str | None = None
    warnings: tuple[str, ...] = ()


class DocumentList(Model):
    """Answer of GET /api/documents."""

    documents: tuple[DocumentView, ...]
    count: int
