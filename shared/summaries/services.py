"""The clients and stores that `shared.summaries` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.access.limits import UserLimitStore
from shared.platform.blobs import BlobStore
from shared.platform.language_models.models import ChatModel
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings


class SummaryServices(Protocol):
    """What summaries needs of the outside world."""

    @property
    def settings(self) -> Settings: ...

    @property
    def content_index(self) -> SearchIndex: ...

    @property
    def documents_index(self) -> SearchIndex: ...

    @property
    def chat_model(self) -> ChatModel: ...

    @property
    def blobs(self) -> BlobStore: ...

    @property
    def user_limits(self) -> UserLimitStore: ...
