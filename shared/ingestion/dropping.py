"""A file that was dropped into a chat, as a document of whoever dropped it. Looked at before it is stored."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

from shared.errors import ConfigurationError
from shared.ingestion.registry import FORMATS, MAGIC_BYTES, check_content
from shared.ingestion.uploading import place_of, receive
from shared.models.bot import BotAttachment, BotConversation
from shared.models.identity import UserContext
from shared.models.ingestion import DocumentState
from shared.models.uploads import UploadRequest
from shared.services import Services

_PIECE = 1024 * 1024
_PASTED = "image/*"  # what Teams calls every pasted picture
_PICTURES = (".png", ".jpg", ".tiff", ".webp")


async def take_dropped(
    attachment: BotAttachment, conversation: BotConversation, user: UserContext, services: Services
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
