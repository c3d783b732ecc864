"""The step that downloads a file and has it parsed in the worker process; chunks go to the work container."""

import asyncio
import hashlib
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from shared.errors import ConflictError, DependencyError, PayloadTooLargeError
from shared.ingestion import figure_store, page_files, work_files
from shared.ingestion.accepting import pipeline
from shared.ingestion.claims import enter, update
from shared.ingestion.parse_file import ParseJob
from shared.ingestion.parser_process import ParserPool, Turn
from shared.ingestion.quarantine import refuse_what_always_failed, with_bytes
from shared.ingestion.reading import place_to_read, read_file
from shared.ingestion.registry import format_of
from shared.models.blobs import BlobProperties
from shared.models.ingestion import IngestStep, Parsed
from shared.models.names import DOCUMENTS
from shared.services import Services


async def parse(step: IngestStep, services: Services) -> Parsed:
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
        _check_size(properties, services.settings.max_document_bytes)
    size_bytes = 0 if properties is None else properties.size_bytes
    # Before the file is fetched: an activity that waits for its turn holds no copy, and fetches none in vain.
    async with place_to_read(state.filename, size_bytes, services) as place:
        return await _parse(step, services, place)


async def _parse(step: IngestStep, services: Services, place: ParserPool | Turn) -> Parsed:
    with TemporaryDirectory(prefix="groundwork-") as folder:
        source = Path(folder) / "document"
        downloaded = await _download(services, step, source)
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


def _job(services: Services, source: Path, filename: str) -> ParseJob:
    """What the worker is asked; its results go beside the source."""
    settings = services.settings
    figures = source.parent / "figures"
    figures.mkdir()
    return ParseJob(
        source=source,
        target=source.parent / "parsed.json",
        filename=filename,
        max_tokens=settings.max_block_tokens,
        tokenizer_path=settings.embedding_tokenizer_path,
        figures=figures,
        reading=source.parent / "reading.json",
        max_figures=settings.max_figures,
        recognition_budget_s=settings.recognition_seconds,
    )


async def _download(services: Services, step: IngestStep, target: Path) -> BlobProperties:
    try:
        return await services.blobs.download(DOCUMENTS, step.blob_name, target)
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
