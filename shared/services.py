"""What the application may use of the outside world: the settings, and one client or store per interface."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from shared.access.directory import GroupDirectory
    from shared.access.idempotency import IdempotencyStore
    from shared.access.limits import UserLimitStore
    from shared.conversations.thread_store import ThreadStore
    from shared.documents.state import DocumentStore
    from shared.ingestion.parser_services import ParserServices
    from shared.platform.blobs import BlobStore
    from shared.platform.language_models.models import ChatModel, Embedder
    from shared.platform.queues import PoisonQueues, TaskQueues
    from shared.platform.search import SearchAdmin, SearchIndex
    from shared.platform.settings import Settings
    from shared.quality.store import QualityStore
    from shared.runs.run_log import RunLog
    from shared.runs.run_store import RunStore
    from shared.subagents.control import ControlStore
    from shared.subagents.metrics import MetricStore
    from shared.teams.ports import BotFiles, BotInbox, BotOutbox, BotTurnStore
    from shared.tools.web_search import WebSearch


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
    parser_services: ParserServices
    web_search: WebSearch | None = None  # None = the web is not searched
    bot_inbox: BotInbox | None = None  # of these four: None = no channel is served, as in most tests
    bot_outbox: BotOutbox | None = None
    bot_files: BotFiles | None = None
    bot_turns: BotTurnStore | None = None
    closers: tuple[Callable[[], Awaitable[None]], ...] = ()

    def using(self, *, chat_model: ChatModel | None = None, run_log: RunLog | None = None) -> Services:
        """The same with another chat model or run log."""
        return replace(self, chat_model=chat_model or self.chat_model, run_log=run_log or self.run_log)

    async def close(self) -> None:
        """End every connection: for programs and tests, whose event loop ends before the process."""
        for close in self.closers:
            await close()
