"""Files of one thread, with their blobs and document rows. Callers must check that the user owns the thread.

The blobs of a thread's files share a prefix, and their access lists contain only the owner.
"""

from datetime import datetime

from shared.documents.ids import (
    CONVERSATION_FILES,
    HINTS_SUFFIX,
    SIDECAR_SUFFIX,
    document_id,
    document_of_blob,
    files_of_thread,
    thread_of,
)
from shared.documents.services import DocumentServices
from shared.documents.state import DocumentState
from shared.ingestion.registry import format_of
from shared.ingestion.task import mark_deleted
from shared.ingestion.uploads import MAX_PATH_CHARS, clean_filename
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.concurrency import run_together
from shared.platform.errors import CallerError
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS

_AT_ONCE = 16


class StoredFile(Model):
    """File of a thread, which may still be uploading or waiting for ingestion.

    Attributes:
        since: earliest modification time of the file and its sidecars.
        blob: properties of the file; None until a direct upload to storage has arrived.
        state: state of the document; None until the upload event was handled.
    """

    name: str
    since: datetime
    blob: BlobProperties | None = None
    state: DocumentState | None = None

    @property
    def doc_id(self) -> str:
        """Id of the document that is created from this file."""
        return document_id(self.name)

    @property
    def filename(self) -> str:
        """File name that the owner gave the file."""
        return self.name.rpartition("/")[2]


def blob_name_in(thread_id: str, filename: str) -> str:
    """Return the blob name for a file of a thread. Files with the same name are versions of one document.

    Raises:
        CallerError: the name is invalid.
        BadDocumentError: the file type isn't supported.
    """
    cleaned = clean_filename(filename)
    format_of(cleaned)
    path = files_of_thread(thread_id) + cleaned
    if len(path) > MAX_PATH_CHARS:
        raise CallerError("The file name is too long.", "Shorten the file name.")
    return path


async def stored_files(thread_id: str, services: DocumentServices) -> list[StoredFile]:
    """Return the files of a thread, oldest first, including files that are still being uploaded."""
    blobs_by_name: dict[str, list[BlobProperties]] = {}
    async for blob in services.blobs.list_blobs(DOCUMENTS, files_of_thread(thread_id)):
        blobs_by_name.setdefault(document_of_blob(blob.name), []).append(blob)
    states = await run_together(
        *(services.documents.get(document_id(name)) for name in blobs_by_name), at_once=_AT_ONCE
    )
    files = [
        StoredFile(
            name=name,
            since=min(blob.modified_at for blob in blobs if blob.modified_at is not None),
            blob=next((blob for blob in blobs if blob.name == name), None),
            state=state if state is not None and not state.is_deleted else None,
        )
        for (name, blobs), state in zip(blobs_by_name.items(), states, strict=True)
    ]
    return sorted(files, key=lambda file: (file.since, file.name))


async def hide_file(name: str, services: DocumentServices) -> None:
    """Mark a file's document as deleted, which hides it from readers."""
    await mark_deleted(document_id(name), services.documents)


async def remove_file(name: str, services: DocumentServices) -> None:
    """Hide a file immediately and delete its blobs. A later ingestion removes all derived data.

    Idempotent.
    """
    await hide_file(name, services)
    # Also delete the access list. If the upload still arrives later, its file is then deleted without being
    # read.
    for suffix in (SIDECAR_SUFFIX, HINTS_SUFFIX, ""):
        await services.blobs.delete(DOCUMENTS, name + suffix)
    await services.documents_index.delete([document_id(name)])


async def remove_files(thread_id: str, services: DocumentServices) -> int:
    """Remove all files of a thread as `remove_file` does, and return their number."""
    names = dict.fromkeys(
        [
            document_of_blob(blob.name)
            async for blob in services.blobs.list_blobs(DOCUMENTS, files_of_thread(thread_id))
        ]
    )
    await run_together(*(remove_file(name, services) for name in names), at_once=_AT_ONCE)
    return len(names)


async def newest_blobs(blobs: BlobStore) -> dict[str, BlobProperties]:
    """Return the most recently modified blob of each thread that has files, keyed by thread id."""
    newest: dict[str, BlobProperties] = {}
    async for blob in blobs.list_blobs(DOCUMENTS, f"{CONVERSATION_FILES}/"):
        before = newest.get(thread_of(blob.name))
        if before is None or _time_of(blob) > _time_of(before):
            newest[thread_of(blob.name)] = blob
    return newest


def _time_of(blob: BlobProperties) -> datetime:
    assert blob.modified_at is not None  # noqa: S101  # listings always include it
    return blob.modified_at
