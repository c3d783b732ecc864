"""Storage of the tables of a document version: a SQLite file and its catalog.

Both are blobs in the folder of the version.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from shared.platform.blobs import BlobStore, find_model
from shared.platform.names import WORK
from shared.tables.models import CATALOG, DATABASE, TableCatalog

_PIECE_BYTES = 4 << 20


async def put_tables(blobs: BlobStore, folder: str, source: Path) -> None:
    """Upload the tables in the folder `source`, if there are any. The catalog is written last, so its
    presence means that the tables are complete.
    """
    catalog = source / CATALOG
    if await asyncio.to_thread(catalog.exists):
        await blobs.write_stream(WORK, folder + DATABASE, _pieces(source / DATABASE))
        await blobs.write(WORK, folder + CATALOG, await asyncio.to_thread(catalog.read_bytes))


async def get_catalog(blobs: BlobStore, folder: str) -> TableCatalog | None:
    """Return the catalog of a version's tables, or None if it has no tables."""
    return await find_model(blobs, WORK, folder + CATALOG, TableCatalog)


async def fetch_tables(blobs: BlobStore, folder: str, target: Path) -> None:
    """Download the SQLite file of a version's tables to `target`.

    Raises:
        NotFoundError: the version was deleted.
    """
    await blobs.download(WORK, folder + DATABASE, target)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece
