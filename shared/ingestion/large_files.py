"""Activities that ingest a large file in several steps. Each one reads the stored results of earlier steps
and stores its own.

`shared.ingestion.steps.ingest_small` composes the same functions for a small file without storing results.
"""

from shared.documents import index_rows
from shared.documents.models import DescribedFile, Original
from shared.ingestion import captions, indexing, metadata, parse_document
from shared.ingestion.copies import find_original
from shared.ingestion.indexing import Version, make_version
from shared.ingestion.models import BlockChanges, Done, Parsed, ParsedFile, Planned
from shared.ingestion.step_files import CHANGES, DESCRIBED, ORIGINAL, PARSED, StepFiles
from shared.ingestion.steps import count_changes, end_unchanged
from shared.ingestion.task import IngestTask


async def parse(task: IngestTask) -> Parsed:
    """Download, parse and chunk the file. If an interrupted execution stored this result already, return it
    instead.
    """
    await task.enter("parsing")
    parsed = await parse_document.parse(task, lambda: _files(task).find(PARSED, ParsedFile))
    if parsed is None:
        await end_unchanged(task)
        return Parsed(version_key=task.version_key, same_bytes=True)
    await _files(task).put(PARSED, parsed)
    return Parsed(version_key=task.version_key)


async def describe(task: IngestTask) -> Done:
    """Derive the document's metadata and store it for later steps."""
    await task.current_state()
    files = _files(task)
    described = await files.find(DESCRIBED, DescribedFile)
    if described is not None and described.by_model:
        # An earlier attempt stored metadata from the model, so keep it. Metadata derived by rule would be
        # replaced.
        return Done()
    original = await find_original(task)
    await files.put(ORIGINAL, original)
    described = await metadata.describe(task, await files.get(PARSED, ParsedFile), original)
    await files.put(DESCRIBED, described)
    await task.update()
    return Done()


async def plan(task: IngestTask) -> Planned:
    """Determine which blocks are new, moved or gone, and store the result for later steps."""
    await task.current_state()
    files = _files(task)
    parsed = await files.get(PARSED, ParsedFile)
    described = await files.get(DESCRIBED, DescribedFile)
    indexed = await index_rows.block_hashes(task.services.content_index, task.doc_id)
    changes = await indexing.plan(task, parsed, described, indexed)
    await files.put(CHANGES, changes)
    return count_changes(parsed, changes)


async def caption(task: IngestTask) -> Done:
    """Caption the new figures from `step.first` up to, but not including, `step.end`."""
    await task.current_state()
    files = _files(task)
    changes = await files.get(CHANGES, BlockChanges)
    figures = captions.new_figures(await files.get(PARSED, ParsedFile), changes)
    part = figures[task.step.first : task.step.end or None]
    await captions.caption(task, part, await files.get(ORIGINAL, Original))
    return Done()


async def write_blocks(task: IngestTask) -> Done:
    """Embed and write the new blocks from `step.first` up to, but not including, `step.end`."""
    await task.enter("embedding")
    files = _files(task)
    version = await _version(task)
    changes = await files.get(CHANGES, BlockChanges)
    part = changes.new[task.step.first : task.step.end or None]
    positions = await indexing.unwritten_blocks(task, version, part)
    await indexing.write_blocks(task, version, positions, await files.get(ORIGINAL, Original))
    return Done()


async def finish(task: IngestTask) -> Done:
    """Publish the version, then delete stale blocks and the stored results of steps."""
    state = await task.enter("indexing")
    files = _files(task)
    if state.version_key != task.version_key or await files.find(PARSED, ParsedFile) is not None:
        changes = await files.get(CHANGES, BlockChanges)
        await indexing.finish(task, await _version(task), changes, await files.get(ORIGINAL, Original))
    await indexing.clean_up(task)
    return Done()


async def _version(task: IngestTask) -> Version:
    files = _files(task)
    parsed = await files.get(PARSED, ParsedFile)
    return await make_version(task, parsed, await files.get(DESCRIBED, DescribedFile))


def _files(task: IngestTask) -> StepFiles:
    return StepFiles(task.blobs, task.folder)
