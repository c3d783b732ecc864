"""Files that were dropped into a chat: stored as documents of whoever dropped them, and told of when read."""

import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

from shared.access.models import UserContext
from shared.documents.requests import UploadRequest
from shared.documents.state import DocumentState
from shared.ingestion.registry import FORMATS, MAGIC_BYTES, check_content
from shared.ingestion.uploads import place_of, receive
from shared.platform.errors import CallerError, ConfigurationError, GroundworkError
from shared.teams import messages
from shared.teams.context import Visit
from shared.teams.dispatch import heed
from shared.teams.markdown import plain
from shared.teams.messages import file_reason
from shared.teams.models import BotAttachment, BotConversation, ReplyStep
from shared.teams.services import TeamsServices

_PIECE = 1024 * 1024
_PASTED = "image/*"  # what Teams calls every pasted picture
_PICTURES = (".png", ".jpg", ".tiff", ".webp")


async def take_dropped(
    attachment: BotAttachment, conversation: BotConversation, user: UserContext, services: TeamsServices
) -> tuple[DocumentState, str]:
    """Fetch it, and store it; its document's state and the blob's etag. Nobody but `user` may read it.

    The same name again is a new version of the same document. Nothing is fetched that could not be stored.

    Raises:
        CallerError: its name or its host is none that is taken, or the channel gives it no more.
        BadDocumentError: files of this kind are not read, or its content is of another kind than its name.
        PayloadTooLargeError: it is larger than MAX_DOCUMENT_BYTES.
        ConflictError: the place is taken by a document of somebody else.
        DependencyError: it cannot be had, or not stored.
    """
    if services.bot_files is None:
        raise ConfigurationError("There is no bot here.")
    request = UploadRequest(filename=attachment.name[-1000:])
    place_of(request, user)
    with tempfile.TemporaryDirectory(prefix="dropped-") as folder:
        path = Path(folder) / "file"
        await services.bot_files.fetch(attachment, conversation, path)
        with path.open("rb") as file:
            beginning = file.read(MAGIC_BYTES)
        if attachment.content_type == _PASTED:
            request = UploadRequest(filename=_as_picture(request.filename, beginning))
        check_content(request.filename, beginning)
        return await receive(request, _parts(path), user, services)


def _as_picture(name: str, beginning: bytes) -> str:
    """The name with the suffix of what the picture is; as it was, where that is not known."""
    found = (suffix for suffix in _PICTURES if beginning.startswith(FORMATS[suffix].magics))
    return str(PurePosixPath(name).with_suffix(next(found, PurePosixPath(name).suffix)))


async def _parts(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


MAX_FILES = 10  # of one message; Teams takes as many
STORING_S = 120.0  # of one step, then the next one goes on: a file may take 4 minutes, an activity 10
_FIRST_LOOK_S = 2.0
_SLOWEST_LOOK_S = 15.0
_MAX_LOOKS = 60  # some 12 minutes; a document of some hundred pages takes less


async def store_files(visit: Visit) -> ReplyStep:
    """Store what can be stored, and say of each of the others why not; `part` is the first that is left."""
    if not visit.is_of_person:
        await visit.tell(messages.FILES_NOT_HERE[visit.language])
        return await heed(visit)
    user, _ = await visit.world.find_user(visit.conversation, visit.message.sender)
    offered = visit.message.attachments[:MAX_FILES]
    taken: dict[str, str] = {}
    said: list[str] = []
    ends, done = time.monotonic() + STORING_S, visit.step.part
    while done < len(offered) and (done == visit.step.part or time.monotonic() < ends):
        await _store(offered[done], user, visit, taken, said)
        done += 1
    said += [messages.FILE_TAKEN[visit.language].format(name) for name in taken.values()]
    is_last = done == len(offered)
    if is_last and len(visit.message.attachments) > MAX_FILES:
        said.append(messages.TOO_MANY_FILES[visit.language].format(MAX_FILES))
    await visit.tell("\n\n".join(said))
    doc_ids = (*visit.step.doc_ids, *taken)
    if not is_last:
        return visit.step.model_copy(update={"doc_ids": doc_ids, "part": done, "attempt": 0})
    if not doc_ids:
        return await heed(visit)
    looking = {"kind": "look_at_files", "doc_ids": doc_ids, "attempt": 0, "part": 0, "delay_s": _FIRST_LOOK_S}
    return visit.step.model_copy(update=looking)


async def _store(
    attachment: BotAttachment, user: UserContext, visit: Visit, taken: dict[str, str], said: list[str]
) -> None:
    """Store one file: it stands in `taken` then, else in `said` why not."""
    name = plain(attachment.name)
    try:
        taken[await visit.world.store_file(attachment, visit.conversation, user)] = name
    except CallerError as refused:
        said.append(_failed(name, refused.detail, visit))
    except GroundworkError as failed:
        if failed.retryable and visit.step.attempt == 0:
            raise
        said.append(messages.FILE_FAILED[visit.language].format(name, messages.OUT_OF_REACH[visit.language]))


async def look_at_files(visit: Visit) -> ReplyStep:
    """Say of each file when it can be asked about, or never will; a question waits for all of them."""
    states = [await visit.world.services.documents.get(doc_id) for doc_id in visit.step.doc_ids]
    known = [state for state in states if state is not None]
    unread = [state.doc_id for state in known if not _is_settled(state)]
    if unread and visit.step.part < _MAX_LOOKS:
        delay_s = min(_FIRST_LOOK_S * 1.3 ** (visit.step.part + 1), _SLOWEST_LOOK_S)
        again: dict[str, object] = {"part": visit.step.part + 1, "delay_s": delay_s, "attempt": 0}
        settled = [state for state in known if _is_settled(state)]
        if settled and not visit.message.text.strip():
            await visit.tell("\n\n".join(_told(state, visit) for state in settled))
            again["doc_ids"] = tuple(unread)
        return visit.step.model_copy(update=again)
    if known:
        await visit.tell("\n\n".join(_told(state, visit) for state in known))
    ready = tuple(state.doc_id for state in known if state.status == "ready")
    return await heed(visit, ready) if ready else visit.end


def _is_settled(state: DocumentState) -> bool:
    return state.status in ("ready", "failed")


def _told(state: DocumentState, visit: Visit) -> str:
    name = plain(state.filename)
    if state.status == "ready":
        return messages.FILE_READY[visit.language].format(name)
    if state.status == "failed":
        return _failed(name, state.reason or "", visit)
    return messages.FILE_SLOW[visit.language].format(name)


def _failed(name: str, reason: str, visit: Visit) -> str:
    told = plain(file_reason(reason, visit.language))
    return messages.FILE_FAILED[visit.language].format(name, told)
