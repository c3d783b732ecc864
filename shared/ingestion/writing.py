"""The steps that write: plan what changes, embed and write new blocks, then the document, then clear up.

The order is the promise: new blocks, then the document's row, then the deletion of blocks that vanished. A
document in the list is complete, and one that is being replaced never disappears from search.
"""

from dataclasses import dataclass
from functools import partial
from math import ceil

from shared.core.chunking import embedded_text
from shared.core.metadata_rules import with_corrections
from shared.core.record_manager import make_blocks, make_figure_blocks, plan_changes
from shared.ingestion import figure_store, index_rows, work_files
from shared.ingestion.accepting import pipeline
from shared.ingestion.claims import enter, now, update, with_model_calls
from shared.models.blocks import Block, Figure
from shared.models.documents import DocumentMetadata, DocumentRecord
from shared.models.ingestion import (
    BlockChanges,
    DocumentState,
    IngestStep,
    ParsedFile,
    Planned,
    RightsApplied,
    Written,
)
from shared.models.prompts import CallLimits
from shared.services import Services

EMBED_BATCH = 64  # texts a request; more only make a failed one dearer (unmeasured)
_EMBED_LIMITS = CallLimits(timeout_s=120, max_retries=2)


@dataclass(frozen=True)
class _Version:
    """One version of a document, as the work container holds it."""

    state: DocumentState
    parsed: ParsedFile
    blocks: list[Block]
    record: DocumentRecord

    def figure_at(self, position: int) -> Figure | None:
        """The figure whose block this is; None for text."""
        number = position - len(self.parsed.chunks)
        return self.parsed.figures[number] if number >= 0 else None


async def plan(step: IngestStep, services: Services) -> Planned:
    """Compare chunks and figures with the index; the verdict goes to the work container."""
    doc_id = (await update(services.documents, step, lambda current: current)).doc_id
    parsed = await work_files.get(services.blobs, step, work_files.PARSED, ParsedFile)
    blocks = await _blocks(doc_id, parsed, services, planned=True)
    changes = plan_changes(blocks, await index_rows.block_hashes(services.content_index, doc_id))
    await work_files.put(services.blobs, step, work_files.CHANGES, changes)
    return Planned(
        new_count=len(changes.new),
        new_figure_count=sum(position >= len(parsed.chunks) for position in changes.new),
        moved_count=len(changes.moved),
        kept_count=len(changes.kept),
        gone_count=len(changes.gone),
    )


async def write_blocks(step: IngestStep, services: Services) -> Written:
    """Embed and write the new chunks from `step.first` up to `step.end`; twice does no harm."""
    version = await _load(step, services, await enter(services.documents, step, "embedding"))
    changes = await work_files.get(services.blobs, step, work_files.CHANGES, BlockChanges)
    positions = changes.new[step.first : step.end]
    for start in range(0, len(positions), EMBED_BATCH):
        batch = positions[start : start + EMBED_BATCH]
        texts = [_embedded_text(version, position) for position in batch]
        vectors = await services.embedder.embed(texts, _EMBED_LIMITS)
        # Embedding may take minutes: whoever lost the document meanwhile must not write into it any more.
        await update(services.documents, step, lambda current: current)
        # A figure's picture comes before its block: what is found can be shown.
        for position in batch:
            if (figure := version.figure_at(position)) is not None:
                await figure_store.publish(services.blobs, version.state.doc_id, figure.key)
        await services.content_index.upload(
            [
                index_rows.block_row(version.blocks[position], version.record, vector)
                for position, vector in zip(batch, vectors, strict=True)
            ]
        )
    calls = ceil(len(positions) / EMBED_BATCH)
    await update(services.documents, step, partial(with_model_calls, status="embedding", calls=calls))
    return Written(block_count=len(positions))


async def finish(step: IngestStep, services: Services) -> Written:
    """Make the new version the one that is found, and clear away what was only the old one's."""
    state = await enter(services.documents, step, "indexing")
    if state.content_hash == step.content_hash and not await work_files.exists(
        services.blobs, step, work_files.PARSED
    ):
        return Written(block_count=state.block_count)  # an earlier attempt did it all
    version = await _load(step, services, state)
    changes = await work_files.get(services.blobs, step, work_files.CHANGES, BlockChanges)
    await _merge_rows(version, changes, services)
    # Metadata are written last: a document visible in the list must be searchable in full.
    await services.documents_index.upload([index_rows.document_row(version.record)])
    await update(services.documents, step, lambda current: _indexed(current, version, services))
    await services.content_index.delete(await _gone(version, changes, services))
    keys = {figure.key for figure in version.parsed.figures}
    await figure_store.keep_only(services.blobs, state.doc_id, keys)
    await work_files.remove_all(services.blobs, state.doc_id)
    return Written(block_count=len(version.blocks))


