"""Stores files that users attach in personal chats, and announces when they are ready to be searched.

Files belong to the thread of the chat, so a thread started with `/new` has none. `/keep` copies a file to the
user's documents.
"""

import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.conversations.files import MAX_FILES_AT_ONCE, announce_file, attach_file
from shared.conversations.threads import new_thread
from shared.documents.requests import UploadRequest
from shared.documents.state import DocumentState
from shared.evidence.untrusted_text import markdown_name, markdown_text
from shared.ingestion.registry import FORMATS, MAGIC_BYTES, check_content
from shared.ingestion.thread_files import blob_name_in, stored_files
from shared.ingestion.uploads import receive, store
from shared.platform.errors import (
    BadDocumentError,
    CallerError,
    ConfigurationError,
    ConflictError,
    DocumentExistsError,
    GroundworkError,
    NotFoundError,
    PayloadTooLargeError,
)
from shared.platform.hashing import digest
from shared.platform.names import DOCUMENTS
from shared.teams import messages
from shared.teams.context import IncomingMessage, TeamsServices
from shared.teams.dispatch import answer_words
from shared.teams.files import FileRefusedError
from shared.teams.models import BotAttachment, BotConversation, Language, ReplyStep
from shared.teams.parsing import file_to_keep

# Time for storing files per step. With one more file of up to 4 minutes, an activity stays below 10.
STORING_S = 120.0
_FIRST_LOOK_S = 2.0
_SLOWEST_LOOK_S = 15.0
# Number of status checks, over about 12 minutes. A document of a hundred pages takes less.
_MAX_LOOKS = 60
_CHUNK_BYTES = 1024 * 1024
_PASTED = "image/*"  # Teams reports this type for every pasted picture.
_PICTURES = (".png", ".jpg", ".tiff", ".webp")


async def store_files(incoming: IncomingMessage) -> ReplyStep:
    """Store the attached files and report to the user which were rejected. `step.part` is the index of the
    next file.
    """
    language = incoming.language
    if not incoming.is_from_person:
        await incoming.say(messages.FILES_NOT_HERE[language])
        return await answer_words(incoming)
    user, _ = await incoming.user()
    thread_id = await _thread_of(incoming, user)
    offered = incoming.message.attachments[:MAX_FILES_AT_ONCE]
    stored: dict[str, str] = {}
    refused: list[str] = []
    ends, done = time.monotonic() + STORING_S, incoming.step.part
    while done < len(offered) and (done == incoming.step.part or time.monotonic() < ends):
        refusal = await _store(offered[done], user, thread_id, incoming, stored)
        refused += [refusal] if refusal else []
        done += 1
    texts = [*refused, *(messages.FILE_TAKEN[language].format(name) for name in stored.values())]
    is_last = done == len(offered)
    if is_last and len(incoming.message.attachments) > MAX_FILES_AT_ONCE:
        texts.append(messages.TOO_MANY_FILES[language].format(MAX_FILES_AT_ONCE))
    await incoming.say("\n\n".join(texts))
    doc_ids = (*incoming.step.doc_ids, *stored)
    if not is_last:
        return incoming.step.model_copy(update={"doc_ids": doc_ids, "part": done, "attempt": 0})
    if not doc_ids:
        return await answer_words(incoming)
    looking = {"kind": "look_at_files", "doc_ids": doc_ids, "attempt": 0, "part": 0, "delay_s": _FIRST_LOOK_S}
    return incoming.step.model_copy(update=looking)


async def _thread_of(incoming: IncomingMessage, user: UserContext) -> str:
    """Return the id of the conversation's thread. A new thread is created if there is none or it was deleted.

    A repeated step creates the same thread.
    """
    threads = incoming.deps.services.threads
    unique = digest("thread of files", incoming.step.reply_key)
    own = owned_id(user.user_id, incoming.deps.services.settings.identity.owner_id_key, unique)
    turn = await incoming.remember(lambda now: {"thread_id": now.thread_id or own})
    thread_id = turn.thread_id or own
    try:
        await new_thread(None, user, threads, thread_id)
    except NotFoundError:
        await incoming.remember(lambda _: {"thread_id": own})
        await new_thread(None, user, threads, own)
        return own
    return thread_id


async def _store(
    attachment: BotAttachment,
    user: UserContext,
    thread_id: str,
    incoming: IncomingMessage,
    stored: dict[str, str],
) -> str:
    """Store one file and add its document id to `stored`. Return "" on success, otherwise the rejection for
    the user.
    """
    name = markdown_name(attachment.name)
    try:
        stored[await incoming.deps.store_file(attachment, incoming.conversation, user, thread_id)] = name
    except CallerError as error:
        return _failure_text(name, _refusal(error, incoming.language), incoming)
    except GroundworkError as error:
        if error.retryable and incoming.step.attempt == 0:
            raise
        unreachable = messages.OUT_OF_REACH[incoming.language]
        return messages.FILE_FAILED[incoming.language].format(name, unreachable)
    return ""


