"""Parsing step: download a file and parse it in a worker process, with a parser service if configured."""

# Keep annotations as strings, so that their types need not be imported at start-up.
from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TypeVar

from shared.access.daily_use import Usage
from shared.documents import figure_store, page_files
from shared.documents.ids import HINTS_SUFFIX, has_own_sidecar, hints_of, sender_of
from shared.documents.state import DocumentState
from shared.ingestion.acceptance import pipeline, version_key, with_number
from shared.ingestion.models import Layout, PageTexts, ParsedFile
from shared.ingestion.parser_process import RunJob, parsers
from shared.ingestion.parser_services import PageReader
from shared.ingestion.parser_worker import ParseJob
from shared.ingestion.parsers.tesseract import is_installed
from shared.ingestion.registry import MAGIC_BYTES, check_content, format_of
from shared.ingestion.step_files import StepFiles
from shared.ingestion.task import MAX_TRIES, IngestTask, is_small, with_status
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
from shared.tables.hints import MAX_BYTES
from shared.tables.table_files import put_tables

_MAX_RETRIES = 3
# Minimum timeout. It includes the start of the process on a busy machine.
_LEAST_TIMEOUT_S = 40.0
# Additional timeout of 65 s per megabyte. Four large PDFs took 2 to 11 s per megabyte.
_TIMEOUT_S_PER_BYTE = 65e-6
# Maximum number of pages per request to the parser service.
_MAX_READ_PAGES = 2000
Answer = TypeVar("Answer", Layout, PageTexts)


FindParsed = Callable[[], Awaitable[ParsedFile | None]]
"""Returns the stored result of an earlier execution for the same version, or None."""


async def parse(task: IngestTask, find_parsed: FindParsed | None = None) -> ParsedFile | None:
    """Download, hash, parse and chunk the file. Return None if this version is already indexed.

    Raises:
        BadDocumentError, PayloadTooLargeError: the file can't be ingested; the error says why.
        NotFoundError: the file no longer exists.
        DependencyError: a service failed, or the file changed while it was read.
        NoPlaceFreeError: all workers are busy with other files.
    """
    state = await task.current_state()
    format_of(state.filename)
    properties = task.blob or await task.blobs.properties(DOCUMENTS, task.step.blob_name)
    size_bytes = 0 if properties is None else properties.size_bytes
    max_bytes = task.services.settings.ingestion.max_document_bytes
    if properties is not None and size_bytes > max_bytes:
        # Size limits can't be part of a signed upload URL, so the size is checked after the upload.
        if has_own_sidecar(task.step.blob_name):
            await task.blobs.delete_version(DOCUMENTS, task.step.blob_name, etag=properties.etag)
        task.used = task.used.plus(Usage(size_bytes=size_bytes))
        raise PayloadTooLargeError(
            f"The file has {size_bytes:,} bytes, but the limit is {max_bytes:,}.", "Split the file."
        )
    pools = parsers(task.services.settings.host.instance_memory_mb)
    pool = pools.texts if is_small(state.filename, size_bytes) else pools.files
    suffix = PurePosixPath(state.filename).suffix.lower()
    services = (task.services.parser_services.layout, task.services.parser_services.pages)
    is_sent = any(service is not None and suffix in service.suffixes for service in services)
    # Wait for a turn before the download, so that no waiting activity keeps a copy of its file. A file for a
    # parser service reserves a worker only after the service has answered; otherwise, the worker would be
    # idle for minutes.
    whose = sender_of(task.step.blob_name)
    async with (pools.sent if is_sent else pool).turn(whose) as run:
        with TemporaryDirectory(prefix="groundwork-") as folder:
            perform = partial(pool.run, whose=whose) if is_sent else run
            return await _parse(task, Path(folder), perform, find_parsed)


