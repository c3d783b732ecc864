"""The clients and stores that `shared.conversations` uses: a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.conversations.thread_store import ThreadStore
from shared.documents.services import DocumentServices
from shared.platform.language_models.models import ChatModel, Embedder
from shared.platform.queues import TaskQueues
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings
from shared.runs.run_store import RunStore


class ConversationServices(DocumentServices, Protocol):
    """What conversations needs of the outside world."""

    @property
    def settings(self) -> Settings: ...

    @property
    def memory_index(self) -> SearchIndex: ...

    @property
    def chat_model(self) -> ChatModel: ...

    @property
    def embedder(self) -> Embedder: ...

    @property
    def runs(self) -> RunStore: ...

    @property
    def threads(self) -> ThreadStore: ...

    @property
    def queues(self) -> TaskQueues: ...
