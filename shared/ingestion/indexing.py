"""Publication of a document version: its manifest, blocks and index record are written, then stale blocks are
deleted.

The order guarantees that a listed document is complete, that a document being replaced stays searchable, and
that every block is in a manifest before it is written. Only blocks that are in a manifest and don't belong to
the current version are deleted.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from shared.access.daily_use import Usage
from shared.documents import figure_store, index_rows, versions
from shared.documents.corrections import stored_date, with_corrections
from shared.documents.figure_store import CAPTION_VERSION
from shared.documents.ids import block_id, figure_block_id
from shared.documents.models import (
    Block,
    Caption,
    Chunk,
    Corrections,
    DescribedFile,
    Figure,
    Manifest,
    Original,
)
from shared.documents.state import DocumentState, Rights
from shared.ingestion import copies, rights
from shared.ingestion.acceptance import number_of, pipeline
from shared.ingestion.chunking import embedded_text, figure_text
from shared.ingestion.fair_turns import EmbeddingPace, FairTurns
from shared.ingestion.models import BlockChanges, ParsedFile
from shared.ingestion.step_files import StepFiles
from shared.ingestion.task import FencedError, IngestTask, now, with_status
from shared.platform.hashing import digest
from shared.platform.language_models.models import CallLimits
from shared.retrieval.models import DocumentRecord

METADATA_BY_RULE = "The model could not describe the document; title and summary come from simple rules."
CAPTIONS_BY_RULE = "The model could not describe some figures; their captions come from the text around them."
# Texts per embedding request. Larger requests make failures more expensive (unmeasured).
EMBED_BATCH = 64
# Each service has two lanes, so that small requests don't wait for large ones. Each lane allows two
# concurrent requests: one is answered while the next one is sent.
_EMBEDDING, _WRITING = (FairTurns(2), FairTurns(2)), (FairTurns(2), FairTurns(2))
# Requests with at most this many blocks use the lane for small requests.
_SHORT = 8
_PACE = EmbeddingPace(largest=EMBED_BATCH)
# Maximum number of block ids in one search filter.
_MOST_ASKED = 500


@dataclass(frozen=True)
class Version:
    """One version of a document. `blocks` contains the text blocks, then the figure blocks."""

    parsed: ParsedFile
    described: DescribedFile
    captions: dict[str, Caption]
    blocks: list[Block]


async def make_version(task: IngestTask, parsed: ParsedFile, described: DescribedFile) -> Version:
    """Return the version being ingested, assembled from its parsed file, its metadata and the captions stored
    so far.
    """
    captions = await figure_store.captions(task.blobs, task.folder) if parsed.figures else {}
    model = task.services.settings.models.embedding
    return Version(parsed, described, captions, make_blocks(task.doc_id, parsed, captions, model))


async def plan(
    task: IngestTask, parsed: ParsedFile, described: DescribedFile, indexed: Mapping[str, str] | None
) -> BlockChanges:
    """Compare the parsed chunks and figures with the indexed blocks, and write the version's manifest.

    Args:
        indexed: content hash by block id, for every index row of the document. None = no block was ever
            written.
    """
    model = task.services.settings.models.embedding
    # Assume for now that the model will write every caption, because the id of a figure's block depends on
    # whether a model or a rule wrote it.
    blocks = make_blocks(task.doc_id, parsed, {}, model)
    changes = plan_changes(blocks, indexed or {})
    by_rule = {figure.key: Caption(text="", by_model=False) for figure in parsed.figures}
    owned = {block.block_id for block in blocks}
    others = {block.block_id for block in make_blocks(task.doc_id, parsed, by_rule, model)} | {*changes.gone}
    earlier = None if indexed is None else await versions.read_manifest(task.blobs, task.folder)
    if earlier is not None:
        others |= {*earlier.other_ids, *earlier.block_ids}
        if task.version_key == (await task.current_state()).version_key:
            # Also list the blocks of the published version, which stay searchable until this ingestion
            # succeeds.
            owned |= {*earlier.block_ids}
    await versions.write_manifest(task.blobs, task.folder, _manifest(owned, others, described))
    return changes


def _manifest(owned: Set[str], others: Set[str], described: DescribedFile) -> Manifest:
    return Manifest(
        block_ids=tuple(sorted(owned)), other_ids=tuple(sorted(others - owned)), described=described
    )


async def write_blocks(
    task: IngestTask, version: Version, positions: Sequence[int], original: Original
) -> None:
    """Embed the blocks at these positions, and write them to the index. Idempotent."""
    # Make sure that the document's row is loaded, because `_turn` needs the owner in it.
    await task.current_state()
    while positions:
        size = min(EMBED_BATCH, _PACE.texts)
        batch, positions = positions[:size], positions[size:]
        vectors, calls = await _vectors(task, version, batch, original.doc_id)
        task.used = task.used.plus(Usage(blocks=len(batch)))
        async with _turn(_WRITING, task, len(batch)):
            # Embedding may take minutes, so check the fence: `enter` stops this step if another execution has
            # taken over. Otherwise it reads the permissions for the new rows.
            task.model_calls["embedding"] += calls
            state = await task.enter("embedding")
            record = _record(task, state, version)
            rows = [
                index_rows.block_row(version.blocks[position], record, vector)
                for position, vector in zip(batch, vectors, strict=True)
            ]
            await rights.upload_blocks(task, rows, state.wanted_rights)


def _turn(
    lanes: tuple[FairTurns, FairTurns], task: IngestTask, blocks: int
) -> AbstractAsyncContextManager[None]:
    """Return a context manager that waits for the document owner's turn to send a request for `blocks`
    blocks. Small requests have a separate lane.
    """
    owner = task.known.wanted_rights.owner_id if task.known else None
    return lanes[blocks > _SHORT].turn(owner or "")


async def unwritten_blocks(task: IngestTask, version: Version, positions: Sequence[int]) -> Sequence[int]:
    """Return the positions of the blocks that aren't in the index yet, so that a retried step doesn't embed
    blocks twice.
    """
    positions_by_id = {version.blocks[position].block_id: position for position in positions}
    ids = list(positions_by_id)
    hashes: dict[str, str] = {}
    for start in range(0, len(ids), _MOST_ASKED):
        some = ids[start : start + _MOST_ASKED]
        hashes |= await index_rows.hashes_of(task.services.content_index, some)
    return [
        position
        for block_id, position in positions_by_id.items()
        if hashes.get(block_id) != version.blocks[position].content_hash
    ]


async def finish(task: IngestTask, version: Version, changes: BlockChanges, original: Original) -> None:
    """Publish the version. If the file was only renamed, adopt the corrections of the original. Call
    `clean_up` afterwards to delete older versions.
    """
    services = task.services
    await copies.adopt_corrections(task, original)
    state = await task.current_state()
    record = _with_upload_date(_record(task, state, version), state)
    if version.parsed.figures or task.version_key == state.version_key:
        await _settle_manifest(task, version)
    positions: Sequence[int] = changes.moved
    if state.rows_outdated or state.shown_corrections != state.corrections:
        # The permissions or metadata changed after some blocks were written, so rewrite their copies in all
        # blocks.
        positions = range(len(version.blocks))
    elif index_rows.copied_hash(record) != state.copied_hash:
        positions = changes.moved + changes.kept
    rows = [index_rows.moved_row(version.blocks[position], record) for position in positions]
    await services.content_index.merge(rows)
    # Write the record last, because every listed document must be completely searchable.
    passages = [chunk for chunk in version.parsed.chunks if chunk.kind != "card"]
    naming = index_rows.naming_fields(record, passages)
    await services.documents_index.upload([{**record.model_dump(mode="json"), **naming}])
    new_rights = state.wanted_rights
    indexed = partial(
        _indexed_state,
        task=task,
        version=version,
        record=record,
        written=new_rights,
        corrections=state.corrections,
    )
    state = await _record_indexed(task, indexed)
    if state.wanted_rights != state.rights:
        await rights.apply_rights(task)


async def _settle_manifest(task: IngestTask, version: Version) -> None:
    """Rewrite the manifest with the final block ids, which depend on whether the model or a rule wrote each
    caption.
    """
    manifest = await versions.read_manifest(task.blobs, task.folder)
    owned = {block.block_id for block in version.blocks}
    if manifest is not None and owned != {*manifest.block_ids}:
        others = {*manifest.other_ids, *manifest.block_ids}
        await versions.write_manifest(task.blobs, task.folder, _manifest(owned, others, version.described))


async def clean_up(task: IngestTask) -> None:
    """Delete the blocks and folders of all other versions, and the stored results of this ingestion's steps.

    Idempotent: after a crash, the remaining manifests list the blocks that still have to be deleted.

    Raises:
        FencedError: another execution took over. The next ingestion deletes the rest.
    """
    state = await task.current_state()
    current = await versions.read_manifest(task.blobs, state.folder)
    if current is None:
        return
    folders = await versions.stored_folders(task.blobs, task.doc_id)
    listed = await versions.listed_blocks(task.blobs, folders - {state.folder})
    stale = (listed | {*current.other_ids}) - {*current.block_ids}
    # Check the fence before the deletion: another instance may have published a version that contains these
    # blocks.
    await task.reload()
    await task.services.content_index.delete(sorted(stale))
    if current.other_ids:
        settled = current.model_copy(update={"other_ids": ()})
        await versions.write_manifest(task.blobs, state.folder, settled)
    for folder in folders - {state.folder}:
        await task.reload()
        await versions.remove_folder(task.blobs, folder)
    await StepFiles(task.blobs, state.folder).remove()


def _with_upload_date(record: DocumentRecord, state: DocumentState) -> DocumentRecord:
    """Return the record with the upload date of the indexed version. If the bytes of the file have changed,
    return the record unchanged.
    """
    if state.content_hash != record.content_hash:
        return record
    return record.model_copy(update={"upload_date": state.upload_date or record.upload_date})


async def _record_indexed(
    task: IngestTask, indexed: Callable[[DocumentState], DocumentState]
) -> DocumentState:
    """Update the document's row after its version was indexed. If the document was deleted meanwhile, delete
    its index record again and raise `FencedError`.
    """
    try:
        return await task.update(indexed)
    except FencedError:
        state = await task.documents.get(task.doc_id)
        if state is None or state.is_deleted:
            await task.services.documents_index.delete([task.doc_id])
        raise


def make_blocks(
    doc_id: str, parsed: ParsedFile, captions: Mapping[str, Caption], embedding_model: str
) -> list[Block]:
    """Return the document's blocks with ids and hashes: text blocks in document order, then figure blocks.

    The id of a figure block depends on who wrote its caption; a missing caption counts as the model's. A
    figure captioned by rule has another id, so the next version calls the model for it again.

    Args:
        captions: known captions by picture key.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    blocks = []
    pieces: list[Chunk | Figure] = [*parsed.chunks, *parsed.figures]
    # Number all chunks and figures in reading order from 0. Pieces of the same element keep their order.
    by_place = sorted(range(len(pieces)), key=lambda position: pieces[position].place)
    ordinals = {position: ordinal for ordinal, position in enumerate(by_place)}
    for position, chunk in enumerate(parsed.chunks):
        texts = (embedded_text(chunk), *((chunk.text,) if chunk.kind == "table" else ()))
        ordinal = ordinals[position]
        place = (str(chunk.page_number), str(chunk.start_seconds), chunk.heading_path, chunk.cues or "")
        blocks.append(
            Block(
                block_id=block_id(doc_id, texts, embedding_model, seen[texts]),
                doc_id=doc_id,
                block_type="card" if chunk.kind == "card" else "text",
                page_number=chunk.page_number,
                ordinal=ordinal,
                start_seconds=chunk.start_seconds,
                cues=chunk.cues,
                heading_path=chunk.heading_path,
                content=chunk.text,
                content_hash=digest(str(ordinal), *place, chunk.text)[:32],
            )
        )
        seen[texts] += 1
    blocks += [
        _figure_block(doc_id, figure, ordinals[position], captions.get(figure.key), embedding_model)
        for position, figure in enumerate(parsed.figures, start=len(parsed.chunks))
    ]
    return blocks


