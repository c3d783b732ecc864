"""Models of requests that upload a document, correct its metadata or change its access list."""

from datetime import date, datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from shared.platform.models import Model
from shared.retrieval.metadata_text import MAX_NAME_CHARS, MAX_TAGS

MAX_PRINCIPALS = 500
Principal = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$"),
]
"""A user id, a group id, a department, `org:<id>`, or `*` for everyone."""

ProjectId = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$"),
]
AccessList = Annotated[tuple[Principal, ...], Field(max_length=MAX_PRINCIPALS)]
SourceUrl = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=2000, pattern=r"^https?://[!-~]+$")
]
"""A plain address of the web."""

MetadataText = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=MAX_NAME_CHARS, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$"
    ),
]
"""A value of a document's metadata: one line without control characters, as long as an extracted one."""


class UploadRequest(Model):
    """A request to upload a document: the form fields of POST /api/documents, or the body of POST
    /api/documents/uploads.

    Attributes:
        folder: path below the uploader's own folder; the same folder and name mean the same document.
        acl: additional readers; None keeps the current list, which is empty for a new document.
        project_id: None keeps the current project.
        source_url: URL of the origin, such as a transcript's recording; links to moments then lead there.
            None keeps the current one.
        size_bytes: the file's size, if known.
        replace: whether the file may become a new version of a document of the same name.
    """

    filename: str = Field(
        min_length=1,
        max_length=1000,
        description="File name of the document. Its suffix selects the parser.",
    )
    folder: str = Field(default="", max_length=1000)
    project_id: ProjectId | None = None
    acl: AccessList | None = None
    source_url: SourceUrl | None = None
    size_bytes: int | None = Field(default=None, ge=0)
    replace: bool = Field(
        default=True,
        description="Whether the file may replace a file of the same name in the caller's folder.",
    )


class FileRequest(Model):
    """Body of POST /api/threads/{thread_id}/files/uploads.

    Attributes:
        size_bytes: the file's size, if known.
    """

    filename: str = Field(
        min_length=1, max_length=1000, description="File name. Its suffix selects the parser."
    )
    size_bytes: int | None = Field(default=None, ge=0)


class ThreadFileForm(Model):
    """Form of POST /api/threads/{thread_id}/files."""

    file: bytes = Field(description="Content of the file. The suffix of its name selects the parser.")


class ImportRequest(Model):
    """Body of POST /api/documents/import, a request to import a web page.

    Attributes:
        acl, project_id: as in `UploadRequest`.
    """

    url: str = Field(
        min_length=1, max_length=2000, description="URL of the web page to import, with http or https."
    )
    project_id: ProjectId | None = None
    acl: AccessList | None = None


class UploadForm(Model):
    """Form fields of POST /api/documents. The file must be the last one."""

    folder: str = Field(
        default="",
        max_length=1000,
        description=("Folder for the document, relative to the caller's own folder."),
    )
    project_id: ProjectId | None = Field(
        default=None, description="Id of the project to which the document belongs."
    )
    acl: AccessList = Field(
        default=(),
        description=(
            "Users, groups, departments and organisations that may read the document. Repeat the field, or "
            "separate them by commas."
        ),
    )
    source_url: SourceUrl | None = Field(
        default=None,
        description="URL of the web page or recording from which the document comes.",
    )
    replace: bool = Field(
        default=True,
        description="Whether the file may replace a file of the same name in the caller's folder.",
    )
    file: bytes = Field(description="Content of the file. The suffix of its name selects the parser.")


class UploadTicket(Model):
    """Signed URL for uploading a large file. The client sends the file to `url` with these `headers`, in a
    single PUT request or in blocks.

    Attributes:
        location: URL of the document's status, available once the file has arrived.
    """

    doc_id: str = Field(description="Id that the document will have once the file is uploaded.")
    filename: str = Field(description="File name of the document.")
    url: str = Field(
        repr=False,
        description=("URL to which the client sends the file. Anyone who has the URL can write this file."),
    )
    method: str = Field(default="PUT", description="HTTP method of the upload.")
    headers: dict[str, str] = Field(description="HTTP headers that the client must send with the file.")
    expires_at: datetime = Field(description="Time until which the URL is valid.")
    location: str


class AccessChange(Model):
    """Body of PUT /api/documents/{doc_id}/access, which replaces the access list. The owner can always read
    the document.

    Attributes:
        project_id: None keeps the current project.
    """

    acl: AccessList = Field(
        description=(
            "Who may read the document: ids of users and groups, departments, `org:` followed by an "
            "organisation's id, or `*` for everyone."
        )
    )
    project_id: ProjectId | None = None


class MetadataCorrection(Model):
    """Body of PATCH /api/documents/{doc_id}. The given fields permanently override the extracted ones.

    Optional fields can be emptied with null.
    """

    title: MetadataText = Field(default="", description="Title of the document.")
    document_type: MetadataText = Field(default="", description="Type of the document, such as `manual`.")
    author: MetadataText | None = Field(default=None, description="Author of the document.")
    department: MetadataText | None = Field(
        default=None, description="Department to which the document belongs."
    )
    document_date: date | None = Field(
        default=None, description=("Date printed in the document, in ISO 8601 format.")
    )
    language: Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")] | None = Field(
        default=None, description="Language of the document, as an ISO 639-1 code."
    )
    tags: Annotated[tuple[MetadataText, ...], Field(max_length=MAX_TAGS)] = Field(
        default=(), description="Topics of the document, in lower case."
    )