async def apply_rights(step: IngestStep, services: Services) -> RightsApplied:
    """Write the wanted rights into every row of the document; content and vectors stay as they are."""
    state = await update(services.documents, step, lambda current: current)
    block_count = await index_rows.merge_rights(services, state.doc_id, state.wanted_rights)
    await update(services.documents, step, _with_wanted_rights)
    return RightsApplied(block_count=block_count)


async def _load(step: IngestStep, services: Services, state: DocumentState) -> _Version:
    parsed = await work_files.get(services.blobs, step, work_files.PARSED, ParsedFile)
    metadata = await work_files.get(services.blobs, step, work_files.METADATA, DocumentMetadata)
    record = with_corrections(_record(state, step, parsed, metadata), state.corrections)
    blocks = await _blocks(state.doc_id, parsed, services, planned=False)
    return _Version(state, parsed, blocks, record)


async def _blocks(doc_id: str, parsed: ParsedFile, services: Services, *, planned: bool) -> list[Block]:
    """Every block of the document: chunks, then figures; when planned, as the model will caption them."""
    model = services.settings.embedding_model
    blocks = make_blocks(doc_id, parsed.chunks, model)
    if parsed.figures:
        captions = {} if planned else await figure_store.captions(services.blobs, doc_id)
        blocks += make_figure_blocks(doc_id, parsed.figures, captions, model)
    return blocks


def _embedded_text(version: _Version, position: int) -> str:
    if version.figure_at(position) is None:
        return embedded_text(version.parsed.chunks[position])
    block = version.blocks[position]
    return "\n".join(filter(None, (block.heading_path, block.image_caption)))


def _record(
    state: DocumentState, step: IngestStep, parsed: ParsedFile, metadata: DocumentMetadata
) -> DocumentRecord:
    is_new_content = step.content_hash != state.content_hash
    rights = state.wanted_rights
    return DocumentRecord(
        doc_id=state.doc_id,
        project_id=rights.project_id,
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
        content_hash=step.content_hash,
        version=state.version + 1 if is_new_content else max(state.version, 1),
        status="ready",
        owner_id=rights.owner_id,
        access_control_list=rights.acl,
    )


async def _merge_rows(version: _Version, changes: BlockChanges, services: Services) -> None:
    """Bring rows that stay up to date: moved ones always, kept ones when the document's fields changed."""
    positions = list(changes.moved)
    if index_rows.copied_hash(version.record) != version.state.copied_hash:
        positions += changes.kept
    await services.content_index.merge(
        [index_rows.moved_row(version.blocks[position], version.record) for position in positions]
    )


async def _gone(version: _Version, changes: BlockChanges, services: Services) -> list[str]:
    """Rows that are not this version's: those of the plan, and what an instance that died wrote after it."""
    wanted = {block.block_id for block in version.blocks}
    found = await index_rows.block_ids(services.content_index, version.state.doc_id)
    return sorted({*changes.gone, *found} - wanted)


def _indexed(state: DocumentState, version: _Version, services: Services) -> DocumentState:
    """The state once the version is in the indexes."""
    warnings = dict.fromkeys((*state.warnings, *version.parsed.warnings))
    indexed = state.model_copy(
        update={
            "blob_etag": state.wanted_etag,
            "content_hash": version.record.content_hash,
            "pipeline": pipeline(services.settings),
            "copied_hash": index_rows.copied_hash(version.record),
            "version": version.record.version,
            "page_count": version.record.page_count,
            "block_count": len(version.blocks),
            "warnings": tuple(warnings),
        }
    )
    return _with_wanted_rights(indexed)


def _with_wanted_rights(state: DocumentState) -> DocumentState:
    """The wanted rights hold; what was wrong with the old ones is told no more."""
    kept = [warning for warning in state.warnings if warning != state.rights.warning]
    told = state.wanted_rights.warning
    warnings = dict.fromkeys([*kept, told] if told else kept)
    return state.model_copy(update={"rights": state.wanted_rights, "warnings": tuple(warnings)})