def plan_changes(blocks: Sequence[Block], indexed: Mapping[str, str]) -> BlockChanges:
    """Compare a document's blocks with its index rows, and classify them as new, moved, kept or gone.

    Args:
        indexed: content hash by block id, for every index row of the document.
    """
    new: list[int] = []
    moved: list[int] = []
    unchanged: list[int] = []
    for position, block in enumerate(blocks):
        indexed_hash = indexed.get(block.block_id)
        target = new if indexed_hash is None else unchanged if indexed_hash == block.content_hash else moved
        target.append(position)
    deleted = indexed.keys() - {block.block_id for block in blocks}
    return BlockChanges(
        new=tuple(new), moved=tuple(moved), kept=tuple(unchanged), gone=tuple(sorted(deleted))
    )


def _figure_block(
    doc_id: str, figure: Figure, ordinal: int, caption: Caption | None, embedding_model: str
) -> Block:
    captioned_by = CAPTION_VERSION if caption is None or caption.by_model else "rule"
    return Block(
        block_id=figure_block_id(doc_id, figure.key, embedding_model, captioned_by),
        doc_id=doc_id,
        block_type="image",
        page_number=figure.page_number,
        ordinal=ordinal,
        heading_path=figure.heading_path,
        image_url=f"figures/{doc_id}/{figure.key}.png",
        image_caption=figure_text(figure, caption.text) if caption is not None else None,
        content_hash=digest(str(ordinal), str(figure.page_number), figure.heading_path, figure.key)[:32],
    )


