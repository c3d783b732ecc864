"""What the model said of a document, kept in the work container as long as the document lives.

The index of documents holds what people made of it; copies of the file, and a repair, need
what it was before.
"""

from shared.documents.models import ExtractedFile
from shared.documents.state import DocumentState
from shared.ingestion.accepting import pipeline
from shared.ingestion.models import IngestStep
from shared.platform.blobs import BlobStore
from shared.platform.errors import NotFoundError
from shared.platform.names import WORK
from shared.platform.settings import Settings
from shared.retrieval.models import DocumentMetadata

FOLDER = "extracted/"


async def put(blobs: BlobStore, doc_id: str, content: ExtractedFile) -> None:
    """Create or replace."""
    await blobs.write(WORK, _name(doc_id), content.model_dump_json().encode())


async def keep(
    step: IngestStep, state: DocumentState, metadata: DocumentMetadata, settings: Settings, blobs: BlobStore
) -> None:
    """Remember what the model said of these bytes."""
    content = ExtractedFile(
        content_hash=step.content_hash,
        pipeline=pipeline(settings),
        filename=state.filename,
        metadata=metadata,
    )
    await put(blobs, state.doc_id, content)


async def get(blobs: BlobStore, doc_id: str) -> ExtractedFile | None:
    """None when a rule described the document, and when somebody asked for another try."""
    try:
        return ExtractedFile.from_stored(await blobs.read(WORK, _name(doc_id)))
    except NotFoundError:
        return None


async def remove(blobs: BlobStore, doc_id: str) -> None:
    """Remove it; one that is gone is no error."""
    await blobs.delete(WORK, _name(doc_id))


def _name(doc_id: str) -> str:
    return f"{FOLDER}{doc_id}/metadata.json"
