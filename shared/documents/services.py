"""Protocol of the services that `shared.documents` needs, which `shared.wiring.Services` provides."""

from typing import Protocol

from shared.documents.state_store import DocumentStore
from shared.platform.blobs import BlobStore
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class DocumentServices(Protocol):
    """Services that the functions of `shared.documents` use: settings, search indexes and stores."""

    settings: Settings
    documents_index: SearchIndex
    blobs: BlobStore
    documents: DocumentStore
