"""What one activity remembers from its first read to its end: a document's state, and its work files.

The memory never outlives the activity, and is never trusted: a state that is written is compared with the
store's revision as ever, so one that is out of date is a conflict, and is read again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from shared.documents.ids import document_id
from shared.documents.state import DocumentState
from shared.ingestion.models import IngestStep
from shared.platform.blobs import BlobStore
from shared.platform.errors import NotFoundError
from shared.platform.models import Model
from shared.platform.names import WORK


@dataclass
class Sitting:
    """One activity's memory.

    Attributes:
        states: last known states, by document.
        files: work files by path; those that only this sitting needs are written nowhere else.
        is_whole: the whole ingestion happens in it, so work files need not be stored for later activities.
    """

    is_whole: bool = False
    states: dict[str, DocumentState] = field(default_factory=dict)
    files: dict[str, Model] = field(default_factory=dict)


_current: ContextVar[Sitting | None] = ContextVar("sitting", default=None)


@contextmanager
def sitting(*, is_whole: bool = False) -> Iterator[Sitting]:
    """Remember until the end of the block."""
    begun = Sitting(is_whole=is_whole)
    token = _current.set(begun)
    try:
        yield begun
    finally:
        _current.reset(token)


def current_sitting() -> Sitting:
    """The sitting of this activity; outside of one, a memory that is forgotten at once."""
    return _current.get() or Sitting()


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
    return kind.from_stored(await blobs.read(WORK, _path(step, name)))


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
