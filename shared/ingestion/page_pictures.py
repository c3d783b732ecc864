"""Pictures of pages, drawn by a separate worker process when somebody looks at them for the first time.

Only PDFs have any. A page that waits for a worker waits for no ingestion, and not for long; its file is
fetched when its turn has come.
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

RENDER_TIMEOUT_S = 20.0  # a page takes tenths of a second; a map of a million lines is given up
FAILURE_KEPT = timedelta(hours=1)  # a version can hold the worker for two pages' time in an hour
_MAX_FAILED_PAGES = 2  # of one version; a file made to be slow is slow on every page
_MAX_WAITING = 8
_OWN_PLACES = 2  # a reader looks at one page and the next
_WIDTHS_PX = (320, 640, 960)
_WEBP_QUALITY = 80  # small print stays readable (unmeasured)
_places = BoundedSemaphore(_MAX_WAITING)
_own_places = PersonalPlaces(_OWN_PLACES, max_waiting=_MAX_WAITING - _OWN_PLACES)


class PageFailure(Model):
    """Why a page could not be drawn, and when that was tried."""

    detail: str
    hints: tuple[str, ...]
    at: datetime


def has_pictures(filename: str) -> bool:
    """Whether pages of such a file can be drawn."""
    return PurePosixPath(filename).suffix.lower() == ".pdf"


def picture_name(state: DocumentState, page_number: int, width_px: int = 0) -> str:
    """The picture's name in the work container; with a width, that of the smaller WebP."""
    return _name(state, f"page-{page_number}-{width_px}.webp" if width_px else f"page-{page_number}.png")


def _name(state: DocumentState, name: str) -> str:
    return state.folder + name


async def known_sheet(state: DocumentState, page_number: int, blobs: BlobStore) -> PageSheet | None:
    """The page's words and the size of its picture; None until it was drawn."""
    return await find_model(blobs, WORK, _name(state, f"page-{page_number}.json"), PageSheet)


async def page_sheet(
    state: DocumentState, page_number: int, user: UserContext, services: IngestionServices
) -> PageSheet:
    """The page's words and the size of its picture; both are made if they are not there.

    Raises:
        NotFoundError: the file has no such page, or it is gone.
        BadDocumentError: the page cannot be drawn within its limits.
        ConflictError: the document is being replaced.
        DependencyError: too many pages are being drawn.
        TooManyRequestsError: too many pages of the user's wait to be drawn.
        DailyLimitError: too many were drawn for the user today.
    """
    known = await known_sheet(state, page_number, services.blobs)
    return known or await _rendered(state, page_number, user, services)


async def page_picture(
    state: DocumentState, page_number: int, user: UserContext, services: IngestionServices
) -> BlobProperties:
    """The page's picture in the work container. Errors as `page_sheet`."""
    name = picture_name(state, page_number)
    found = await services.blobs.properties(WORK, name)
    if found is None:
        await _rendered(state, page_number, user, services)
        found = await services.blobs.properties(WORK, name)
    if found is None:
        raise NotFoundError(f"There is no page {page_number}.", "The document has just been deleted.")
    return found


async def narrow_picture(
    state: DocumentState, page_number: int, width_px: int, services: IngestionServices
) -> BlobProperties | None:
    """A smaller WebP of a page that was drawn, for phones; None where the whole picture is wanted.

    Of three widths, the smallest that is not smaller than `width_px`.
    """
    width = next((one for one in _WIDTHS_PX if 0 < width_px <= one), None)
    if width is None:
        return None
    blobs, name = services.blobs, picture_name(state, page_number, width)
    found = await blobs.properties(WORK, name)
    if found is None:
        content = await blobs.read(WORK, picture_name(state, page_number))
        await blobs.write(WORK, name, await asyncio.to_thread(_narrowed, content, width))
        found = await blobs.properties(WORK, name)
    return found


def _narrowed(content: bytes, width_px: int) -> bytes:
    with Image.open(io.BytesIO(content)) as picture:
        height = round(picture.height * width_px / picture.width)
        small = picture if picture.width <= width_px else picture.resize((width_px, height))
        written = io.BytesIO()
        small.save(written, "WEBP", quality=_WEBP_QUALITY)
        return written.getvalue()


async def _rendered(
    state: DocumentState, page_number: int, user: UserContext, services: IngestionServices
) -> PageSheet:
    await _refuse_failed(state, page_number, services.blobs)
    async with _own_places.take(user.user_id):
        # An earlier request may have drawn the page meanwhile, or may have failed to.
        known = await known_sheet(state, page_number, services.blobs)
        if known is not None:
            return known
        await _refuse_failed(state, page_number, services.blobs)
        return await _render(state, page_number, user, services)


async def _refuse_failed(state: DocumentState, page_number: int, blobs: BlobStore) -> None:
    """Raise BadDocumentError if the page, or too many pages of its version, failed lately.

    Failures expire, because the machine may have been at fault.
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
        raise DependencyError("Too many pages are being drawn.", "Try again in a moment.", retry_after_s=2)
    try:
        async with pool.turn(user.user_id, _MAX_WAITING * RENDER_TIMEOUT_S) as run:
            sheet, picture = await _drawn(state, page_number, blobs, run)
    except BadDocumentError as failed:
        failure = PageFailure(detail=failed.detail, hints=failed.hints, at=datetime.now(UTC))
        await write_model(blobs, WORK, _failure_name(state, page_number), failure)
        raise
    finally:
        _places.release()
    # The picture first, so that a sheet always has one.
    await blobs.write(WORK, picture_name(state, page_number), picture)
    await write_model(blobs, WORK, _name(state, f"page-{page_number}.json"), sheet)
    current = await services.documents.get(state.doc_id)
    if current is None or current.version_key != state.version_key:
        # It went while the page was drawn. Only the page: an ingestion may be making this version again.
        await blobs.delete_prefix(WORK, _name(state, f"page-{page_number}."))
        await blobs.delete_prefix(WORK, _name(state, f"page-{page_number}-"))
    return sheet


async def _drawn(
    state: DocumentState, page_number: int, blobs: BlobStore, run: RunJob
) -> tuple[PageSheet, bytes]:
    with TemporaryDirectory(prefix="groundwork-") as folder:
        source = Path(folder) / "document.pdf"
        downloaded = await blobs.download(DOCUMENTS, state.blob_name, source)
        # The version in the index is the one to show: another version may have other readers.
        if downloaded.etag != state.blob_etag:
            raise ConflictError("The document is being replaced.", "Try again when its new version is ready.")
        job = RenderJob(
            source=source,
            target=source.with_suffix(".json"),
            picture=source.with_suffix(".png"),
            page_number=page_number,
        )
        await run(job, RENDER_TIMEOUT_S)
        sheet = PageSheet.from_stored(await asyncio.to_thread(job.target.read_bytes))
        return sheet, await asyncio.to_thread(job.picture.read_bytes)
