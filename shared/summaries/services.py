"""The clients and stores that `shared.summaries` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.access.user_limit_store import UserLimitStore
from shared.documents.state_store import DocumentStore
from shared.platform.blobs import BlobStore
from shared.platform.language_models.models import ChatModel
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class SummaryServices(Protocol):
    """What summaries needs of the outside world."""

    settings: Settings
    content_index: SearchIndex
    documents_index: SearchIndex
    chat_model: ChatModel
    blobs: BlobStore
    documents: DocumentStore
    user_limits: UserLimitStore