async def _parse(
    task: IngestTask, folder: Path, run: RunJob, find_parsed: FindParsed | None
) -> ParsedFile | None:
    source, settings = folder / "document", task.services.settings
    try:
        downloaded = await task.blobs.download(DOCUMENTS, task.step.blob_name, source)
    except ConflictError:
        raise DependencyError(
            "The file was replaced while it was being read.", "The ingestion is retried with the new file."
        ) from None
    content_hash, magic_bytes = await asyncio.to_thread(_inspect, source)
    task.version_key = version_key(content_hash, (await task.current_state()).hints_etag, settings)
    state = await task.update(partial(_start_attempt, version_key=task.version_key, etag=downloaded.etag))
    if task.version_key == state.version_key and state.pipeline == pipeline(settings):
        return None
    _require_tries_left(state)
    if find_parsed is not None and (parsed := await find_parsed()) is not None:
        return parsed
    check_content(state.filename, magic_bytes)
    job = await _job(task, state, folder)
    began = time.monotonic()
    try:
        async with task.count_parse():
            parsed = await _FileReader(task, job, run).read()
    finally:
        spent = Usage(size_bytes=downloaded.size_bytes, parser_seconds=time.monotonic() - began)
        task.used = task.used.plus(spent)
    await page_files.put_reading(task.blobs, task.folder, folder)
    if job.tables is not None:
        await put_tables(task.blobs, task.folder, job.tables)
    await figure_store.put_new(task.blobs, task.folder, parsed.figures, folder, earlier=state.folder)
    return parsed


async def _job(task: IngestTask, state: DocumentState, folder: Path) -> ParseJob:
    """Return the job for the parser process, which writes its results to the given folder."""
    settings = task.services.settings
    return ParseJob(
        source=folder / "document",
        target=folder / "parsed.json",
        filename=state.filename,
        max_tokens=settings.ingestion.max_block_tokens,
        max_blocks=settings.ingestion.max_document_blocks,
        tokenizer_path=settings.models.embedding_tokenizer_path,
        figures=folder,
        reading=folder,
        tables=folder if hints_of(state.filename) else None,
        hints=await _hints(task) if state.hints_etag else "",
        max_figures=settings.ingestion.max_figures,
        recognition_budget_s=settings.ingestion.ocr_timeout_s,
        languages=_path(settings.ingestion.ocr_language_folder),
    )


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None


async def _hints(task: IngestTask) -> str:
    """Return the owner's table hints, or "" if they were deleted. Oversized hints are replaced with a text
    that the parser rejects.
    """
    name = task.step.blob_name + HINTS_SUFFIX
    properties = await task.blobs.properties(DOCUMENTS, name)
    if properties is None or properties.size_bytes > MAX_BYTES:
        # The parser rejects a text of this length with a suitable message.
        return "" if properties is None else "x" * (MAX_BYTES + 1)
    try:
        return (await task.blobs.read(DOCUMENTS, name)).decode("utf-8-sig", "replace")
    except NotFoundError:
        return ""


def _require_tries_left(state: DocumentState) -> None:
    if state.begun_parses > MAX_TRIES:
        raise BadDocumentError(
            "The app crashed each time it read this file.", "Export the file again, or split it."
        )
    if state.failed_tries >= MAX_TRIES:
        raise BadDocumentError(
            state.tried_reason or "The file could not be ingested.",
            "The same file failed three times. Change the file, or request another ingestion.",
            failure=state.tried_failure or "damaged",
        )


def _start_attempt(state: DocumentState, version_key: str, etag: str) -> DocumentState:
    """Return the state to store before parsing, with the new version key and this attempt counted. For new
    bytes, the failure counters start at zero.
    """
    content_hash = version_key.partition("-")[0]
    attempts = state.begun_parses + 1 if content_hash == state.tried_hash else 1
    read: dict[str, object] = {"wanted_etag": etag, "tried_hash": content_hash, "begun_parses": attempts}
    if content_hash != state.tried_hash:
        read |= {"failed_tries": 0, "tried_reason": None, "tried_failure": None}
        if content_hash == state.content_hash and state.tried_reason is None:
            # An interrupted ingestion of other bytes may have changed rows that belong to this version too,
            # so write them again.
            read |= {"pipeline": "", "copied_hash": ""}
    return with_status(with_number(state.model_copy(update=read), version_key), "parsing")