async def look_at_files(incoming: IncomingMessage) -> ReplyStep:
    """Announce each file that is ready or has failed, and return the next step. A question sent with the
    files waits until all have been processed.
    """
    step = incoming.step
    states = [await incoming.deps.services.documents.get(doc_id) for doc_id in step.doc_ids]
    present = [state for state in states if state is not None]
    finished = [state for state in present if state.status in ("ready", "failed")]
    unread = tuple(state.doc_id for state in present if state not in finished)
    if unread and step.part < _MAX_LOOKS:
        delay_s = min(_FIRST_LOOK_S * 1.3 ** (step.part + 1), _SLOWEST_LOOK_S)
        again: dict[str, object] = {"part": step.part + 1, "delay_s": delay_s, "attempt": 0}
        if finished and not incoming.message.text.strip():
            await incoming.say("\n\n".join(_ready_text(state, incoming) for state in finished))
            again["doc_ids"] = unread
        return step.model_copy(update=again)
    if present:
        await incoming.say("\n\n".join(_ready_text(state, incoming) for state in present))
    ready = tuple(state.doc_id for state in present if state.status == "ready")
    return await answer_words(incoming, ready) if ready else step.end


def _ready_text(state: DocumentState, incoming: IncomingMessage) -> str:
    name = markdown_name(state.filename)
    if state.status == "failed":
        reason = messages.file_reason(state.failure, state.reason or "", incoming.language)
        return _failure_text(name, reason, incoming)
    texts = messages.FILE_READY if state.status == "ready" else messages.FILE_SLOW
    return texts[incoming.language].format(name)


def _failure_text(name: str, reason: str, incoming: IncomingMessage) -> str:
    return messages.FILE_FAILED[incoming.language].format(name, markdown_text(reason))


def _refusal(error: CallerError, language: Language) -> str:
    """Return the message that tells the user why a file was not stored, in the user's language."""
    if isinstance(error, FileRefusedError):
        return error.texts[language]
    if isinstance(error, BadDocumentError | PayloadTooLargeError):
        return messages.file_reason(error.failure, error.detail, language)
    if isinstance(error, ConflictError):
        return messages.THREAD_FULL[language]
    if error.code == CallerError.code:
        return messages.NAME_REFUSED[language]
    return messages.error_text(error.code, "", language)


async def store_attachment(
    attachment: BotAttachment,
    conversation: BotConversation,
    user: UserContext,
    thread_id: str,
    services: TeamsServices,
) -> DocumentState:
    """Download an attached file and store it in the user's thread. Return the state of its document.

    A repeated name makes a new version of the same document. Files that can't be stored are not downloaded.

    Raises:
        CallerError: the name or host isn't accepted, or the channel no longer has the file.
        BadDocumentError: the type isn't supported or doesn't match the content.
        PayloadTooLargeError: the file exceeds MAX_DOCUMENT_BYTES.
        ConflictError: the thread has too many files.
        DependencyError: the file can't be downloaded or stored.
    """
    if services.bot_files is None:
        raise ConfigurationError("No bot is configured.")
    filename = attachment.name[-1000:]
    blob_name_in(thread_id, filename)
    with tempfile.TemporaryDirectory(prefix="dropped-") as folder:
        path = Path(folder) / "file"
        await services.bot_files.fetch(attachment, conversation, path)
        with path.open("rb") as file:
            beginning = file.read(MAGIC_BYTES)
        if attachment.content_type == _PASTED:
            name = PurePosixPath(filename)
            fitting = (suffix for suffix in _PICTURES if beginning.startswith(FORMATS[suffix].magics))
            filename = str(name.with_suffix(next(fitting, name.suffix)))
        check_content(filename, beginning)
        blob_name = blob_name_in(thread_id, filename)
        await announce_file(thread_id, blob_name, user, services)
        request = UploadRequest(filename=filename, acl=())
        state = await store(blob_name, request, _chunks(path), user, services)
        await attach_file(thread_id, blob_name, user, services)
        return state


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


async def keep_file(incoming: IncomingMessage) -> ReplyStep:
    """Copy a file from the chat to the user's own documents, which only the user can read.

    The message names the file, unless the thread has only one.
    """
    turn, services = await incoming.turn(), incoming.deps.services
    thread_id = turn.thread_id if turn and incoming.is_from_person else None
    stored = await stored_files(thread_id, services) if thread_id else []
    files = {file.filename: file.blob for file in stored if file.blob is not None}
    filename = file_to_keep(incoming.message.text).casefold()
    chosen = [name for name in files if filename in ("", name.casefold())]
    if not files:
        return await incoming.finish(messages.NOTHING_TO_KEEP)
    if len(chosen) != 1:
        return await incoming.finish(messages.KEEP_WHICH, ", ".join(map(markdown_name, files)))
    user, _ = await incoming.user()
    request = UploadRequest(filename=chosen[0], replace=False)
    blob, name = files[chosen[0]], markdown_name(chosen[0])
    try:
        content = services.blobs.chunks(DOCUMENTS, blob.name, etag=blob.etag)
        await receive(request, content, user, services)
    except DocumentExistsError:
        return await incoming.finish(messages.KEPT_BEFORE, name)
    return await incoming.finish(messages.KEPT, name)
