"""Documents as shown to users: the models of lists, counts and details."""

from datetime import date, datetime
from typing import Literal

from pydantic import Field

from shared.platform.errors import FileFailure
from shared.platform.models import Model
from shared.platform.search import FacetValue
from shared.retrieval.models import DocumentStatus

AccessVia = Literal["owner", "person", "group", "department", "organisation", "everyone"]


class DocumentView(Model):
    """Entry for a document in a list. Before its ingestion is complete, it shows progress or a failure
    instead of metadata.
    """

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="File name of the document.")
    status: DocumentStatus = Field(description="Status of the ingestion.")
    title: str | None = Field(default=None, description="Title of the document.")
    document_type: str | None = Field(default=None, description="Type of the document, such as `manual`.")
    department: str | None = Field(default=None, description="Department to which the document belongs.")
    author: str | None = Field(default=None, description="Author of the document, as extracted or corrected.")
    language: str | None = Field(default=None, description="Language of the document, as an ISO 639-1 code.")
    tags: tuple[str, ...] = Field(default=(), description="Topics of the document, in lower case.")
    project_id: str | None = Field(
        default=None, description="Id of the project to which the document belongs."
    )
    page_count: int | None = Field(
        default=None, description="Number of pages, or null if the format has none."
    )
    upload_date: datetime | None = Field(default=None, description="Time of the upload.")
    document_date: date | None = Field(
        default=None,
        description="Date printed in the document. If only a month or year is printed, its first day.",
    )
    summary_brief: str | None = Field(default=None, description="Summary in one sentence.")
    source_url: str | None = Field(
        default=None, description="URL of the web page or recording from which the document comes."
    )
    published_by: str | None = Field(default=None, description="Name of the uploader, if known.")
    version: int | None = Field(
        default=None, description="Version number, which increases with each version of the file."
    )
    status_reason: str | None = Field(default=None, description="Explanation of a failed ingestion.")
    hint: str | None = Field(default=None, description="Advice for the owner on how to resolve a failure.")
    failure: FileFailure | None = Field(
        default=None,
        description="Stable error code of a failed ingestion; null otherwise.",
    )
    unreadable_pages: int = Field(default=0, description="Number of pages without readable text.")
    has_text: bool = Field(default=True, description="Whether the document contains searchable text.")
    warnings: tuple[str, ...] = Field(
        default=(), description="Warnings for users, as sentences, for example about unreadable pages."
    )
    acl: tuple[str, ...] | None = Field(
        default=None,
        description=(
            "Users, groups, departments and organisations that may read the document. Null if the caller may "
            "not change the list."
        ),
    )
    access_via: tuple[AccessVia, ...] = Field(
        default=(),
        description=(
            "Why the caller may read the document. Names of groups and of other users are not included."
        ),
    )
    folder: str | None = Field(
        default=None,
        description=(
            "Folder chosen by the uploader, such as `2024/hr`. A file with the same folder and name "
            "replaces the document. Null if the document wasn't uploaded through the API, or if the caller "
            "is neither its owner nor an administrator."
        ),
    )


class DocumentList(Model):
    """A page of documents, as returned by GET /api/documents."""

    documents: tuple[DocumentView, ...] = Field(description="Documents of this page.")
    count: int = Field(description="Number of documents on this page.")
    cursor: str | None = Field(default=None, description="Cursor of the next page, or null on the last page.")


class DocumentFacets(Model):
    """Reply of GET /api/documents/facets: the most frequent values of each metadata field, with document
    counts. Only complete documents are counted.

    Attributes:
        document_count: number of documents that match the filters.
    """

    document_type: tuple[FacetValue, ...] = Field(description="Document types, most frequent first.")
    department: tuple[FacetValue, ...] = Field(description="Departments, most frequent first.")
    language: tuple[FacetValue, ...] = Field(description="Languages, most frequent first.")
    tags: tuple[FacetValue, ...] = Field(description="Tags, most frequent first.")
    project_id: tuple[FacetValue, ...] = Field(description="Projects, most frequent first.")
    document_count: int


class PhaseView(Model):
    """One phase of the last ingestion of a document.

    Attributes:
        seconds: duration so far; None for a final status.
        model_calls: number of model replies in this phase.
    """

    status: DocumentStatus = Field(description="Status of the ingestion during this phase.")
    at: datetime = Field(description="Time at which the phase began.")
    seconds: float | None
    model_calls: int


class DocumentDetail(DocumentView):
    """Reply of GET /api/documents/{doc_id}: the fields of a listed document and further details.

    Attributes:
        edited_fields: metadata corrected by a user.
        may_change: whether the caller may correct, share and delete the document.
        owner_id, acl: owner and access list; only for callers who may change it.
        content_hash: SHA-256 of the ready version as hex; "" before. Only for callers who may change it.
        access_via: why the caller may read the document, without names of groups and other users.
        history: phases of the last ingestion, in order.
        failed_tries: number of failed attempts at this version; it is given up after three.
    """

    summary_standard: str | None = Field(default=None, description="Summary in one paragraph.")
    edited_fields: tuple[str, ...] = ()
    may_change: bool = False
    is_processing: bool = Field(
        default=False,
        description=(
            "Whether an ingestion or a change of the document is due or in progress. Until it has ended, "
            "`status` may describe the previous ingestion. Not covered by the ETag."
        ),
    )
    owner_id: str | None = None
    content_hash: str | None = Field(default=None, description="SHA-256 digest of the file, in hexadecimal.")
    history: tuple[PhaseView, ...] = ()
    failed_tries: int = 0


class DocumentDeleting(Model):
    """Reply of DELETE /api/documents/{doc_id}. The document is hidden at once; its data is deleted in the
    background.
    """

    doc_id: str = Field(description="Id of the document.")
    status: Literal["deleting"] = Field(
        default="deleting", description="Status of the document, always `deleting`."
    )
