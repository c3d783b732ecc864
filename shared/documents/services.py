"""The clients and stores that `shared.documents` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.documents.state import DocumentStore
from shared.platform.blobs import BlobStore
from shared.platform.search import SearchIndex


class DocumentServices(Protocol):
    """What documents needs of the outside world."""

    @property
    def documents_index(self) -> SearchIndex: ...

    @property
    def blobs(self) -> BlobStore: ...

    @property
    def documents(self) -> DocumentStore: ...
