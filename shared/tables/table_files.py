"""Storage of a document version's tables: one SQLite file and its catalog.

They are stored with the version's views and deleted with them.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from shared.documents.page_files import version_folder
from shared.platform.blobs import BlobStore, find_model
from shared.platform.names import WORK
from shared.tables.models import CATALOG, DATABASE, TableCatalog

_PIECE_BYTES = 4 << 20


async def put_tables(blobs: BlobStore, doc_id: str, content_hash: str, folder: Path) -> None:
    """Upload the loader's files from `folder`, if any. The catalog comes last and marks completeness."""
    catalog, stored = folder / CATALOG, version_folder(doc_id, content_hash)
    if await asyncio.to_thread(catalog.exists):
        await blobs.write_stream(WORK, f"{stored}{DATABASE}", _pieces(folder / DATABASE))
        await blobs.write(WORK, f"{stored}{CATALOG}", await asyncio.to_thread(catalog.read_bytes))


async def get_catalog(blobs: BlobStore, doc_id: str, content_hash: str) -> TableCatalog | None:
    """Return the version's catalog, or None if it has no tables."""
    return await find_model(blobs, WORK, f"{version_folder(doc_id, content_hash)}{CATALOG}", TableCatalog)


async def fetch_tables(blobs: BlobStore, doc_id: str, content_hash: str, target: Path) -> None:
    """Download the SQLite file.

    Raises:
        NotFoundError: the version was deleted.
    """
    await blobs.download(WORK, f"{version_folder(doc_id, content_hash)}{DATABASE}", target)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece
