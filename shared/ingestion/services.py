"""The clients and stores that `shared.ingestion` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.conversations.thread_store import ThreadStore
from shared.documents.state import DocumentStore
from shared.ingestion.parser_services import ParserServices
from shared.platform.blobs import BlobStore
from shared.platform.language_models.models import ChatModel, Embedder
from shared.platform.queues import TaskQueues
from shared.platform.search import SearchAdmin, SearchIndex
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
    def search_admin(self) -> SearchAdmin: ...

    @property
    def chat_model(self) -> ChatModel: ...

    @property
    def vision_model(self) -> ChatModel: ...

    @property
    def embedder(self) -> Embedder: ...

    @property
    def blobs(self) -> BlobStore: ...

    @property
    def threads(self) -> ThreadStore: ...

    @property
    def documents(self) -> DocumentStore: ...

    @property
    def queues(self) -> TaskQueues: ...

    @property
    def parser_services(self) -> ParserServices: ...
