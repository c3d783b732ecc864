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
from shared.ingestion.acceptance import is_small, pipeline
from shared.ingestion.claims import MAX_TRIES, PARSED
from shared.ingestion.models import Layout, PageTexts, Parsed, ParsedFile
from shared.ingestion.parser_process import ParserPool, Turn, parser_pool, text_pool
from shared.ingestion.parser_worker import ParseJob
from shared.ingestion.parsers.ocr import tesseract_path
from shared.ingestion.registry import MAGIC_BYTES, check_content, format_of
from shared.platform.errors import (
    BadDocumentError,
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

    from shared.documents.state import DocumentState
    from shared.ingestion.claims import IngestTask
    from shared.ingestion.parser_services import LayoutReader, PageReader, ParserServices

    ParseOnce = Callable[..., Awaitable[ParsedFile]]

_MAX_RETRIES = 3
_MAX_READ_PAGES = 2000  # what the service takes in one request
Answer = TypeVar("Answer", Layout, PageTexts)


async def parse(task: IngestTask) -> Parsed:
    """Download, hash, and unless the indexes hold these very bytes, parse and chunk.

    Raises:
        BadDocumentError, PayloadTooLargeError: the file cannot be ingested, and why.
        NotFoundError: it is gone.
        DependencyError: a service failed, or the file changed while it was read.
    """
    state = await task.enter("parsing")
    format_of(state.filename)
    properties = await task.blobs.properties(DOCUMENTS, task.step.blob_name)
    size_bytes = 0 if properties is None else properties.size_bytes
    max_bytes = task.services.settings.ingestion.max_document_bytes
    if size_bytes > max_bytes:
        raise PayloadTooLargeError(
            f"The file has {size_bytes:,} bytes; at most {max_bytes:,} are read.", "Split the file."
        )
    # Before the file is fetched: an activity that waits for a worker holds no copy.
    async with parser_for(state.filename, size_bytes, task.services.parser_services) as parser:
        with TemporaryDirectory(prefix="groundwork-") as folder:
            return await _parse(task, Path(folder), parser)


@asynccontextmanager
async def parser_for(
    filename: str, size_bytes: int, parser_services: ParserServices
) -> AsyncIterator[ParserPool | Turn]:
    """Where a file is parsed.

    A short text is no burden. A file that a parser service reads waits for a worker when its answer is there:
    otherwise a worker would idle for these minutes.

    Raises:
        NoWorkerFreeError: all workers are parsing other files.
    """
    suffix = PurePosixPath(filename).suffix.lower()
    services = (parser_services.layout, parser_services.pages)
    if is_small(filename, size_bytes):
        yield text_pool()
    elif any(service is not None and suffix in service.suffixes for service in services):
        yield parser_pool()
    else:
        async with parser_pool().turn() as turn:
            yield turn


async def _parse(task: IngestTask, folder: Path, parser: ParserPool | Turn) -> Parsed:
    source, settings = folder / "document", task.services.settings
    try:
        downloaded = await task.blobs.download(DOCUMENTS, task.step.blob_name, source)
    except ConflictError:
        raise DependencyError("The file was replaced while it was read.", "It is read again.") from None
    task.content_hash, magic_bytes = await asyncio.to_thread(_inspect, source)
    state = await task.update(partial(_with_bytes, content_hash=task.content_hash, etag=downloaded.etag))
    if task.content_hash == state.content_hash and state.pipeline == pipeline(settings):
        return Parsed(content_hash=task.content_hash, same_bytes=True)
    if state.failed_tries >= MAX_TRIES:
        raise BadDocumentError(
            state.tried_reason or "The file could not be ingested.",
            "The same bytes failed three times: change the file, or ask for another try.",
        )
    check_content(state.filename, magic_bytes)
    figures = folder / "figures"
    await asyncio.to_thread(figures.mkdir)
    job = ParseJob(
        source=source,
        target=folder / "parsed.json",
        filename=state.filename,
        max_tokens=settings.ingestion.max_block_tokens,
        tokenizer_path=settings.models.embedding_tokenizer_path,
        figures=figures,
        reading=folder / "reading.json",
        max_figures=settings.ingestion.max_figures,
        recognition_budget_s=settings.ingestion.ocr_timeout_s,
    )
    parsed = await _read(job, task, parser)
    await page_files.put_reading(task.blobs, state.doc_id, task.content_hash, job.reading)
    if parsed.figures:
        await figure_store.put_new(task.blobs, state.doc_id, parsed.figures, figures)
    await task.put(PARSED, parsed)
    return Parsed(content_hash=task.content_hash, chunk_count=len(parsed.chunks))


def _with_bytes(state: DocumentState, content_hash: str, etag: str) -> DocumentState:
    """The state once the file's bytes are known: tries of other bytes do not count."""
    read: dict[str, object] = {"wanted_etag": etag, "tried_hash": content_hash}
    if content_hash != state.tried_hash:
        read |= {"failed_tries": 0, "tried_reason": None}
    return state.model_copy(update=read)


def _inspect(path: Path) -> tuple[str, bytes]:
    """A file's sha256 in hex, and its first bytes."""
    with path.open("rb") as file:
        content_hash = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        return content_hash, file.read(MAGIC_BYTES)


async def _read(job: ParseJob, task: IngestTask, parser: ParserPool | Turn) -> ParsedFile:
    """The file's chunks and figures.

    Raises:
        BadDocumentError: the file cannot be read.
        DependencyError: the parser service failed, and may do better later.
    """
    suffix = PurePosixPath(job.filename).suffix.lower()
    settings = task.services.settings
    timeout_s = settings.ingestion.parse_timeout_s + (
        settings.ingestion.ocr_timeout_s if tesseract_path() else 0.0
    )

    async def parsed(job: ParseJob, *notes: str) -> ParsedFile:
        await parser.run(job, timeout_s)
        parsed = ParsedFile.model_validate_json(await asyncio.to_thread(job.target.read_bytes))
        return parsed.model_copy(update={"warnings": (*notes, *parsed.warnings)}) if notes else parsed

    services = task.services.parser_services
    if services.layout is not None and suffix in services.layout.suffixes:
        return await _read_layout(job, task, services.layout, parsed)
    if services.pages is not None and suffix in services.pages.suffixes:
        return await _read_pages(job, task, services.pages, parsed)
    return await parsed(job)


async def _read_layout(
    job: ParseJob, task: IngestTask, service: LayoutReader, parsed: ParseOnce
) -> ParsedFile:
    """By the layout that the service finds."""
    ask = partial(service.read_layout, job.source, job.filename, _limits(task))
    layout = await _paid_once(task, "layout.json", Layout, ask, service.name)
    if isinstance(layout, str):
        return await parsed(job, f"{layout} It was read by the built-in parser.")
    path = await _write_answer(job, "layout.json", layout)
    return await parsed(job.model_copy(update={"layout": path}))


async def _read_pages(job: ParseJob, task: IngestTask, service: PageReader, parsed: ParseOnce) -> ParsedFile:
    """By our own parsers; pages without text by the service, and then once more with their words."""
    first = await parsed(job.model_copy(update={"pages_by_service": True}))
    unread = first.unread_pages[:_MAX_READ_PAGES]
    if not unread:
        return first
    ask = partial(service.read_pages, job.source, unread, _limits(task))
    texts = await _paid_once(task, "pages.json", PageTexts, ask, service.name)
    if isinstance(texts, PageTexts):
        path = await _write_answer(job, "pages.json", texts)
        return await parsed(job.model_copy(update={"pages_by_service": True, "page_texts": path}))
    if tesseract_path() is None:
        return first.model_copy(update={"warnings": (texts, *first.warnings)})
    return await parsed(job, f"{texts} Pages without text were read by Tesseract.")


def _limits(task: IngestTask) -> CallLimits:
    timeout_s = task.services.settings.ingestion.parser_service_timeout_s
    return CallLimits(timeout_s=timeout_s, max_retries=_MAX_RETRIES)


async def _paid_once(
    task: IngestTask, name: str, kind: type[Answer], ask: Callable[[], Awaitable[Answer]], service: str
) -> Answer | str:
    """The service's answer, or why there is none; stored, as later attempts may follow for want of a worker.

    Raises:
        GroundworkError: it may pass, and this is not the last attempt.
    """
    try:
        return await task.get(name, kind)
    except NotFoundError:
        pass
    try:
        answer = await ask()
    except GroundworkError as failed:
        may_pass = failed.retryable and not isinstance(failed, CallTimeoutError)
        if may_pass and not task.step.last_attempt:
            raise
        get_logger().warning("parser_service.failed", service=service, error_type=failed.code)
        return failed.detail
    await task.put(name, answer)
    return answer


async def _write_answer(job: ParseJob, name: str, answer: Layout | PageTexts) -> Path:
    """The service's answer as a file for the worker process."""
    path = job.target.parent / name
    await asyncio.to_thread(path.write_text, answer.model_dump_json(), encoding="utf-8", errors="replace")
    return path
