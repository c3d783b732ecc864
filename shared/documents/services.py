"""The subset of `shared.wiring.Services` that `shared.documents` uses."""

from typing import Protocol

from shared.documents.state_store import DocumentStore
from shared.platform.blobs import BlobStore
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class DocumentServices(Protocol):
    """The external services that documents need."""

    settings: Settings
    documents_index: SearchIndex
    blobs: BlobStore
    documents: DocumentStore
