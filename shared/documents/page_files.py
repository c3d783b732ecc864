"""What documents are read from by people: their pieces in order.

Files of the work container, by document and content hash: made for one version, and gone with it. Pictures of
pages (shared/ingestion/page_pictures.py) and tables that SQL can ask (shared/tables/table_files.py) lie
there, too.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from shared.documents.models import Element
from shared.documents.page_models import Outline, Part
from shared.documents.reading import OUTLINE_FILE, PARTS_FILE, decode
from shared.platform.blobs import BlobStore
from shared.platform.errors import NotFoundError
from shared.platform.names import WORK

FOLDER = "views/"


async def put_reading(blobs: BlobStore, doc_id: str, content_hash: str, folder: Path) -> None:
    """Store the outline and the parts that the parser left in a folder."""
    for name in (PARTS_FILE, OUTLINE_FILE):  # an outline is never stored without its parts
        content = await asyncio.to_thread((folder / name).read_bytes)
        await blobs.write(WORK, version_folder(doc_id, content_hash) + name, content)


async def get_outline(blobs: BlobStore, doc_id: str, content_hash: str) -> Outline:
    """Return the outline of a version. NotFoundError if the version is gone."""
    content = await blobs.read(WORK, version_folder(doc_id, content_hash) + OUTLINE_FILE)
    return await asyncio.to_thread(Outline.from_stored, content)


async def get_parts(
    blobs: BlobStore, doc_id: str, content_hash: str, parts: Sequence[Part]
) -> AsyncIterator[tuple[Element, ...]]:
    """Read neighbouring parts of a version, one at a time.

    Raises:
        NotFoundError, ConflictError: the version is gone.
    """
    name = version_folder(doc_id, content_hash) + PARTS_FILE
    stored = await blobs.properties(WORK, name)
    if stored is None:
        raise NotFoundError("The text of this version is gone.", "Read the document again.")
    for part in parts:
        pieces = blobs.chunks(WORK, name, etag=stored.etag, first=part.first_byte, length=part.size_bytes)
        content = b"".join([piece async for piece in pieces])
        yield await asyncio.to_thread(decode, content)


async def keep_only(blobs: BlobStore, doc_id: str, content_hash: str) -> None:
    """Remove what belongs to other versions of the document."""
    kept = version_folder(doc_id, content_hash)
    async for found in blobs.list_blobs(WORK, f"{FOLDER}{doc_id}/"):
        if not found.name.startswith(kept):
            await blobs.delete(WORK, found.name)


async def remove_all(blobs: BlobStore, doc_id: str) -> None:
    """Remove all of it, of whatever version."""
    await blobs.delete_prefix(WORK, f"{FOLDER}{doc_id}/")


def version_folder(doc_id: str, content_hash: str) -> str:
    """Where everything of one version lies in the work container."""
    return f"{FOLDER}{doc_id}/{content_hash}/"
