"""The clients and stores that `shared.erasure` uses, a part of `shared.wiring.Services`."""

from typing import Protocol

from shared.access.idempotency import IdempotencyStore
from shared.access.limits import UserLimitStore
from shared.conversations.thread_store import ThreadStore
from shared.documents.state import DocumentStore
from shared.platform.blobs import BlobStore
from shared.platform.queues import PoisonQueues, TaskQueues
from shared.platform.search import SearchIndex
from shared.platform.settings import Settings
from shared.quality.store import QualityStore
from shared.runs.run_log import RunLog
from shared.runs.run_store import RunStore
from shared.teams.store import BotTurnStore


class ErasureServices(Protocol):
    """What erasure needs of the outside world."""

    @property
    def settings(self) -> Settings: ...

    @property
    def memory_index(self) -> SearchIndex: ...

    @property
    def blobs(self) -> BlobStore: ...

    @property
    def run_log(self) -> RunLog: ...

    @property
    def runs(self) -> RunStore: ...

    @property
    def threads(self) -> ThreadStore: ...

    @property
    def documents(self) -> DocumentStore: ...

    @property
    def poison(self) -> PoisonQueues: ...

    @property
    def queues(self) -> TaskQueues: ...

    @property
    def idempotency(self) -> IdempotencyStore: ...

    @property
    def user_limits(self) -> UserLimitStore: ...

    @property
    def quality(self) -> QualityStore: ...

    @property
    def bot_turns(self) -> BotTurnStore | None: ...
