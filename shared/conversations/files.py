"""Files of a single conversation: the owner of the thread adds, lists and removes them, and unused ones
expire.

Answers of the thread may quote a file, and so may its summary and later answers. So nothing of the thread is
remembered or copied into a branch while it has files, and removing a file clears the turns asked since.
"""

from datetime import datetime, timedelta

from pydantic import Field

from shared.access.models import UserContext
from shared.conversations.models import Thread
from shared.conversations.services import ConversationServices
from shared.conversations.thread_store import ThreadStore
from shared.conversations.threads import change_thread, clear_turns, owned_thread
from shared.documents.ids import document_id, document_of_blob
from shared.ingestion.thread_files import (
    StoredFile,
    hide_file,
    newest_blobs,
    remove_file,
    remove_files,
    stored_files,
)
from shared.platform.errors import ConflictError, DocumentNotFoundError, FileFailure, NotFoundError
from shared.platform.models import Model
from shared.retrieval.models import DocumentStatus

# Maximum number of files added between two questions. A prompt has no room for more.
MAX_FILES_AT_ONCE = 5
# Maximum number of files in a thread. Each question reads the rows of all of them (unmeasured).
MAX_FILES = 20
_TURNS_READ = 30
# Tolerance for the difference between the clocks of the storage account and the app.
_CLOCK_SKEW = timedelta(minutes=1)


class ThreadFile(Model):
    """A file of a thread, as shown to the thread's owner."""

    doc_id: str = Field(description="Id of the file's document.")
    filename: str = Field(description="File name.")
    status: DocumentStatus = Field(
        description="Ingestion status. Answers can use the file once it is `ready`."
    )
    added_at: datetime = Field(description="Time at which the file was added.")
    size_bytes: int | None = Field(description="Size in bytes; null until the file has arrived.")
    page_count: int | None = Field(default=None, description="Number of pages; null if the format has none.")
    status_reason: str | None = Field(
        default=None, description="Explanation of the failure; null if there is none."
    )
    hint: str | None = Field(default=None, description="How to resolve the failure; null if unknown.")
    failure: FileFailure | None = Field(
        default=None, description="Stable code of the failure; null if there is none."
    )
    warnings: tuple[str, ...] = Field(
        default=(), description="Sentences about the parts of the file that could not be read."
    )


class ThreadFileList(Model):
    """Response of GET /api/threads/{thread_id}/files, oldest first."""

    files: tuple[ThreadFile, ...] = Field(description="The files.")
    count: int = Field(description="Number of files.")


class RemovedFile(Model):
    """Response of DELETE /api/threads/{thread_id}/files/{doc_id}."""

    doc_id: str = Field(description="Id of the file's document.")
    cleared: bool = Field(
        description="Whether the questions asked since the file was added were deleted with it."
    )


async def list_files(thread_id: str, user: UserContext, services: ConversationServices) -> ThreadFileList:
    """Return all files of the user's thread, oldest first.

    Raises:
        NotFoundError: as `owned_thread`.
    """
    await owned_thread(thread_id, user, services.threads)
    files = tuple(map(view_of_file, await stored_files(thread_id, services)))
    return ThreadFileList(files=files, count=len(files))


def view_of_file(file: StoredFile) -> ThreadFile:
    """Return a file as shown to the owner of its thread."""
    state = file.state
    fields = {"status", "page_count", "hint", "failure", "warnings"}
    progress = state.model_dump(include=fields) if state else {}
    return ThreadFile(
        **{"status": "queued", **progress},
        doc_id=file.doc_id,
        filename=file.filename,
        added_at=file.since,
        size_bytes=file.blob.size_bytes if file.blob else None,
        status_reason=state.reason if state else None,
    )


async def announce_file(thread_id: str, name: str, user: UserContext, services: ConversationServices) -> None:
    """Record in a thread that it has files, before its first file is written.

    Raises:
        NotFoundError: as `owned_thread`.
        ConflictError: the thread would have too many files.
    """
    thread = await owned_thread(thread_id, user, services.threads)
    others = [file for file in await stored_files(thread_id, services) if file.name != name]
    if len(others) >= MAX_FILES:
        raise ConflictError(
            f"A conversation has at most {MAX_FILES} files.", "Remove a file, or begin another conversation."
        )
    if sum(file.since > thread.updated_at for file in others) >= MAX_FILES_AT_ONCE:
        raise ConflictError(
            f"A question has at most {MAX_FILES_AT_ONCE} new files.",
            "Ask about the files already added, then add more.",
        )
    await _note_files(thread, user, services.threads)


async def attach_file(thread_id: str, name: str, user: UserContext, services: ConversationServices) -> None:
    """Record the new file in its thread. If the thread was deleted while the file was being written, remove
    the file and raise an error.

    Raises:
        NotFoundError: the thread was deleted.
    """
    try:
        # Clearing the thread in the meantime also cleared the record that it has files, so write it again.
        await _note_files(await owned_thread(thread_id, user, services.threads), user, services.threads)
    except NotFoundError:
        await remove_file(name, services)
        raise


async def _note_files(thread: Thread, user: UserContext, threads: ThreadStore) -> None:
    if not thread.has_files:
        with_files = {"has_files": True}
        await change_thread(
            thread.thread_id, user, threads, lambda current: current.model_copy(update=with_files)
        )


async def remove_from_thread(
    thread_id: str, doc_id: str, user: UserContext, services: ConversationServices
) -> RemovedFile:
    """Remove a file from a thread. All turns are cleared if some were asked since the file was added, because
    they may quote it. Idempotent.

    Raises:
        NotFoundError: as `owned_thread`.
        DocumentNotFoundError: the thread has no such file.
    """
    thread = await owned_thread(thread_id, user, services.threads)
    files = await stored_files(thread_id, services)
    file = next((one for one in files if one.doc_id == doc_id), None)
    if file is None:
        raise DocumentNotFoundError(
            f"The thread has no file {doc_id[:64]!r}.", "List the files of the thread."
        )
    await hide_file(file.name, services)
    # Read the turns after hiding the file: questions asked from then on can't use it.
    turns = await services.threads.turns(user.user_id, thread_id, _TURNS_READ)
    since = file.since - _CLOCK_SKEW
    was_used = any(turn.with_files and turn.asked_at >= since and turn.is_shown_in(thread) for turn in turns)
    if was_used:
        await clear_turns(thread_id, user, services, has_files=len(files) > 1)
    await remove_file(file.name, services)
    return RemovedFile(doc_id=doc_id, cleared=was_used)


async def expire_files(now: datetime, services: ConversationServices) -> int:
    """Remove the files of threads that no longer exist or were not used for CONVERSATION_FILE_DAYS.

    Returns:
        The number of removed files.
    """
    limit = now - timedelta(days=services.settings.conversations.conversation_file_days)
    count = 0
    for thread_id, newest in (await newest_blobs(services.blobs)).items():
        if newest.modified_at is None or newest.modified_at >= limit:
            continue
        state = await services.documents.get(document_id(document_of_blob(newest.name)))
        owner = state.wanted_rights.owner_id if state else None
        thread = await services.threads.get(owner, thread_id) if owner else None
        if thread is not None and not thread.is_deleted and thread.updated_at >= limit:
            continue
        count += await remove_files(thread_id, services)
    return count
