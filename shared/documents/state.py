"""A document's state: ingestion progress and permissions."""

# Annotations stay text, so that their types need not be imported at start.
from __future__ import annotations

from datetime import datetime

from pydantic import Field

from shared.documents.ids import version_folder
from shared.documents.models import Corrections
from shared.platform.errors import FileFailure
from shared.platform.models import Model
from shared.retrieval.models import DocumentStatus


class Rights(Model):
    """Who may read a document, and where it belongs.

    Attributes:
        acl: principals, sorted, the owner among them; empty = nobody.
        source_url: where it was taken from, such as the recording that a transcript is of.
        published_by: what the identity provider called its owner when they sent it; every reader sees it.
        warning: what was wrong with the rights that came with the file; it is open to its owner only.
    """

    acl: tuple[str, ...] = ()
    owner_id: str | None = None
    project_id: str | None = None
    source_url: str | None = None
    published_by: str | None = None
    warning: str | None = None


class PhaseTime(Model):
    """When a document entered a status, and the number of model replies it needed there."""

    status: DocumentStatus
    at: datetime
    model_calls: int = 0


class DocumentState(Model):
    """What is known of a document's ingestion; readable at any moment, also before it can be searched.

    Attributes:
        revision: the store's version of this row; a replace of an older one is a conflict.
        blob_etag, content_hash, pipeline, rights: what the indexes hold now; empty until the first success.
        wanted_etag, wanted_rights: what they are to hold when this ingestion is done.
        pipeline: hash of what else decides the blocks: embedding model, block size, version of the rules.
        copied_hash: hash of the fields that each block's row copies from its document.
        version_key: names the folder of the version in the indexes; "" before the first success.
        version: the number of that version.
        begun_key, begun_version: of the newest version whose ingestion has begun. A number is taken here
            before anything of the version is written, and never used for another one.
        wish: number of the newest event or change that an ingestion must look at.
        settled: the newest one that an ended ingestion had looked at.
        fence: token of the execution that works on the document; steps of others change nothing.
        noted_etag: of the file when the newest event about it was noted.
        phases: statuses of the last ingestion in order.
        rows_outdated: the indexes' copies of its rights lag behind this row.
        sidecar_etag: of the file with rights that was read last; empty when there was none.
        hints_etag: of the file with hints about its tables, likewise.
        upload_date: when the bytes of the version that is shown were first published; None before.
        corrections: metadata as people corrected them; they win over whatever is extracted.
        shown_corrections: those that the indexes hold; None = unknown, because changes overlapped.
        failed_tries: ingestions of the same bytes that failed, one after the other.
        begun_parses: of the same bytes, since one came back; a file that kills its host never does.
        tried_hash, tried_reason, tried_failure: of the bytes that were read last, and why they failed before.
        is_deleted: its file was deleted: nobody sees it, and whatever was made of it is being removed.
    """

    doc_id: str
    blob_name: str
    filename: str
    revision: str | None = None
    status: DocumentStatus = "queued"
    reason: str | None = None
    hint: str | None = None
    failure: FileFailure | None = None
    warnings: tuple[str, ...] = ()
    rights: Rights = Rights()
    wanted_rights: Rights = Rights()
    blob_etag: str = ""
    wanted_etag: str = ""
    content_hash: str = ""
    pipeline: str = ""
    copied_hash: str = ""
    version_key: str = ""
    version: int = 0
    begun_key: str = ""
    begun_version: int = 0
    upload_date: datetime | None = None
    page_count: int | None = None
    block_count: int = 0
    wish: int = 0
    settled: int = 0
    fence: str = ""
    noted_etag: str = ""
    phases: tuple[PhaseTime, ...] = ()
    rows_outdated: bool = False
    sidecar_etag: str = ""
    hints_etag: str = ""
    corrections: Corrections = Field(default_factory=dict)
    shown_corrections: Corrections | None = Field(default_factory=dict)
    failed_tries: int = 0
    begun_parses: int = 0
    tried_hash: str = ""
    tried_reason: str | None = None
    tried_failure: FileFailure | None = None
    is_deleted: bool = False
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """Whether an ingestion is due or at work."""
        return self.wish != self.settled

    @property
    def has_unshown_corrections(self) -> bool:
        """Whether the indexes hold a version without some of the corrections."""
        return self.content_hash != "" and self.shown_corrections != self.corrections

    @property
    def folder(self) -> str:
        """The folder of the indexed version."""
        return version_folder(self.doc_id, self.version_key)
