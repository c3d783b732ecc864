"""What documents are read from by people: their pieces in order, and pictures of pages that were looked at.

Files of the work container, by document and content hash: made for one version, and gone with it. Search and
answers need none of them.
"""

import asyncio
from pathlib import Path

from shared.documents.page_models import PageSheet, Reading
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.errors import NotFoundError
from shared.platform.names import WORK

FOLDER = "views/"


async def put_reading(blobs: BlobStore, doc_id: str, content_hash: str, reading: Path | None) -> None:
    """Keep the pieces that the parser left in a file."""
    if reading is not None:
        content = await asyncio.to_thread(reading.read_bytes)
        await blobs.write(WORK, f"{_folder(doc_id, content_hash)}reading.json", content)


async def get_reading(blobs: BlobStore, doc_id: str, content_hash: str) -> Reading:
    """The pieces of a version.

    Raises:
        NotFoundError: they went with their version.
    """
    content = await blobs.read(WORK, f"{_folder(doc_id, content_hash)}reading.json")
    return await asyncio.to_thread(Reading.from_stored, content)


async def put_sheet(
    blobs: BlobStore, doc_id: str, content_hash: str, page_number: int, made: tuple[PageSheet, bytes]
) -> None:
    """Keep a rendered page: the picture first, so that a sheet always has one."""
    sheet, picture = made
    await blobs.write(WORK, picture_name(doc_id, content_hash, page_number), picture)
    await blobs.write(WORK, _sheet_name(doc_id, content_hash, page_number), sheet.model_dump_json().encode())


async def get_sheet(blobs: BlobStore, doc_id: str, content_hash: str, page_number: int) -> PageSheet | None:
    """None until the page was rendered."""
    try:
        content = await blobs.read(WORK, _sheet_name(doc_id, content_hash, page_number))
    except NotFoundError:
        return None
    return PageSheet.from_stored(content)


async def picture(
    blobs: BlobStore, doc_id: str, content_hash: str, page_number: int
) -> BlobProperties | None:
    """The picture of a page; None until the page was rendered."""
    return await blobs.properties(WORK, picture_name(doc_id, content_hash, page_number))


async def keep_only(blobs: BlobStore, doc_id: str, content_hash: str) -> None:
    """Remove what belongs to other versions of the document."""
    kept = _folder(doc_id, content_hash)
    async for found in blobs.list_blobs(WORK, f"{FOLDER}{doc_id}/"):
        if not found.name.startswith(kept):
            await blobs.delete(WORK, found.name)


async def remove_all(blobs: BlobStore, doc_id: str) -> None:
    """Remove all of it, of whatever version."""
    await blobs.delete_prefix(WORK, f"{FOLDER}{doc_id}/")


def picture_name(doc_id: str, content_hash: str, page_number: int) -> str:
    """The picture's name in the work container."""
    return f"{_folder(doc_id, content_hash)}page-{page_number}.png"


def _sheet_name(doc_id: str, content_hash: str, page_number: int) -> str:
    return f"{_folder(doc_id, content_hash)}page-{page_number}.json"


def _folder(doc_id: str, content_hash: str) -> str:
    return f"{FOLDER}{doc_id}/{content_hash}/"
