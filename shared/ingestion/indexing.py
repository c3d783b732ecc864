"""Writes a document into both indexes: plan what changes, write new blocks, then the document, then clear up.

The order is the promise: new blocks, then the document's row, then the deletion of blocks that vanished. A
document in the list is complete, and one that is being replaced never disappears from search.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from shared.documents import figure_store, index_rows, page_files
from shared.documents.models import Block, Caption, DescribedFile, Original
from shared.documents.state import DocumentState
from shared.ingestion import copies, rights
from shared.ingestion.acceptance import pipeline
from shared.ingestion.chunking import embedded_text
from shared.ingestion.claims import CHANGES, METADATA, ORIGINAL, PARSED, IngestTask, now, with_model_calls
from shared.ingestion.metadata import keep_extracted, remove_extracted, with_corrections
from shared.ingestion.models import BlockChanges, ParsedFile, Planned, Written
from shared.ingestion.record_manager import make_blocks, plan_changes
from shared.platform.language_models.models import CallLimits
from shared.retrieval.models import DocumentRecord

METADATA_BY_RULE = "Title and summary were made by rule: the model could not describe the document."
CAPTIONS_BY_RULE = "Some figures were described by rule: the model could not describe them."
EMBED_BATCH = 64  # texts a request; more only make a failed one dearer (unmeasured)
_EMBED_LIMITS = CallLimits(timeout_s=120, max_retries=2)


@dataclass(frozen=True)
class _Version:
    """One version of a document, as the work container holds it; blocks of chunks, then of figures."""

    parsed: ParsedFile
    described: DescribedFile
    captions: dict[str, Caption]
    blocks: list[Block]


async def plan(task: IngestTask) -> Planned:
    """Compare chunks and figures with the index; the verdict goes to the work container."""
    await task.look()
    parsed = await task.get(PARSED, ParsedFile)
    model = task.services.settings.models.embedding
    blocks = make_blocks(task.doc_id, parsed, {}, model)  # figures as the model will caption them
    changes = plan_changes(blocks, await index_rows.block_hashes(task.services.content_index, task.doc_id))
    await task.put(CHANGES, changes)
    return Planned(
        new_count=len(changes.new),
        new_figure_count=sum(position >= len(parsed.chunks) for position in changes.new),
        moved_count=len(changes.moved),
        kept_count=len(changes.kept),
        gone_count=len(changes.gone),
    )


async def write_blocks(task: IngestTask) -> Written:
    """Embed and write the new blocks from `step.first` up to `step.end`; twice does no harm."""
    await task.enter("embedding")
    version = await _load(task)
    changes = await task.get(CHANGES, BlockChanges)
    original = (await task.get(ORIGINAL, Original)).doc_id
    figures, first_figure = version.parsed.figures, len(version.parsed.chunks)
    positions = changes.new[task.step.first : task.step.end or None]
    for start in range(0, len(positions), EMBED_BATCH):
        batch = positions[start : start + EMBED_BATCH]
        vectors, calls = await _vectors(task, version, batch, original)
        # Embedding may take minutes: an instance that lost the document meanwhile must not write into it any
        # more, and rights that changed meanwhile hold in what is written from now on.
        state = await task.update(partial(with_model_calls, status="embedding", calls=calls))
        # A figure's picture comes before its block: what is found can be shown.
        for position in batch:
            if position >= first_figure:
                await figure_store.publish(task.blobs, task.doc_id, figures[position - first_figure].key)
        record = _record(task, state, version)
        rows = [
            index_rows.block_row(version.blocks[position], record, vector)
            for position, vector in zip(batch, vectors, strict=True)
        ]
        await rights.upload_blocks(
            rows, task.doc_id, state.wanted_rights, task.services.content_index, task.documents
        )
    return Written(block_count=len(positions))


async def finish(task: IngestTask) -> Written:
    """Make the new version the one that is found, and clear away what was only the old one's."""
    services, doc_id = task.services, task.doc_id
    state = await task.enter("indexing")
    if state.content_hash == task.content_hash and not await task.exists(PARSED):
        return Written(block_count=state.block_count)  # an earlier attempt did it all
    state = await copies.take_corrections(task, state)
    is_extracted_kept = not task.stores_files
    version = await _load(task)
    record = _record(task, state, version)
    changes = await task.get(CHANGES, BlockChanges)
    await _merge_rows(task, version, state, record, changes)
    # Metadata are written last: a document visible in the list must be searchable in full.
    naming = index_rows.naming_fields(record, version.parsed.chunks)
    await services.documents_index.upload([{**record.model_dump(mode="json"), **naming}])
    indexed = partial(
        _indexed, version=version, written=state, record=record, current_pipeline=pipeline(services.settings)
    )
    indexed_state = await task.update(indexed)
    if indexed_state.wanted_rights != indexed_state.rights:
        await rights.apply_rights(task, services.content_index, services.documents_index)
    # Rows that are not this version's: those of the plan, and what an instance that died wrote after it.
    found = await index_rows.block_ids(services.content_index, doc_id)
    wanted = {block.block_id for block in version.blocks}
    await services.content_index.delete(sorted({*changes.gone, *found} - wanted))
    await figure_store.keep_only(task.blobs, doc_id, {figure.key for figure in version.parsed.figures})
    if not version.described.by_model:
        await remove_extracted(task.blobs, doc_id)
    elif not is_extracted_kept:
        await keep_extracted(task, state, version.described)
    if record.version > 1:
        await page_files.keep_only(task.blobs, doc_id, task.content_hash)
    await task.remove_files()
    return Written(block_count=len(version.blocks))