async def _vectors(
    task: IngestTask, version: Version, batch: Sequence[int], original: str | None
) -> tuple[list[Sequence[float]], int]:
    """Return the vectors of a batch of blocks in order, and the number of model calls (0 or 1). Vectors of
    blocks that the original document also contains are copied from there.
    """
    vectors: dict[str, Sequence[float]] = {}
    if original is not None:
        blocks = [version.blocks[position] for position in batch]
        vectors = await copies.vectors_of(original, blocks, task.services.content_index)
    unknown = [position for position in batch if version.blocks[position].block_id not in vectors]
    texts = []
    for position in unknown:
        block = version.blocks[position]
        if block.block_type == "image":
            texts.append("\n".join(filter(None, (block.heading_path, block.image_caption))))
        else:
            texts.append(embedded_text(version.parsed.chunks[position]))
    if texts:
        limits = CallLimits(timeout_s=task.services.settings.models.embedding_timeout_s, max_retries=2)
        async with _turn(_EMBEDDING, task, len(texts)), _PACE.measure(len(texts)):
            embeddings = await task.services.embedder.embed(texts, limits)
        for position, vector in zip(unknown, embeddings, strict=True):
            vectors[version.blocks[position].block_id] = vector
    return [vectors[version.blocks[position].block_id] for position in batch], int(bool(texts))


