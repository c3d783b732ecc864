"""The clients and stores that `shared.ingestion` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.access.user_limit_store import UserLimitStore
from shared.documents.services import DocumentServices
from shared.ingestion.parser_services import ParserServices
from shared.platform.language_models.models import ChatModel, Embedder, VisionModel
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class IngestionServices(DocumentServices, Protocol):
    """What ingestion needs of the outside world."""

    settings: Settings
    content_index: SearchIndex
    chat_model: ChatModel
    vision_model: VisionModel
    embedder: Embedder
    user_limits: UserLimitStore
    parser_services: ParserServices

    async def prepare(self) -> None:
        """Create the containers, tables, queues and indexes that are missing, and new index fields."""

    async def ensure_prepared(self) -> None:
        """Prepare on the first call of this process."""
