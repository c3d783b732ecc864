"""Pictures of pages, drawn when somebody looks at them for the first time, by a worker process of their own.

Only PDFs have any. A page that waits for a worker waits for no ingestion, and not for long.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from shared.documents import page_files
from shared.documents.page_models import PageSheet
from shared.documents.state import DocumentState, DocumentStore
from shared.ingestion.parser_process import ParserPool
from shared.ingestion.parser_worker import RenderJob
from shared.platform.blobs import BlobProperties, BlobStore
from shared.platform.errors import ConflictError, DependencyError, NotFoundError
from shared.platform.names import DOCUMENTS, WORK

RENDER_SECONDS = 20.0  # a page takes tenths of a second; a map of a million lines is given up
_MAX_WAITING = 8  # each has a copy of its file, of up to MAX_DOCUMENT_BYTES, on the disk of the instance


def has_pictures(filename: str) -> bool:
    """Whether pages of such a file can be drawn."""
    return PurePosixPath(filename).suffix.lower() == ".pdf"


async def page_sheet(
    state: DocumentState, page_number: int, blobs: BlobStore, documents: DocumentStore
) -> PageSheet:
    """The page's words and the size of its picture; both are made if they are not there.

    Raises:
        NotFoundError: the file has no such page, or it is gone.
        BadDocumentError: the page cannot be drawn within its limits.
        ConflictError: the document is being replaced.
        DependencyError: too many pages are being drawn.
    """
    known = await page_files.get_sheet(blobs, state.doc_id, state.content_hash, page_number)
    return known or (await _rendered(state, page_number, blobs, documents))[0]


async def page_picture(
    state: DocumentState, page_number: int, blobs: BlobStore, documents: DocumentStore
) -> BlobProperties:
    """The page's picture in the work container. Errors as `page_sheet`."""
    place = (state.doc_id, state.content_hash, page_number)
    found = await page_files.picture(blobs, *place)
    if found is None:
        await _rendered(state, page_number, blobs, documents)
        found = await page_files.picture(blobs, *place)
    if found is None:
        raise NotFoundError(f"There is no page {page_number}.", "The document was deleted just now.")
    return found


async def _rendered(
    state: DocumentState, page_number: int, blobs: BlobStore, documents: DocumentStore
) -> tuple[PageSheet, bytes]:
    with _Waiting.one_more(), TemporaryDirectory(prefix="groundwork-") as folder:
        source = Path(folder) / "document.pdf"
        downloaded = await blobs.download(DOCUMENTS, state.blob_name, source)
        # What the index tells of is what is shown: another version may have other readers.
        if downloaded.etag != state.blob_etag:
            raise ConflictError("The document is being replaced.", "Try again when its new version is ready.")
        made = await _draw(source, page_number)
    await page_files.put_sheet(blobs, state.doc_id, state.content_hash, page_number, made)
    current = await documents.get(state.doc_id)
    if current is None or current.content_hash != state.content_hash:  # it went while it was drawn
        name = page_files.picture_name(state.doc_id, state.content_hash, page_number)
        await blobs.delete_prefix(WORK, name.rpartition("/")[0] + "/")
    return made


async def _draw(source: Path, page_number: int) -> tuple[PageSheet, bytes]:
    job = RenderJob(
        source=source,
        target=source.with_suffix(".json"),
        picture=source.with_suffix(".png"),
        page_number=page_number,
    )
    await page_pool().run(job, RENDER_SECONDS, patience_s=_MAX_WAITING * RENDER_SECONDS)
    sheet = PageSheet.model_validate_json(await asyncio.to_thread(job.target.read_bytes))
    return sheet, await asyncio.to_thread(job.picture.read_bytes)


class _Waiting:
    """Counts the pages that are being fetched and drawn, or wait for it."""

    count = 0

    @classmethod
    @contextmanager
    def one_more(cls) -> Iterator[None]:
        if cls.count >= _MAX_WAITING:
            raise DependencyError(
                "Too many pages are being drawn.", "Try again in a moment.", retry_after_s=2
            )
        cls.count += 1
        try:
            yield
        finally:
            cls.count -= 1


@cache
def page_pool() -> ParserPool:
    """The process's pool for pages."""
    return ParserPool(workers=1)
