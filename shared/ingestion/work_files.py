"""What steps hand to later steps: JSON files in the work container, by document and content hash.

When all steps of a document that is in no index yet happen in one sitting, nothing is stored: if it breaks
off, it begins anew. For one that is, they are stored: by them a failed version's blocks are told from others.
"""

from typing import TypeVar

from shared.core.document_ids import document_id
from shared.errors import NotFoundError
from shared.ingestion.sitting import current_sitting
from shared.models.base import Model
from shared.models.ingestion import IngestStep
from shared.models.names import WORK
from shared.ports import BlobStore

PARSED = "parsed.json"
METADATA = "metadata.json"
CHANGES = "changes.json"
ORIGINAL = "original.json"

WorkModel = TypeVar("WorkModel", bound=Model)


async def put(blobs: BlobStore, step: IngestStep, name: str, content: Model) -> None:
    """Create or replace one file."""
    current_sitting().files[_path(step, name)] = content
    if not are_kept_in_memory(step):
        await blobs.write(WORK, _path(step, name), content.model_dump_json().encode())


async def get(blobs: BlobStore, step: IngestStep, name: str, kind: type[WorkModel]) -> WorkModel:
    """Read one file.

    Raises:
        NotFoundError: it is not there.
    """
    known = current_sitting().files.get(_path(step, name))
    if isinstance(known, kind):
        return known
    if are_kept_in_memory(step):
        raise NotFoundError(f"There is no {name} of this ingestion.")
    return kind.from_kept(await blobs.read(WORK, _path(step, name)))


async def exists(blobs: BlobStore, step: IngestStep, name: str) -> bool:
    """Whether an earlier attempt left the file."""
    return await blobs.properties(WORK, _path(step, name)) is not None


async def remove_all(blobs: BlobStore, doc_id: str) -> None:
    """Remove every file of a document, of whatever version."""
    await blobs.delete_prefix(WORK, f"ingest/{doc_id}/")


def are_kept_in_memory(step: IngestStep) -> bool:
    """Whether the files of this ingestion live no longer than the activity."""
    here = current_sitting()
    state = here.states.get(document_id(step.blob_name))
    return here.is_whole and state is not None and not state.content_hash


def _path(step: IngestStep, name: str) -> str:
    return f"ingest/{document_id(step.blob_name)}/{step.content_hash}/{name}"
