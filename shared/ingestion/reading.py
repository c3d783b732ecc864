"""The step that downloads a file and has it parsed in the worker process; chunks go to the work container."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from shared.documents import figure_store, page_files
from shared.ingestion import work_files
from shared.ingestion.accepting import is_short_text, pipeline
from shared.ingestion.claims import enter, update
from shared.ingestion.models import IngestStep, Layout, PageTexts, Parsed, ParsedFile
from shared.ingestion.parser_process import ParserPool, Turn, parser_pool, text_pool
from shared.ingestion.parser_services import LayoutReader, PageReader, ParserServices
from shared.ingestion.parser_worker import ParseJob
from shared.ingestion.parsers.ocr import tesseract_path
from shared.ingestion.quarantine import refuse_what_always_failed, with_bytes
from shared.ingestion.registry import MAGIC_BYTES, check_content, format_of
from shared.platform.errors import (
    CallTimeoutError,
    ConflictError,
    DependencyError,
    GroundworkError,
    NotFoundError,
    PayloadTooLargeError,
)
from shared.platform.language_models.models import CallLimits
from shared.platform.names import DOCUMENTS
from shared.platform.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from shared.ingestion.services import IngestionServices
    from shared.platform.blobs import BlobProperties, BlobStore


_MAX_RETRIES = 3
_MAX_READ_PAGES = 2000  # what the service takes in one request
Answer = TypeVar("Answer")
Kept = TypeVar("Kept", Layout, PageTexts)


@asynccontextmanager
async def place_to_read(
    filename: str, size_bytes: int, parser_services: ParserServices
) -> AsyncIterator[ParserPool | Turn]:
    """Where a file is to be read; to be asked for before it is fetched, so that those who wait hold no copy.

    A short text is no burden. A file that a parser service reads waits for a worker when its answer is there:
    a worker that idles for these minutes would be missed by others.

    Raises:
        NoWorkerFreeError: others are being read.
    """
    suffix = PurePosixPath(filename).suffix.lower()
    helpers = (parser_services.layout, parser_services.pages)
    if is_short_text(filename, size_bytes):
        yield text_pool()
    elif any(helper is not None and suffix in helper.suffixes for helper in helpers):
        yield parser_pool()
    else:
        async with parser_pool().turn() as turn:
            yield turn


async def read_file(
    job: ParseJob, step: IngestStep, services: IngestionServices, place: ParserPool | Turn
) -> ParsedFile:
    """The file's chunks and figures; the step says which file it is, by its content's hash.

    Raises:
        BadDocumentError: the file cannot be read.
        DependencyError: the parser service failed, and may do better later.
    """
    await asyncio.to_thread(_check, job)
    suffix = PurePosixPath(job.filename).suffix.lower()
    layout, pages = services.parser_services.layout, services.parser_services.pages
    reader = _Reader(job, step, services, place)
    if layout is not None and suffix in layout.suffixes:
        return await reader.by_layout(layout)
    if pages is not None and suffix in pages.suffixes:
        return await reader.by_pages(pages)
    return await reader.locally()


class _Reader:
    """Reads one file."""

    def __init__(
        self, job: ParseJob, step: IngestStep, services: IngestionServices, place: ParserPool | Turn
    ) -> None:
        self._job = job
        self._step = step
        self._settings = services.settings
        self._blobs = services.blobs
        self._place = place

    async def locally(self, *notes: str) -> ParsedFile:
        """By our own parsers alone."""
        return await self._parsed(self._job, *notes)

    async def by_layout(self, service: LayoutReader) -> ParsedFile:
        """By the layout that the service finds."""
        limits = self._limits(self._settings.ingestion.parser_service_timeout_s)
        found = await self._paid_once(
            "layout.json",
            Layout,
            lambda: service.read_layout(self._job.source, self._job.filename, limits),
            service.name,
        )
        if not isinstance(found, Layout):
            return await self.locally(f"{found} It was read by the built-in parser.")
        path = await self._kept("layout.json", found)
        return await self._parsed(self._job.model_copy(update={"layout": path}))

    async def by_pages(self, service: PageReader) -> ParsedFile:
        """By our own parsers; pages without text by the service, and then once more with their words."""
        first = await self._parsed(self._job.model_copy(update={"pages_by_service": True}))
        wanted = first.unread_pages[:_MAX_READ_PAGES]
        if not wanted:
            return first
        limits = self._limits(self._settings.ingestion.parser_service_timeout_s)
        found = await self._paid_once(
            "pages.json",
            PageTexts,
            lambda: service.read_pages(self._job.source, wanted, limits),
            service.name,
        )
        if isinstance(found, PageTexts):
            path = await self._kept("pages.json", found)
            return await self._parsed(
                self._job.model_copy(update={"pages_by_service": True, "page_texts": path})
            )
        if tesseract_path() is None:
            return _noted(first, found)
        return await self.locally(f"{found} Pages without text were read by Tesseract.")

    async def _paid_once(
        self, name: str, kind: type[Kept], ask: Callable[[], Awaitable[Kept]], service: str
    ) -> Kept | str:
        """As `_asked`, and kept for the attempts after this one: it may end for want of a free worker."""
        try:
            return await work_files.get(self._blobs, self._step, name, kind)
        except NotFoundError:
            found = await self._asked(ask(), service)
        if isinstance(found, kind):
            await work_files.put(self._blobs, self._step, name, found)
        return found

    async def _asked(self, call: Awaitable[Answer], name: str) -> Answer | str:
        """The service's answer, or why there is none.

        Raises:
            GroundworkError: it may pass, and this is not the last attempt.
        """
        try:
            return await call
        except GroundworkError as failed:
            may_pass = failed.retryable and not isinstance(failed, CallTimeoutError)
            if may_pass and not self._step.last_attempt:
                raise
            get_logger().warning("parser_service.failed", service=name, error_type=failed.code)
            return failed.detail

    async def _parsed(self, job: ParseJob, *notes: str) -> ParsedFile:
        recognition_s = self._settings.ingestion.ocr_timeout_s if tesseract_path() else 0.0
        await self._place.run(job, self._settings.ingestion.parse_timeout_s + recognition_s)
        parsed = ParsedFile.model_validate_json(await asyncio.to_thread(job.target.read_bytes))
        return _noted(parsed, *notes)

    async def _kept(self, name: str, answer: Layout | PageTexts) -> Path:
        """The answer as a file beside the source, for the worker process."""
        path = self._job.target.parent / name
        await asyncio.to_thread(path.write_text, answer.model_dump_json(), encoding="utf-8", errors="replace")
        return path

    def _limits(self, timeout_s: float) -> CallLimits:
        return CallLimits(timeout_s=timeout_s, max_retries=_MAX_RETRIES)


def _check(job: ParseJob) -> None:
    """What is not what it says it is goes no further."""
    with job.source.open("rb") as file:
        check_content(job.filename, file.read(MAGIC_BYTES))


def _noted(parsed: ParsedFile, *notes: str) -> ParsedFile:
    return parsed.model_copy(update={"warnings": (*notes, *parsed.warnings)}) if notes else parsed


async def parse(step: IngestStep, services: IngestionServices) -> Parsed:
    """Download, hash, and unless the indexes hold these very bytes, parse and chunk.

    Raises:
        BadDocumentError, PayloadTooLargeError: the file cannot be ingested, and why.
        NotFoundError: it is gone.
        DependencyError: a service failed, or the file changed under our hands.
    """
    state = await enter(services.documents, step, "parsing")
    format_of(state.filename)
    properties = await services.blobs.properties(DOCUMENTS, step.blob_name)
    if properties is not None:
        _check_size(properties, services.settings.ingestion.max_document_bytes)
    size_bytes = 0 if properties is None else properties.size_bytes
    # Before the file is fetched: an activity that waits for its turn holds no copy, and fetches none in vain.
    async with place_to_read(state.filename, size_bytes, services.parser_services) as place:
        return await _parse(step, services, place)


async def _parse(step: IngestStep, services: IngestionServices, place: ParserPool | Turn) -> Parsed:
    with TemporaryDirectory(prefix="groundwork-") as folder:
        source = Path(folder) / "document"
        downloaded = await _download(services.blobs, step, source)
        content_hash = await asyncio.to_thread(_hash_file, source)
        read = partial(with_bytes, content_hash=content_hash, etag=downloaded.etag)
        state = await update(services.documents, step, read)
        if content_hash == state.content_hash and state.pipeline == pipeline(services.settings):
            return Parsed(content_hash=content_hash, same_bytes=True)
        refuse_what_always_failed(state)
        job = await asyncio.to_thread(_job, services, source, state.filename)
        keyed = step.model_copy(update={"content_hash": content_hash})
        parsed = await read_file(job, keyed, services, place)
        await page_files.put_reading(services.blobs, state.doc_id, content_hash, job.reading)
        if job.figures is not None:
            await figure_store.put_new(services.blobs, state.doc_id, parsed.figures, job.figures)
    await work_files.put(services.blobs, keyed, work_files.PARSED, parsed)
    return Parsed(content_hash=content_hash, chunk_count=len(parsed.chunks))


def _job(services: IngestionServices, source: Path, filename: str) -> ParseJob:
    """What the worker is asked; its results go beside the source."""
    settings = services.settings
    figures = source.parent / "figures"
    figures.mkdir()
    return ParseJob(
        source=source,
        target=source.parent / "parsed.json",
        filename=filename,
        max_tokens=settings.ingestion.max_block_tokens,
        tokenizer_path=settings.models.embedding_tokenizer_path,
        figures=figures,
        reading=source.parent / "reading.json",
        max_figures=settings.ingestion.max_figures,
        recognition_budget_s=settings.ingestion.ocr_timeout_s,
    )


async def _download(blobs: BlobStore, step: IngestStep, target: Path) -> BlobProperties:
    try:
        return await blobs.download(DOCUMENTS, step.blob_name, target)
    except ConflictError:
        raise DependencyError("The file was replaced while it was read.", "It is read again.") from None


def _check_size(properties: BlobProperties, max_bytes: int) -> None:
    if properties.size_bytes > max_bytes:
        raise PayloadTooLargeError(
            f"The file has {properties.size_bytes:,} bytes; at most {max_bytes:,} are read.",
            "Split the file.",
        )


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
