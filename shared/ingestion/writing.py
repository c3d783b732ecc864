"""The steps that write: plan what changes, embed and write new blocks, then the document, then clear up.

The order is the promise: new blocks, then the document's row, then the deletion of blocks that vanished. A
document in the list is complete, and one that is being replaced never disappears from search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from shared.documents import figure_store, index_rows, page_files
from shared.documents.metadata import with_corrections
from shared.documents.models import Block, DescribedFile, Figure
from shared.documents.state import DocumentState, Rights
from shared.ingestion import accepting, copies, extracted, work_files
from shared.ingestion.accepting import pipeline
from shared.ingestion.chunking import embedded_text
from shared.ingestion.claims import enter, look, now, update, with_model_calls
from shared.ingestion.models import BlockChanges, IngestStep, ParsedFile, Planned, RightsApplied, Written
from shared.ingestion.record_manager import make_blocks, make_figure_blocks, plan_changes
from shared.ingestion.services import IngestionServices
from shared.ingestion.work_files import current_sitting
from shared.platform.blobs import BlobStore
from shared.platform.language_models.models import CallLimits, Embedder
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings
from shared.retrieval.models import DocumentMetadata, DocumentRecord

METADATA_BY_RULE = "Title and summary were made by rule: the model could not describe the document."
CAPTIONS_BY_RULE = "Some figures were described by rule: the model could not describe them."


async def warnings_of(
    doc_id: str, parsed: ParsedFile, described: DescribedFile, blobs: BlobStore
) -> tuple[str, ...]:
    """All of a version's warnings but that of its rights."""
    found: list[str] = []
    if not described.by_model and parsed.opening:
        found.append(METADATA_BY_RULE)
    if parsed.figures:
        captions = await figure_store.captions(blobs, doc_id)
        shown = [captions.get(figure.key) for figure in parsed.figures]
        if any(caption is not None and not caption.by_model for caption in shown):
            found.append(CAPTIONS_BY_RULE)
    return (*found, *parsed.warnings)


EMBED_BATCH = 64  # texts a request; more only make a failed one dearer (unmeasured)
_EMBED_LIMITS = CallLimits(timeout_s=120, max_retries=2)


@dataclass(frozen=True)
class _Version:
    """One version of a document, as the work container holds it."""

    state: DocumentState
    parsed: ParsedFile
    described: DescribedFile
    blocks: list[Block]
    record: DocumentRecord

    def of_now(self, state: DocumentState) -> "_Version":
        """The same with the rights that are wanted by now."""
        return replace(self, state=state, record=_with_rights(self.record, state.wanted_rights))

    def figure_at(self, position: int) -> Figure | None:
        """The figure whose block this is; None for text."""
        number = position - len(self.parsed.chunks)
        return self.parsed.figures[number] if number >= 0 else None


async def plan(step: IngestStep, services: IngestionServices) -> Planned:
    """Compare chunks and figures with the index; the verdict goes to the work container."""
    doc_id = (await look(services.documents, step)).doc_id
    parsed = await work_files.get(services.blobs, step, work_files.PARSED, ParsedFile)
    blocks = await _blocks(doc_id, parsed, services.settings, services.blobs, planned=True)
    changes = plan_changes(blocks, await index_rows.block_hashes(services.content_index, doc_id))
    await work_files.put(services.blobs, step, work_files.CHANGES, changes)
    return Planned(
        new_count=len(changes.new),
        new_figure_count=sum(position >= len(parsed.chunks) for position in changes.new),
        moved_count=len(changes.moved),
        kept_count=len(changes.kept),
        gone_count=len(changes.gone),
    )


