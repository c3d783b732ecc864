"""The clients and stores used by `shared.summaries`, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.access.user_limit_store import UserLimitStore
from shared.documents.state_store import DocumentStore
from shared.platform.blobs import BlobStore
from shared.platform.language_models.models import ChatModel
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class SummaryServices(Protocol):
    """The external services that summaries need."""

    settings: Settings
    content_index: SearchIndex
    documents_index: SearchIndex
    chat_model: ChatModel
    blobs: BlobStore
    documents: DocumentStore
    user_limits: UserLimitStore
