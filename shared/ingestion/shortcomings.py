"""What people are told about a version that is in the indexes all the same.

Told when it is there, not before: a version that fails on its way leaves the warnings of the one that stays.
"""

from shared.ingestion import figure_store
from shared.models.ingestion import ParsedFile
from shared.models.work_files import DescribedFile
from shared.ports import BlobStore

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
