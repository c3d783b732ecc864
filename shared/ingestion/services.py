"""The clients and stores that `shared.ingestion` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.access.user_limit_store import UserLimitStore
from shared.documents.state_store import DocumentStore
from shared.ingestion.parser_services import ParserServices
from shared.platform.blobs import BlobStore
from shared.platform.language_models.models import ChatModel, Embedder
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class IngestionServices(Protocol):
    """What ingestion needs of the outside world."""

    settings: Settings
    content_index: SearchIndex
    documents_index: SearchIndex
    chat_model: ChatModel
    vision_model: ChatModel
    embedder: Embedder
    blobs: BlobStore
    documents: DocumentStore
    user_limits: UserLimitStore
    parser_services: ParserServices

    async def prepare(self) -> None:
        """Create the containers, tables, queues and indexes that are missing, and new index fields."""

    async def ensure_prepared(self) -> None:
        """Prepare on the first call of this process."""