def _record(task: IngestTask, state: DocumentState, version: Version) -> DocumentRecord:
    """Return the document's row for the document index, with its pending permissions and the users'
    corrections.
    """
    parsed, metadata, pending = version.parsed, version.described, state.wanted_rights
    extracted = DocumentRecord(
        doc_id=state.doc_id,
        project_id=pending.project_id,
        filename=state.filename,
        file_type=PurePosixPath(state.filename).suffix.lower().removeprefix(".") or None,
        title=metadata.title,
        document_type=metadata.document_type,
        upload_date=now(),
        # For an e-mail, prefer the date in its header: a model may take a date in the subject for it.
        document_date=stored_date(parsed.date or metadata.date),
        author=metadata.author or parsed.author,
        department=metadata.department,
        language=metadata.language,
        tags=metadata.tags,
        page_count=parsed.page_count,
        summary_brief=metadata.summary_brief,
        summary_standard=metadata.summary_standard,
        source_url=pending.source_url,
        content_hash=task.content_hash,
        version=number_of(state, task.version_key),
        status="ready",
        owner_id=pending.owner_id,
        published_by=pending.published_by,
        access_control_list=pending.acl,
        thread_id=state.thread_id or None,
    )
    return with_corrections(extracted, state.corrections)


def _warnings(version: Version) -> tuple[str, ...]:
    """Return user-facing warnings about this version, as English sentences."""
    warnings = []
    if not version.described.by_model and version.parsed.opening:
        warnings.append(METADATA_BY_RULE)
    captions = [version.captions.get(figure.key) for figure in version.parsed.figures]
    if any(caption is not None and not caption.by_model for caption in captions):
        warnings.append(CAPTIONS_BY_RULE)
    return tuple(dict.fromkeys((*warnings, *version.parsed.warnings)))


def _indexed_state(
    state: DocumentState,
    *,
    task: IngestTask,
    version: Version,
    record: DocumentRecord,
    written: Rights,
    corrections: Corrections,
) -> DocumentState:
    """Return the document's state after indexing this version with the given permissions and corrections."""
    # Warnings about permissions apply until the permissions change. All others are replaced with the warnings
    # of this version.
    warnings = [warning for warning in state.warnings if warning == state.rights.warning]
    indexed = {
        "blob_etag": state.wanted_etag,
        "content_hash": record.content_hash,
        "pipeline": pipeline(task.services.settings),
        "version_key": task.version_key,
        "copied_hash": index_rows.copied_hash(record),
        "shown_corrections": corrections,
        "version": record.version,
        "upload_date": record.upload_date,
        "page_count": record.page_count,
        "unreadable_pages": version.parsed.unreadable_pages,
        "has_text": bool(version.parsed.chunks),
        "block_count": len(version.blocks),
        "warnings": tuple(dict.fromkeys((*warnings, *_warnings(version)))),
    }
    state = with_status(state.model_copy(update=indexed), "indexing")
    return rights.with_rights(state, written)