async def write_blocks(step: IngestStep, services: IngestionServices) -> Written:
    """Embed and write the new chunks from `step.first` up to `step.end`; twice does no harm."""
    version = await _load(
        step, services.settings, services.blobs, await enter(services.documents, step, "embedding")
    )
    changes = await work_files.get(services.blobs, step, work_files.CHANGES, BlockChanges)
    positions = changes.new[step.first : step.end]
    original = await copies.original_of(step, services.blobs)
    for start in range(0, len(positions), EMBED_BATCH):
        batch = positions[start : start + EMBED_BATCH]
        vectors, asked = await _vectors(version, batch, original, services.content_index, services.embedder)
        # Embedding may take minutes: whoever lost the document meanwhile must not write into it any more, and
        # whoever changed its rights wants them in what is written from now on.
        count = partial(with_model_calls, status="embedding", calls=asked)
        version = version.of_now(await update(services.documents, step, count))
        # A figure's picture comes before its block: what is found can be shown.
        for position in batch:
            if (figure := version.figure_at(position)) is not None:
                await figure_store.publish(services.blobs, version.state.doc_id, figure.key)
        rows = [
            index_rows.block_row(version.blocks[position], version.record, vector)
            for position, vector in zip(batch, vectors, strict=True)
        ]
        await accepting.upload_blocks(
            rows,
            version.state.doc_id,
            version.state.wanted_rights,
            services.content_index,
            services.documents,
        )
    return Written(block_count=len(positions))


async def finish(step: IngestStep, services: IngestionServices) -> Written:
    """Make the new version the one that is found, and clear away what was only the old one's."""
    state = await enter(services.documents, step, "indexing")
    if state.content_hash == step.content_hash and not await work_files.exists(
        services.blobs, step, work_files.PARSED
    ):
        return Written(block_count=state.block_count)  # an earlier attempt did it all
    version = await _load(
        step,
        services.settings,
        services.blobs,
        await copies.take_corrections(step, state, services.blobs, services.documents),
    )
    changes = await work_files.get(services.blobs, step, work_files.CHANGES, BlockChanges)
    await _merge_rows(version, changes, services.content_index)
    # Metadata are written last: a document visible in the list must be searchable in full.
    naming = index_rows.naming_fields(version.record, version.parsed.chunks)
    await services.documents_index.upload([{**index_rows.document_row(version.record), **naming}])
    told = await warnings_of(state.doc_id, version.parsed, version.described, services.blobs)
    kept = partial(_indexed, version=version, told=told, current_pipeline=pipeline(services.settings))
    indexed = await update(services.documents, step, kept)
    if indexed.wanted_rights != indexed.rights:
        await apply_rights(step, services)
    await services.content_index.delete(await _gone(version, changes, services.content_index))
    keys = {figure.key for figure in version.parsed.figures}
    await figure_store.keep_only(services.blobs, state.doc_id, keys)
    await _keep_extracted(step, version, services.settings, services.blobs)
    if version.record.version > 1:
        await page_files.keep_only(services.blobs, state.doc_id, step.content_hash)
    await work_files.remove_all(services.blobs, state.doc_id)
    return Written(block_count=len(version.blocks))


async def apply_rights(step: IngestStep, services: IngestionServices) -> RightsApplied:
    """Write the wanted rights into every row of the document; content and vectors stay as they are."""
    state = await update(services.documents, step, lambda current: current)
    while True:  # until those that were written are those that are wanted: they may change meanwhile
        written = state.wanted_rights
        block_count = await index_rows.merge_rights(
            services.content_index, services.documents_index, state.doc_id, written
        )
        state = await update(services.documents, step, partial(_holding, written=written))
        if state.wanted_rights == written:
            return RightsApplied(block_count=block_count)


async def _load(step: IngestStep, settings: Settings, blobs: BlobStore, state: DocumentState) -> _Version:
    parsed = await work_files.get(blobs, step, work_files.PARSED, ParsedFile)
    described = await work_files.get(blobs, step, work_files.METADATA, DescribedFile)
    record = with_corrections(_record(state, step, parsed, described), state.corrections)
    blocks = await _blocks(state.doc_id, parsed, settings, blobs, planned=False)
    return _Version(state, parsed, described, blocks, record)


async def _blocks(
    doc_id: str, parsed: ParsedFile, settings: Settings, blobs: BlobStore, *, planned: bool
) -> list[Block]:
    """Every block of the document: chunks, then figures; when planned, as the model will caption them."""
    model = settings.models.embedding
    blocks = make_blocks(doc_id, parsed.chunks, model)
    if parsed.figures:
        captions = {} if planned else await figure_store.captions(blobs, doc_id)
        blocks += make_figure_blocks(doc_id, parsed.figures, captions, model)
    return blocks