def _inspect(path: Path) -> tuple[str, bytes]:
    """Return the SHA-256 digest of a file in hexadecimal, and the first bytes of the file."""
    with path.open("rb") as file:
        content_hash = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        return content_hash, file.read(MAGIC_BYTES)


@dataclass(frozen=True)
class _FileReader:
    """Reader for one file, which uses the worker process and, if configured, a parser service."""

    task: IngestTask
    job: ParseJob
    run: RunJob

    async def read(self) -> ParsedFile:
        """Return the chunks and figures of the file.

        Raises:
            BadDocumentError: the file can't be read.
            DependencyError: the parser service failed temporarily.
        """
        services, suffix = self.task.services.parser_services, PurePosixPath(self.job.filename).suffix.lower()
        if services.layout is not None and suffix in services.layout.suffixes:
            ask = partial(services.layout.read_layout, self.job.source, self.job.filename, self._limits)
            layout = await self._ask_once("layout.json", Layout, ask, services.layout.name)
            if isinstance(layout, str):
                return await self._run_parser(f"{layout} It was read by the built-in parser.")
            return await self._run_parser(layout=layout)
        if services.pages is not None and suffix in services.pages.suffixes:
            return await self._parse_with_page_service(services.pages)
        return await self._run_parser()

    async def _run_parser(self, *notes: str, **changes: Layout | dict[int, str]) -> ParsedFile:
        """Run the worker process and return its result. `changes` replace fields of the job, and `notes` are
        added to the warnings of the result.
        """
        settings = self.task.services.settings.ingestion
        size_bytes = self.job.source.stat().st_size
        timeout_s = min(settings.parse_timeout_s, _LEAST_TIMEOUT_S + size_bytes * _TIMEOUT_S_PER_BYTE)
        timeout_s += settings.ocr_timeout_s if is_installed(self.job.languages) else 0.0
        await self.run(self.job.model_copy(update=changes), timeout_s)
        parsed = ParsedFile.model_validate_json(await asyncio.to_thread(self.job.target.read_bytes))
        return parsed.model_copy(update={"warnings": (*notes, *parsed.warnings)}) if notes else parsed

    async def _parse_with_page_service(self, service: PageReader) -> ParsedFile:
        """Parse the file, send the pages without text to the service, and parse the file again with the
        recognised text.
        """
        first = await self._run_parser(page_texts={})
        unread = first.unread_pages[:_MAX_READ_PAGES]
        if not unread:
            return first
        ask = partial(service.read_pages, self.job.source, unread, self._limits)
        pages = await self._ask_once("pages.json", PageTexts, ask, service.name)
        if isinstance(pages, PageTexts):
            return await self._run_parser(page_texts=pages.texts)
        if not is_installed(self.job.languages):
            return first.model_copy(update={"warnings": (pages, *first.warnings)})
        return await self._run_parser(f"{pages} Pages without text were read by Tesseract.")

    @property
    def _limits(self) -> CallLimits:
        timeout_s = self.task.services.settings.ingestion.parser_service_timeout_s
        return CallLimits(timeout_s=timeout_s, max_retries=_MAX_RETRIES)

    async def _ask_once(
        self, name: str, kind: type[Answer], ask: Callable[[], Awaitable[Answer]], service: str
    ) -> Answer | str:
        """Return the parser service's answer, or an error message if it failed permanently. Answers are
        stored, so that a retried step doesn't pay for them again.

        Raises:
            GroundworkError: the failure is temporary, and this isn't the last attempt.
        """
        files = StepFiles(self.task.blobs, self.task.folder)
        try:
            return await files.get(name, kind)
        except NotFoundError:
            pass
        try:
            answer = await ask()
        except GroundworkError as failed:
            may_pass = failed.retryable and not isinstance(failed, CallTimeoutError)
            if may_pass and not self.task.step.last_attempt:
                raise
            get_logger().warning("parser_service.failed", service=service, error_type=failed.code)
            return failed.detail
        await files.put(name, answer)
        return answer
