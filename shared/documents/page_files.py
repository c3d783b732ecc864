"""What documents are read from by people: their pieces in order.

Files of the work container, by document and content hash: made for one version, and gone with it. Pictures of
pages (shared/ingestion/page_pictures.py) and tables that SQL can ask (shared/tables/table_files.py) lie
there, too.
"""

import asyncio
from pathlib import Path

from shared.documents.page_models import Reading
from shared.platform.blobs import BlobStore
from shared.platform.names import WORK

FOLDER = "views/"


async def put_reading(blobs: BlobStore, doc_id: str, content_hash: str, reading: Path | None) -> None:
    """Keep the pieces that the parser left in a file."""
    if reading is not None:
        content = await asyncio.to_thread(reading.read_bytes)
        await blobs.write(WORK, f"{version_folder(doc_id, content_hash)}reading.json", content)


async def get_reading(blobs: BlobStore, doc_id: str, content_hash: str) -> Reading:
    """The pieces of a version.

    Raises:
        NotFoundError: they went with their version.
    """
    content = await blobs.read(WORK, f"{version_folder(doc_id, content_hash)}reading.json")
    return await asyncio.to_thread(Reading.from_stored, content)


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
