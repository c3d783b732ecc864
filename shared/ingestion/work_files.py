"""What steps hand to later steps: JSON files in the work container, by document and content hash."""

from typing import TypeVar

from shared.core.document_ids import document_id
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
    await blobs.write(WORK, _path(step, name), content.model_dump_json().encode())


async def get(blobs: BlobStore, step: IngestStep, name: str, kind: type[WorkModel]) -> WorkModel:
    """Read one file.

    Raises:
        NotFoundError: it is not there.
    """
    return kind.model_validate_json(await blobs.read(WORK, _path(step, name)))


async def exists(blobs: BlobStore, step: IngestStep, name: str) -> bool:
    """Whether an earlier attempt left the file."""
    return await blobs.properties(WORK, _path(step, name)) is not None


async def remove_all(blobs: BlobStore, doc_id: str) -> None:
    """Remove every file of a document, of whatever version."""
    await blobs.delete_prefix(WORK, f"ingest/{doc_id}/")


def _path(step: IngestStep, name: str) -> str:
    return f"ingest/{document_id(step.blob_name)}/{step.content_hash}/{name}"
