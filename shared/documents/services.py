"""The clients and stores that `shared.documents` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.documents.state_store import DocumentStore
from shared.platform.blobs import BlobStore
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class DocumentServices(Protocol):
    """What documents needs of the outside world."""

    settings: Settings
    documents_index: SearchIndex
    blobs: BlobStore
    documents: DocumentStore
