"""Requests to upload a document, correct its metadata or change its access list."""

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
    """The form fields of POST /api/documents, and the body of POST /api/documents/uploads.

    Attributes:
        folder: path below the uploader's own folder; the same folder and name mean the same document.
        acl: additional readers; None keeps the current list, which is empty for a new document.
        project_id: None keeps the current project.
        source_url: URL of the origin, such as a transcript's recording; links to moments then lead there.
            None keeps the current one.
        size_bytes: the file's size, if known.
        replace: whether the file may become a new version of a document of the same name.
    """

    filename: str = Field(min_length=1, max_length=1000, description="File name.")
    folder: str = Field(default="", max_length=1000)
    project_id: ProjectId | None = None
    acl: AccessList | None = None
    source_url: SourceUrl | None = None
    size_bytes: int | None = Field(default=None, ge=0)
    replace: bool = Field(
        default=True, description="False refuses a file whose name the caller already uses in this folder."
    )


class FileRequest(Model):
    """Body of POST /api/threads/{thread_id}/files/uploads.

    Attributes:
        size_bytes: the file's size, if known.
    """

    filename: str = Field(min_length=1, max_length=1000, description="File name.")
    size_bytes: int | None = Field(default=None, ge=0)


class ThreadFileForm(Model):
    """The form of POST /api/threads/{thread_id}/files."""

    file: bytes = Field(description="The file. Its suffix selects the parser.")


class ImportRequest(Model):
    """Body of POST /api/documents/import.

    Attributes:
        acl, project_id: as in `UploadRequest`.
    """

    url: str = Field(min_length=1, max_length=2000, description="URL of a web page: http or https.")
    project_id: ProjectId | None = None
    acl: AccessList | None = None


class UploadForm(Model):
    """The parts of the form of POST /api/documents, the file last."""

    folder: str = Field(default="", max_length=1000, description="Path below the caller's own folder.")
    project_id: ProjectId | None = Field(default=None, description="Project of the document.")
    acl: AccessList = Field(
        default=(), description="Principals who may read the document; repeated, or separated by commas."
    )
    source_url: SourceUrl | None = Field(
        default=None, description="URL of the origin, such as the recording of a transcript."
    )
    replace: bool = Field(
        default=True, description="False refuses a file whose name the caller already uses in this folder."
    )
    file: bytes = Field(description="The file. Its suffix selects the parser.")


class UploadTicket(Model):
    """A signed URL for a large file: one PUT of its content (or staged blocks) to `url`, with `headers`.

    Attributes:
        location: URL of the document's status, available once the file has arrived.
    """

    doc_id: str = Field(description="Id of the document.")
    filename: str = Field(description="File name.")
    url: str = Field(
        repr=False, description="URL to which the file is sent. Anyone who has it can write this file."
    )
    method: str = Field(default="PUT", description="HTTP method of the upload.")
    headers: dict[str, str] = Field(description="HTTP headers of the upload.")
    expires_at: datetime = Field(description="Time until which the URL is valid.")
    location: str


class AccessChange(Model):
    """Body of PUT /api/documents/{doc_id}/access: the complete list. The owner can always read the document.

    Attributes:
        project_id: None keeps the current project.
    """

    acl: AccessList = Field(
        description="Who may read it: ids of people and groups, departments, `org:` and an organisation, "
        "or `*`."
    )
    project_id: ProjectId | None = None


class MetadataCorrection(Model):
    """Body of PATCH /api/documents/{doc_id}: given fields permanently replace the extracted ones.

    null empties a field that may be empty.
    """

    title: MetadataText = Field(default="", description="Title.")
    document_type: MetadataText = Field(default="", description="Type of the document, such as `manual`.")
    author: MetadataText | None = Field(default=None, description="Author as extracted or corrected.")
    department: MetadataText | None = Field(default=None, description="Department of the document.")
    document_date: date | None = Field(default=None, description="Date printed in the document.")
    language: Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")] | None = Field(
        default=None, description="ISO 639-1 code of the document's language."
    )
    tags: Annotated[tuple[MetadataText, ...], Field(max_length=MAX_TAGS)] = Field(
        default=(), description="Topics, in lower case."
    )
