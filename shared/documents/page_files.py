"""What documents are read from by people: their pieces in order, and pictures of pages that were looked at.

Files of the work container, by document and content hash: made for one version, and gone with it. The tables
that SQL can ask lie there, too (shared/tables/table_files.py).
"""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from shared.documents.page_models import PageSheet, Reading
from shared.platform.blobs import BlobProperties, BlobStore, find_model, write_model
from shared.platform.errors import BadDocumentError
from shared.platform.models import Model
from shared.platform.names import WORK

FOLDER = "views/"
FAILURE_KEPT = timedelta(hours=1)  # a page that takes all of its time can hold a worker for 20 s an hour


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


async def put_sheet(
    blobs: BlobStore, doc_id: str, content_hash: str, page_number: int, made: tuple[PageSheet, bytes]
) -> None:
    """Keep a rendered page: the picture first, so that a sheet always has one."""
    sheet, picture = made
    await blobs.write(WORK, picture_name(doc_id, content_hash, page_number), picture)
    await write_model(blobs, WORK, _sheet_name(doc_id, content_hash, page_number), sheet)


async def get_sheet(blobs: BlobStore, doc_id: str, content_hash: str, page_number: int) -> PageSheet | None:
    """None until the page was rendered."""
    return await find_model(blobs, WORK, _sheet_name(doc_id, content_hash, page_number), PageSheet)


class PageFailure(Model):
    """Why a page could not be drawn, and when that was tried."""

    detail: str
    hints: tuple[str, ...]
    at: datetime


async def put_failure(
    blobs: BlobStore, doc_id: str, content_hash: str, page_number: int, failed: BadDocumentError
) -> None:
    """Remember that a page cannot be drawn."""
    failure = PageFailure(detail=failed.detail, hints=failed.hints, at=datetime.now(UTC))
    await write_model(blobs, WORK, _failure_name(doc_id, content_hash, page_number), failure)


async def require_drawable(blobs: BlobStore, doc_id: str, content_hash: str, page_number: int) -> None:
    """Refuse a page that could not be drawn a short while ago: it may have been the machine's fault.

    Raises:
        BadDocumentError: as it was then.
    """
    name = _failure_name(doc_id, content_hash, page_number)
    failure = await find_model(blobs, WORK, name, PageFailure)
    if failure is not None and datetime.now(UTC) - failure.at < FAILURE_KEPT:
        raise BadDocumentError(failure.detail, *failure.hints)


async def picture(
    blobs: BlobStore, doc_id: str, content_hash: str, page_number: int, width_px: int = 0
) -> BlobProperties | None:
    """The picture of a page, or a smaller one; None until it was made."""
    return await blobs.properties(WORK, picture_name(doc_id, content_hash, page_number, width_px))


async def keep_only(blobs: BlobStore, doc_id: str, content_hash: str) -> None:
    """Remove what belongs to other versions of the document."""
    kept = version_folder(doc_id, content_hash)
    async for found in blobs.list_blobs(WORK, f"{FOLDER}{doc_id}/"):
        if not found.name.startswith(kept):
            await blobs.delete(WORK, found.name)


async def remove_all(blobs: BlobStore, doc_id: str) -> None:
    """Remove all of it, of whatever version."""
    await blobs.delete_prefix(WORK, f"{FOLDER}{doc_id}/")


def picture_name(doc_id: str, content_hash: str, page_number: int, width_px: int = 0) -> str:
    """The picture's name in the work container; with a width, that of the smaller WebP."""
    ending = f"-{width_px}.webp" if width_px else ".png"
    return f"{version_folder(doc_id, content_hash)}page-{page_number}{ending}"


def _sheet_name(doc_id: str, content_hash: str, page_number: int) -> str:
    return f"{version_folder(doc_id, content_hash)}page-{page_number}.json"


def _failure_name(doc_id: str, content_hash: str, page_number: int) -> str:
    return f"{version_folder(doc_id, content_hash)}failure-{page_number}.json"


def version_folder(doc_id: str, content_hash: str) -> str:
    """Where everything of one version lies in the work container."""
    return f"{FOLDER}{doc_id}/{content_hash}/"
