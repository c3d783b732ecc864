"""Interface of the clients and stores that ingestion needs, which `shared.wiring.Services` implements."""

from typing import Protocol

from shared.access.user_limit_store import UserLimitStore
from shared.documents.services import DocumentServices
from shared.ingestion.parser_services import ParserServices
from shared.platform.language_models.models import ChatModel, Embedder, VisionModel
from shared.platform.queues import TaskQueues
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class IngestionServices(DocumentServices, Protocol):
    """External services that ingestion needs."""

    settings: Settings
    content_index: SearchIndex
    chat_model: ChatModel
    vision_model: VisionModel
    embedder: Embedder
    user_limits: UserLimitStore
    queues: TaskQueues
    parser_services: ParserServices

    async def prepare(self) -> None:
        """Create missing containers, tables, queues and indexes, and add missing fields to existing
        indexes.
        """

    async def ensure_prepared(self) -> None:
        """Call `prepare` unless this process has already called it."""
