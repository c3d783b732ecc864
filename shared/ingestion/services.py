"""The clients and stores that `shared.ingestion` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.documents.state import DocumentStore
from shared.ingestion.parser_services import ParserServices
from shared.platform.blobs import BlobStore
from shared.platform.language_models.models import ChatModel, Embedder
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class IngestionServices(Protocol):
    """What ingestion needs of the outside world."""

    @property
    def settings(self) -> Settings: ...

    @property
    def content_index(self) -> SearchIndex: ...

    @property
    def documents_index(self) -> SearchIndex: ...

    @property
    def chat_model(self) -> ChatModel: ...

    @property
    def vision_model(self) -> ChatModel: ...

    @property
    def embedder(self) -> Embedder: ...

    @property
    def blobs(self) -> BlobStore: ...

    @property
    def documents(self) -> DocumentStore: ...

    @property
    def parser_services(self) -> ParserServices: ...

    async def prepare(self) -> None:
        """Create the containers, tables, queues and indexes that are missing, and new index fields."""

    async def ensure_prepared(self) -> None:
        """Prepare on the first call of this process."""