async def _load(task: IngestTask) -> _Version:
    parsed = await task.get(PARSED, ParsedFile)
    described = await task.get(METADATA, DescribedFile)
    model = task.services.settings.models.embedding
    captions = await figure_store.captions(task.blobs, task.doc_id) if parsed.figures else {}
    return _Version(parsed, described, captions, make_blocks(task.doc_id, parsed, captions, model))


async def _vectors(
    task: IngestTask, version: _Version, batch: Sequence[int], original: str | None
) -> tuple[list[Sequence[float]], int]:
    """The vectors of these blocks in order, and how often the model was asked: only for unknown ones."""
    known: dict[str, Sequence[float]] = {}
    if original is not None:
        blocks = [version.blocks[position] for position in batch]
        known = await copies.vectors_of(original, blocks, task.services.content_index)
    unknown = [position for position in batch if version.blocks[position].block_id not in known]
    texts = []
    for position in unknown:
        block = version.blocks[position]
        if block.block_type == "image":
            texts.append("\n".join(filter(None, (block.heading_path, block.image_caption))))
        else:
            texts.append(embedded_text(version.parsed.chunks[position]))
    if texts:
        made = await task.services.embedder.embed(texts, _EMBED_LIMITS)
        for position, vector in zip(unknown, made, strict=True):
            known[version.blocks[position].block_id] = vector
    return [known[version.blocks[position].block_id] for position in batch], int(bool(texts))


def _record(task: IngestTask, state: DocumentState, version: _Version) -> DocumentRecord:
    """The document's record, with the rights that are wanted and the corrections of people."""
    parsed, metadata, wanted = version.parsed, version.described, state.wanted_rights
    is_new_content = task.content_hash != state.content_hash
    extracted = DocumentRecord(
        doc_id=state.doc_id,
        project_id=wanted.project_id,
        filename=state.filename,
        title=metadata.title,
        document_type=metadata.document_type,
        upload_date=now(),
        author=metadata.author or parsed.author,
        department=metadata.department,
        language=metadata.language,
        tags=metadata.tags,
        page_count=parsed.page_count,
        summary_brief=metadata.summary_brief,
        summary_standard=metadata.summary_standard,
        source_url=wanted.source_url,
        content_hash=task.content_hash,
        version=state.version + 1 if is_new_content else max(state.version, 1),
        status="ready",
        owner_id=wanted.owner_id,
        access_control_list=wanted.acl,
    )
    return with_corrections(extracted, state.corrections)


async def _merge_rows(
    task: IngestTask,
    version: _Version,
    state: DocumentState,
    record: DocumentRecord,
    changes: BlockChanges,
) -> None:
    """Bring rows that stay up to date: moved ones always, kept ones when the document's fields changed."""
    positions: Sequence[int] = changes.moved
    if state.rows_outdated:
        # Blocks that were written before the change have what was wanted then.
        positions = range(len(version.blocks))
    elif index_rows.copied_hash(record) != state.copied_hash:
        positions = changes.moved + changes.kept
    rows = [index_rows.moved_row(version.blocks[position], record) for position in positions]
    await task.services.content_index.merge(rows)


def _indexed(
    state: DocumentState,
    version: _Version,
    written: DocumentState,
    record: DocumentRecord,
    current_pipeline: str,
) -> DocumentState:
    """The state once the version is in the indexes, with the rights that were `written`."""
    # The warning of its rights stays until others hold; all others are this version's.
    warnings = [warning for warning in state.warnings if warning == state.rights.warning]
    if not version.described.by_model and version.parsed.opening:
        warnings.append(METADATA_BY_RULE)
    shown = [version.captions.get(figure.key) for figure in version.parsed.figures]
    if any(caption is not None and not caption.by_model for caption in shown):
        warnings.append(CAPTIONS_BY_RULE)
    indexed = {
        "blob_etag": state.wanted_etag,
        "content_hash": record.content_hash,
        "pipeline": current_pipeline,
        "copied_hash": index_rows.copied_hash(record),
        "version": record.version,
        "page_count": record.page_count,
        "block_count": len(version.blocks),
        "warnings": tuple(dict.fromkeys((*warnings, *version.parsed.warnings))),
    }
    return rights.with_rights(state.model_copy(update=indexed), written.wanted_rights)
