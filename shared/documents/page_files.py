"""Storage of reading views: the elements of a document version in reading order, as files in the version's
folder.

They are files in a version's folder (`versions`), like page pictures (shared/ingestion/page_pictures.py) and
tables for SQL (shared/tables/table_files.py).
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


async def put_reading(blobs: BlobStore, folder: str, source: Path) -> None:
    """Store the outline and the parts that a parser wrote to the local folder `source`."""
    # Write the parts first, so that every stored outline has its parts.
    for name in (PARTS_FILE, OUTLINE_FILE):
        content = await asyncio.to_thread((source / name).read_bytes)
        await blobs.write(WORK, folder + name, content)


async def get_outline(blobs: BlobStore, folder: str) -> Outline:
    """Return the outline of a document version. Raises `NotFoundError` if the version was deleted."""
    content = await blobs.read(WORK, folder + OUTLINE_FILE)
    return await asyncio.to_thread(Outline.from_stored, content)


async def get_parts(
    blobs: BlobStore, folder: str, parts: Sequence[Part]
) -> AsyncIterator[tuple[Element, ...]]:
    """Yield the elements of each given part of a document version. The parts must be consecutive.

    Raises:
        NotFoundError, ConflictError: the version was deleted.
    """
    name = folder + PARTS_FILE
    stored = await blobs.properties(WORK, name)
    if stored is None:
        raise NotFoundError("The text of this version no longer exists.", "Open the document again.")
    for part in parts:
        pieces = blobs.chunks(WORK, name, etag=stored.etag, first=part.first_byte, length=part.size_bytes)
        content = b"".join([piece async for piece in pieces])
        yield await asyncio.to_thread(decode, content)
