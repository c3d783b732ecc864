"""The clients and stores used by `shared.conversations`: a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.conversations.thread_store import ThreadStore
from shared.documents.services import DocumentServices
from shared.platform.language_models.models import ChatModel, Embedder
from shared.platform.queues import TaskQueues
from shared.platform.search import SearchIndex
from shared.runs.run_log import RunLog
from shared.runs.run_store import RunStore


class ConversationServices(DocumentServices, Protocol):
    """Clients and stores that conversations need."""

    memory_index: SearchIndex
    chat_model: ChatModel
    embedder: Embedder
    run_log: RunLog
    runs: RunStore
    threads: ThreadStore
    queues: TaskQueues
