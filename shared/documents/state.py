"""Model of the stored state of a document, with its ingestion progress and permissions."""

# Annotations are not evaluated, so that the modules of their types need not be imported at start-up.
from __future__ import annotations

from datetime import datetime

from pydantic import Field

from shared.documents.ids import thread_of, version_folder
from shared.documents.models import Corrections
from shared.platform.errors import FileFailure
from shared.platform.models import Model
from shared.retrieval.models import DocumentStatus


class Rights(Model):
    """Permissions of a document, with its project and origin.

    Attributes:
        acl: sorted principals, including the owner; empty = no one may read it.
        source_url: origin of the document, such as the recording of a transcript.
        published_by: the owner's display name at the time of the upload, visible to every reader.
        warning: an error in the permissions that came with the file; only the owner may then read it.
    """

    acl: tuple[str, ...] = ()
    owner_id: str | None = None
    project_id: str | None = None
    source_url: str | None = None
    published_by: str | None = None
    warning: str | None = None


class PhaseTime(Model):
    """Time at which a document entered a status, and the number of model replies received during that
    status.
    """

    status: DocumentStatus
    at: datetime
    model_calls: int = 0


class DocumentState(Model):
    """Stored state of a document. It decides who may read the document and what the next ingestion has to do.

    Attributes:
        revision: etag of this row; replacing an older revision is a conflict.
        blob_etag, content_hash, pipeline, rights: of the indexed version; empty before the first success.
        wanted_etag, wanted_rights: of the version that the current ingestion will publish.
        pipeline: hash of everything besides the file that determines the blocks, such as the embedding model.
        copied_hash: hash of the document's fields that each block's row repeats.
        version_key: name of the indexed version's folder; "" before the first success.
        version: number of the indexed version.
        begun_key, begun_version: key and number of the newest version whose ingestion has started. The number
            is assigned here before anything of the version is written, and is never reused.
        wish: number of events and changes so far that required an ingestion.
        settled: value of `wish` that the last completed ingestion took into account.
        fence: token of the execution that works on the document; a step with another token can't write.
        noted_etag: the file's etag when its newest event was recorded.
        unreadable_pages, has_text: pages without readable text, and whether any text is searchable.
        phases: statuses of the last ingestion, in order.
        rows_outdated: whether the indexes still contain earlier permissions than this state.
        sidecar_etag: etag of the permissions file that was read last; empty if there was none.
        hints_etag: etag of the table hints that were read last; empty if there were none.
        upload_date: time at which the indexed bytes were first published.
        corrections: metadata corrected by users, which overrides extracted metadata.
        shown_corrections: corrections in the indexes; None = unknown, because changes overlapped.
        failed_tries: consecutive failed ingestions of the same bytes.
        begun_parses: parses of the same bytes without a result, including one that is running. A file that
            kills its host is recognised by this number.
        tried_hash, tried_reason, tried_failure: hash of the bytes read last, and why they failed.
        is_deleted: whether the file was deleted. No one can see the document, and its data is being removed.
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
    unreadable_pages: int = 0
    has_text: bool = True
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
    def thread_id(self) -> str:
        """Id of the only thread in which the document may be read, or "" if it isn't limited to a thread."""
        return thread_of(self.blob_name)

    @property
    def owners(self) -> frozenset[str]:
        """Ids of the current owner, and of the future one if the permissions are about to change."""
        return frozenset(filter(None, (self.rights.owner_id, self.wanted_rights.owner_id)))

    @property
    def is_open(self) -> bool:
        """Whether an ingestion of the document is due or in progress."""
        return self.wish != self.settled

    @property
    def has_unshown_corrections(self) -> bool:
        """Whether users have made corrections that the search index doesn't contain yet."""
        return self.content_hash != "" and self.shown_corrections != self.corrections

    @property
    def folder(self) -> str:
        """The blob folder of the indexed version, with a trailing slash."""
        return version_folder(self.doc_id, self.version_key)
