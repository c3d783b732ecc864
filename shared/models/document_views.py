"""Documents as the API shows them."""

from datetime import datetime
from typing import Literal

from shared.models.base import Model
from shared.models.documents import DocumentStatus


class DocumentView(Model):
    """One document of a list: complete ones with their metadata, others with how far they are.

    Attributes:
        source_url: where it was taken from, if somebody said so.
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
    source_url: str | None = None
    version: int | None = None
    status_reason: str | None = None
    hint: str | None = None
    warnings: tuple[str, ...] = ()


class DocumentList(Model):
    """Answer of GET /api/documents. `cursor` gives the next page; null on the last one."""

    documents: tuple[DocumentView, ...]
    count: int
    cursor: str | None = None


class PhaseView(Model):
    """One phase of a document's last ingestion.

    Attributes:
        seconds: how long it took; of the phase that goes on, how long so far; None of an end.
        model_calls: answers of models that it cost.
    """

    status: DocumentStatus
    at: datetime
    seconds: float | None
    model_calls: int


class DocumentDetail(DocumentView):
    """Answer of GET /api/documents/{doc_id}.

    Attributes:
        edited_fields: metadata that a person corrected.
        may_change: whether the caller may correct, open, close and delete it.
        owner_id, acl: who owns it and who may read it; told only to those who may change it.
        folder: where its sender put it, so that the same folder and name replace it; None when it came
            otherwise than through the API. content_hash: sha256 hex of the version that is ready; "" before.
            Both are told only to those who may change it.
        history: phases of the last ingestion, in order.
        failed_tries: how often this version failed; after three it is left alone.
    """

    summary_standard: str | None = None
    edited_fields: tuple[str, ...] = ()
    may_change: bool = False
    owner_id: str | None = None
    acl: tuple[str, ...] | None = None
    folder: str | None = None
    content_hash: str | None = None
    history: tuple[PhaseView, ...] = ()
    failed_tries: int = 0


class DocumentDeleting(Model):
    """Answer of DELETE /api/documents/{doc_id}: it is out of the list; the rest goes within moments."""

    doc_id: str
    status: Literal["deleting"] = "deleting"
