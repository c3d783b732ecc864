"""Pictures of PDF pages, rendered on first view by a separate worker process.

Other formats have no pictures. Rendering doesn't queue behind ingestions and has a short time limit. The file
is downloaded only when a worker is free.
"""

import asyncio
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore

from PIL import Image

from shared.access.daily_use import DRAWING, Usage
from shared.access.limits import admit
from shared.access.models import UserContext
from shared.access.personal_places import PersonalPlaces
from shared.documents.page_models import PageSheet
from shared.documents.state import DocumentState
from shared.ingestion.parser_process import RunJob, parsers
from shared.ingestion.parser_worker import RenderJob
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobProperties, BlobStore, find_model, write_model
from shared.platform.errors import BadDocumentError, ConflictError, DependencyError, NotFoundError
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS, WORK

# Timeout for rendering a page. Most pages take a few tenths of a second, but a map with a million lines
# exceeds the timeout.
RENDER_TIMEOUT_S = 20.0
# Time before a failed page is rendered again. With `_MAX_FAILED_PAGES`, this limits a document to two
# timeouts per hour.
FAILURE_KEPT = timedelta(hours=1)
# After this many failed pages, no page of the version is rendered, because every page of a malicious file may
# be slow.
_MAX_FAILED_PAGES = 2
_MAX_WAITING = 8
# Number of pages that a user may request at the same time: the current page and the next one.
_OWN_PLACES = 2
_WIDTHS_PX = (320, 640, 960)
# WebP quality of the smaller pictures. Small print is still readable at this value (unmeasured).
_WEBP_QUALITY = 80
_places = BoundedSemaphore(_MAX_WAITING)
_own_places = PersonalPlaces(_OWN_PLACES, max_waiting=_MAX_WAITING - _OWN_PLACES)


class PageFailure(Model):
    """Reason and time of a failed rendering. It is stored, so that the page isn't rendered again
    immediately.
    """

    detail: str
    hints: tuple[str, ...]
    at: datetime


def has_pictures(filename: str) -> bool:
    """Return whether the pages of a file can be rendered, judged by its suffix. Only PDF is supported."""
    return PurePosixPath(filename).suffix.lower() == ".pdf"


def picture_name(state: DocumentState, page_number: int, width_px: int = 0) -> str:
    """Return the blob name of a page picture: the full PNG, or a smaller WebP if a width is given."""
    return _name(state, f"page-{page_number}-{width_px}.webp" if width_px else f"page-{page_number}.png")


def _name(state: DocumentState, name: str) -> str:
    return state.folder + name


async def known_sheet(state: DocumentState, page_number: int, blobs: BlobStore) -> PageSheet | None:
    """Return the words and picture size of a page that was rendered earlier, or None if it wasn't."""
    return await find_model(blobs, WORK, _name(state, f"page-{page_number}.json"), PageSheet)


async def page_sheet(
    state: DocumentState, page_number: int, user: UserContext, services: IngestionServices
) -> PageSheet:
    """Return the words and picture size of a page. Render the page if necessary.

    Raises:
        NotFoundError: the page is missing, or the file no longer exists.
        BadDocumentError: the page cannot be rendered within its limits.
        ConflictError: the document is being replaced.
        DependencyError: too many pages are being rendered.
        TooManyRequestsError: too many of the user's pages are waiting.
        DailyLimitError: the user's daily limit is reached.
    """
    sheet = await known_sheet(state, page_number, services.blobs)
    return sheet or await _render_once(state, page_number, user, services)


async def page_picture(
    state: DocumentState, page_number: int, user: UserContext, services: IngestionServices
) -> BlobProperties:
    """Return the blob properties of a page picture. Render the page if necessary."""
    name = picture_name(state, page_number)
    properties = await services.blobs.properties(WORK, name)
    if properties is None:
        await _render_once(state, page_number, user, services)
        properties = await services.blobs.properties(WORK, name)
    if properties is None:
        raise NotFoundError(f"Page {page_number} doesn't exist.", "The document has just been deleted.")
    return properties


async def narrow_picture(
    state: DocumentState, page_number: int, width_px: int, services: IngestionServices
) -> BlobProperties | None:
    """Return the properties of a smaller picture of a page, which is made from the full picture. Return None
    if only the full picture has the requested width.

    The width is the smallest of 320, 640 and 960 px that is at least `width_px`.
    """
    width = next((one for one in _WIDTHS_PX if 0 < width_px <= one), None)
    if width is None:
        return None
    blobs, name = services.blobs, picture_name(state, page_number, width)
    properties = await blobs.properties(WORK, name)
    if properties is None:
        content = await blobs.read(WORK, picture_name(state, page_number))
        await blobs.write(WORK, name, await asyncio.to_thread(_narrow, content, width))
        properties = await blobs.properties(WORK, name)
    return properties