async def _vectors(
    version: _Version,
    batch: Sequence[int],
    original: str | None,
    content_index: SearchIndex,
    embedder: Embedder,
) -> tuple[list[Sequence[float]], int]:
    """The vectors of these blocks in order, and how often the model was asked: for those nobody has yet."""
    known: dict[str, Sequence[float]] = {}
    if original is not None:
        known = await copies.vectors_of(original, [version.blocks[place] for place in batch], content_index)
    unknown = [position for position in batch if version.blocks[position].block_id not in known]
    if unknown:
        texts = [_embedded_text(version, position) for position in unknown]
        made = await embedder.embed(texts, _EMBED_LIMITS)
        blocks = [version.blocks[position] for position in unknown]
        known |= {block.block_id: vector for block, vector in zip(blocks, made, strict=True)}
    return [known[version.blocks[position].block_id] for position in batch], int(bool(unknown))


def _embedded_text(version: _Version, position: int) -> str:
    if version.figure_at(position) is None:
        return embedded_text(version.parsed.chunks[position])
    block = version.blocks[position]
    return "\n".join(filter(None, (block.heading_path, block.image_caption)))


def _record(
    state: DocumentState, step: IngestStep, parsed: ParsedFile, metadata: DocumentMetadata
) -> DocumentRecord:
    is_new_content = step.content_hash != state.content_hash
    wanted = state.wanted_rights
    return DocumentRecord(
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
        content_hash=step.content_hash,
        version=state.version + 1 if is_new_content else max(state.version, 1),
        status="ready",
        owner_id=wanted.owner_id,
        access_control_list=wanted.acl,
    )


def _with_rights(record: DocumentRecord, wanted: Rights) -> DocumentRecord:
    fields = {
        "project_id": wanted.project_id,
        "owner_id": wanted.owner_id,
        "source_url": wanted.source_url,
        "access_control_list": wanted.acl,
    }
    return record.model_copy(update=fields)


async def _keep_extracted(step: IngestStep, version: _Version, settings: Settings, blobs: BlobStore) -> None:
    """Remember what the model said: for copies of the file, and for a repair."""
    if not version.described.by_model:
        await extracted.remove(blobs, version.state.doc_id)
    elif version.state.content_hash or not current_sitting().is_whole:  # else it was kept at once
        said = DocumentMetadata.model_validate(version.described.model_dump(exclude={"by_model"}))
        await extracted.keep(step, version.state, said, settings, blobs)


async def _merge_rows(version: _Version, changes: BlockChanges, content_index: SearchIndex) -> None:
    """Bring rows that stay up to date: moved ones always, kept ones when the document's fields changed."""
    positions = list(changes.moved)
    if version.state.rows_outdated:
        # Blocks that were written before the change have what was wanted then.
        positions = list(range(len(version.blocks)))
    elif index_rows.copied_hash(version.record) != version.state.copied_hash:
        positions += changes.kept
    await content_index.merge(
        [index_rows.moved_row(version.blocks[position], version.record) for position in positions]
    )


async def _gone(version: _Version, changes: BlockChanges, content_index: SearchIndex) -> list[str]:
    """Rows that are not this version's: those of the plan, and what an instance that died wrote after it."""
    wanted = {block.block_id for block in version.blocks}
    found = await index_rows.block_ids(content_index, version.state.doc_id)
    return sorted({*changes.gone, *found} - wanted)


def _indexed(
    state: DocumentState, version: _Version, told: Sequence[str], current_pipeline: str
) -> DocumentState:
    """The state once the version is in the indexes; `told` = its warnings but for that of its rights."""
    of_rights = [warning for warning in state.warnings if warning == state.rights.warning]
    warnings = dict.fromkeys((*of_rights, *told))
    indexed = state.model_copy(
        update={
            "blob_etag": state.wanted_etag,
            "content_hash": version.record.content_hash,
            "pipeline": current_pipeline,
            "copied_hash": index_rows.copied_hash(version.record),
            "version": version.record.version,
            "page_count": version.record.page_count,
            "block_count": len(version.blocks),
            "warnings": tuple(warnings),
        }
    )
    return _holding(indexed, version.state.wanted_rights)


def _holding(state: DocumentState, written: Rights) -> DocumentState:
    """These rights hold; what was wrong with the old ones is told no more."""
    kept = [warning for warning in state.warnings if warning != state.rights.warning]
    warnings = dict.fromkeys([*kept, written.warning] if written.warning else kept)
    moved = state.wanted_rights != written
    return state.model_copy(update={"rights": written, "rows_outdated": moved, "warnings": tuple(warnings)})
