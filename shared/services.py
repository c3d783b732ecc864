"""What effects may use: the settings and one adapter per port. Made in `shared.wiring`; fakes in tests."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shared.ports import (
    BlobStore,
    BotFiles,
    BotInbox,
    BotOutbox,
    BotTurnStore,
    ChatModel,
    ControlStore,
    DocumentStore,
    Embedder,
    GroupDirectory,
    IdempotencyStore,
    LayoutReader,
    MetricStore,
    PageReader,
    PoisonQueues,
    QualityStore,
    RunLog,
    RunStore,
    SearchAdmin,
    SearchIndex,
    TaskQueues,
    ThreadStore,
    UserLimitStore,
    WebSearch,
)
from shared.settings import Settings


@dataclass(frozen=True)
class ParserServices:
    """What reads documents beside our own parsers; None = our own parsers alone."""

    layout: LayoutReader | None = None
    pages: PageReader | None = None


@dataclass(frozen=True)
class Services:
    """The world, as one value. Every room may import it; only wiring fills it."""

    settings: Settings
    content_index: SearchIndex
    documents_index: SearchIndex
    memory_index: SearchIndex
    search_admin: SearchAdmin
    chat_model: ChatModel
    vision_model: ChatModel
    embedder: Embedder
    blobs: BlobStore
    run_log: RunLog
    runs: RunStore
    threads: ThreadStore
    documents: DocumentStore
    poison: PoisonQueues
    queues: TaskQueues
    subagent_control: ControlStore
    subagent_metrics: MetricStore
    idempotency: IdempotencyStore
    user_limits: UserLimitStore
    quality: QualityStore
    directory: GroupDirectory
    parser_services: ParserServices = ParserServices()
    web_search: WebSearch | None = None  # None = the web is not searched
    bot_inbox: BotInbox | None = None  # of these four: None = no channel is served, as in most tests
    bot_outbox: BotOutbox | None = None
    bot_files: BotFiles | None = None
    bot_turns: BotTurnStore | None = None
    closers: tuple[Callable[[], Awaitable[None]], ...] = ()

    async def close(self) -> None:
        """End every connection: for programs and tests, whose event loop ends before the process."""
        for close in self.closers:
            await close()