def _narrow(content: bytes, width_px: int) -> bytes:
    with Image.open(io.BytesIO(content)) as picture:
        height = round(picture.height * width_px / picture.width)
        small = picture if picture.width <= width_px else picture.resize((width_px, height))
        buffer = io.BytesIO()
        small.save(buffer, "WEBP", quality=_WEBP_QUALITY)
        return buffer.getvalue()


async def _render_once(
    state: DocumentState, page_number: int, user: UserContext, services: IngestionServices
) -> PageSheet:
    await _refuse_failed(state, page_number, services.blobs)
    async with _own_places.take(user.user_id):
        # While this request waited, another one may have rendered the page, or failed to.
        sheet = await known_sheet(state, page_number, services.blobs)
        if sheet is not None:
            return sheet
        await _refuse_failed(state, page_number, services.blobs)
        return await _render(state, page_number, user, services)


async def _refuse_failed(state: DocumentState, page_number: int, blobs: BlobStore) -> None:
    """Raise `BadDocumentError` if this page, or too many pages of its version, failed recently.

    Failures expire, because the machine may have caused them.
    """
    failed = 0
    async for stored in blobs.list_blobs(WORK, _name(state, "failure-")):
        failure = await find_model(blobs, WORK, stored.name, PageFailure)
        if failure is None or datetime.now(UTC) - failure.at >= FAILURE_KEPT:
            continue
        failed += 1
        if failed >= _MAX_FAILED_PAGES or stored.name == _failure_name(state, page_number):
            raise BadDocumentError(failure.detail, *failure.hints)


def _failure_name(state: DocumentState, page_number: int) -> str:
    return _name(state, f"failure-{page_number}.json")


async def _render(
    state: DocumentState, page_number: int, user: UserContext, services: IngestionServices
) -> PageSheet:
    blobs, pool = services.blobs, parsers(services.settings.host.instance_memory_mb).pages
    used = Usage(page_images=1)
    await admit(user, services.settings, services.user_limits, calls=0, needs=DRAWING, used=used)
    if not _places.acquire(blocking=False):
        raise DependencyError("Too many pages are being rendered.", "Try again in a moment.", retry_after_s=2)
    try:
        async with pool.turn(user.user_id, _MAX_WAITING * RENDER_TIMEOUT_S) as run:
            sheet, picture = await _render_in_worker(state, page_number, blobs, run)
    except BadDocumentError as failed:
        failure = PageFailure(detail=failed.detail, hints=failed.hints, at=datetime.now(UTC))
        await write_model(blobs, WORK, _failure_name(state, page_number), failure)
        raise
    finally:
        _places.release()
    # Write the picture first, so that every stored sheet has a picture.
    await blobs.write(WORK, picture_name(state, page_number), picture)
    await write_model(blobs, WORK, _name(state, f"page-{page_number}.json"), sheet)
    current = await services.documents.get(state.doc_id)
    if current is None or current.version_key != state.version_key:
        # The version was replaced or deleted during rendering. Delete only the files of this page, because an
        # ingestion may be recreating the version.
        await blobs.delete_prefix(WORK, _name(state, f"page-{page_number}."))
        await blobs.delete_prefix(WORK, _name(state, f"page-{page_number}-"))
    return sheet


async def _render_in_worker(
    state: DocumentState, page_number: int, blobs: BlobStore, run: RunJob
) -> tuple[PageSheet, bytes]:
    with TemporaryDirectory(prefix="groundwork-") as folder:
        source = Path(folder) / "document.pdf"
        downloaded = await blobs.download(DOCUMENTS, state.blob_name, source)
        # Render only the indexed version. Another version may have other readers.
        if downloaded.etag != state.blob_etag:
            raise ConflictError("The document is being replaced.", "Try again when the new version is ready.")
        job = RenderJob(
            source=source,
            target=source.with_suffix(".json"),
            picture=source.with_suffix(".png"),
            page_number=page_number,
        )
        await run(job, RENDER_TIMEOUT_S)
        sheet = PageSheet.from_stored(await asyncio.to_thread(job.target.read_bytes))
        return sheet, await asyncio.to_thread(job.picture.read_bytes)
