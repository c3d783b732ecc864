"""The only place that builds clients: settings in, services out. Built once per process, on first use."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from shared.errors import ConfigurationError
from shared.services import ParserServices, Services  # there: agents and ingestion may not import wiring
from shared.settings import Settings, get_settings
from shared.wiring_indexes import index_migration, search_indexes

if TYPE_CHECKING:
    from shared.clients.cached_directory import CachedDirectory
    from shared.clients.chat_model import OpenAIChatModel
    from shared.clients.connections import Connections
    from shared.clients.control_store import TableControlStore
    from shared.clients.embeddings import OpenAIEmbedder
    from shared.clients.idempotency_store import TableIdempotencyStore
    from shared.clients.index_comparison import OnPage
    from shared.clients.index_migration import IndexMigration
    from shared.clients.metric_store import TableMetricStore
    from shared.clients.quality_store import TableQualityStore
    from shared.clients.thread_store import TableThreadStore
    from shared.clients.user_limit_store import TableUserLimitStore
    from shared.clients.web_search import SearxngWebSearch


@dataclass
class _Telemetry:
    """Whether this process has tried to send traces; it does so once."""

    is_tried: bool = False
    starting: threading.Lock = field(default_factory=threading.Lock)


_TELEMETRY = _Telemetry()


@cache
def get_services() -> Services:
    """The process's services."""
    return _observed(build_services(get_settings()))


async def start_telemetry() -> None:
    """Send traces and metrics where the settings say; where they say nothing, nothing is even imported.

    Called before each request and activity: only the first call of a process does anything. Never raises:
    settings that cannot be read are told of where they are needed.
    """
    if not _TELEMETRY.is_tried:
        with suppress(ConfigurationError):
            if get_settings().has_telemetry:
                await asyncio.to_thread(_start_export)
            _TELEMETRY.is_tried = True


def _start_export() -> None:
    with _TELEMETRY.starting:
        if not _TELEMETRY.is_tried:
            from shared.clients.telemetry_export import start_export

            start_export(get_settings())
            _TELEMETRY.is_tried = True


def _observed(services: Services) -> Services:
    """The services, the calls of their models spans; they themselves where nothing is sent anywhere."""
    settings = services.settings
    if not settings.has_telemetry:
        return services
    from shared.clients.dependency import model_endpoint
    from shared.clients.traced_model import TracedChatModel, TracedEmbedder, provider_of

    provider, seeing = provider_of(model_endpoint(settings)), settings.vision_model or settings.chat_model
    return replace(
        services,
        chat_model=TracedChatModel(services.chat_model, settings.chat_model, provider),
        vision_model=TracedChatModel(services.vision_model, seeing, provider),
        embedder=TracedEmbedder(services.embedder, settings.embedding_model, provider),
    )


def build_services(settings: Settings) -> Services:
    """Make every adapter. Nothing is connected, and no SDK imported, before an adapter's first call.

    The async clients behind them belong to the event loop of that call. Whoever ends the loop before the
    process (a test, a program around `asyncio.run`) calls `await services.close()` first.
    """
    from shared.clients.blob_store import AzureBlobStore
    from shared.clients.connections import Connections
    from shared.clients.document_store import TableDocumentStore
    from shared.clients.poison_queues import AzurePoisonQueues
    from shared.clients.run_log import BlobRunLog
    from shared.clients.run_store import TableRunStore
    from shared.clients.tables import Table
    from shared.clients.task_queues import AzureTaskQueues
    from shared.models.names import DOCUMENTS_TABLE, RUNS_TABLE

    to = Connections(settings)
    indexes = search_indexes(to, settings)
    services = Services(
        settings=settings,
        content_index=indexes.content,
        documents_index=indexes.documents,
        memory_index=indexes.memory,
        search_admin=indexes.admin,
        chat_model=_chat_model(to, settings, settings.chat_model, "CHAT_MODEL"),
        vision_model=_chat_model(to, settings, settings.vision_model or settings.chat_model, "VISION_MODEL"),
        embedder=_embedder(to, settings),
        blobs=AzureBlobStore(to.blobs),
        run_log=BlobRunLog(to.blobs),
        runs=TableRunStore(Table(to.tables, RUNS_TABLE)),
        threads=_thread_store(to, settings),
        documents=TableDocumentStore(Table(to.tables, DOCUMENTS_TABLE)),
        poison=AzurePoisonQueues(to.queues),
        queues=AzureTaskQueues(to.queues),
        subagent_control=_control_store(to),
        subagent_metrics=_metric_store(to),
        idempotency=_idempotency_store(to),
        user_limits=_user_limit_store(to),
        quality=_quality_store(to),
        directory=_directory(to, settings),
        parser_services=_parser_services(to, settings),
        web_search=_web_search(to, settings),
        closers=(to.close,),
    )
    return _with_channels(services, to)


def _chat_model(to: "Connections", settings: Settings, model: str, setting: str) -> "OpenAIChatModel":
    from shared.clients.chat_model import OpenAIChatModel
    from shared.clients.dependency import model_endpoint
    from shared.clients.model_features import FeatureMemory

    memory = FeatureMemory(settings.known_model_features)  # of its own: models of one endpoint differ
    return OpenAIChatModel(to.model, model, model_endpoint(settings), setting, memory=memory)


def _embedder(to: "Connections", settings: Settings) -> "OpenAIEmbedder":
    from shared.clients.dependency import model_endpoint
    from shared.clients.embeddings import OpenAIEmbedder
    from shared.clients.model_features import FeatureMemory

    return OpenAIEmbedder(
        to.model,
        settings.embedding_model,
        settings.embedding_dimensions,
        model_endpoint(settings),
        memory=FeatureMemory(settings.known_model_features),
    )


def _parser_services(to: "Connections", settings: Settings) -> ParserServices:
    from shared.clients.docling import Docling
    from shared.clients.document_intelligence import DocumentIntelligence

    layouts = {
        "docling": Docling(to.docling),
        "document_intelligence": DocumentIntelligence(to.document_intelligence),
    }
    by_service = settings.text_recognition == "document_intelligence"
    return ParserServices(
        layout=layouts.get(settings.parser_backend),
        pages=DocumentIntelligence(to.document_intelligence) if by_service else None,
    )


def _thread_store(to: "Connections", settings: Settings) -> "TableThreadStore":
    from shared.clients.tables import Table
    from shared.clients.thread_store import TableThreadStore
    from shared.models.names import THREADS_TABLE

    return TableThreadStore(Table(to.tables, THREADS_TABLE, is_sorted=not settings.tables_are_in_cosmos_db))


def _control_store(to: "Connections") -> "TableControlStore":
    from shared.clients.control_store import TableControlStore
    from shared.clients.tables import Table
    from shared.models.names import SUBAGENT_CONTROL_TABLE

    return TableControlStore(Table(to.tables, SUBAGENT_CONTROL_TABLE))


def _metric_store(to: "Connections") -> "TableMetricStore":
    from shared.clients.metric_store import TableMetricStore
    from shared.clients.tables import Table
    from shared.models.names import SUBAGENT_METRICS_TABLE

    return TableMetricStore(Table(to.tables, SUBAGENT_METRICS_TABLE))


def _quality_store(to: "Connections") -> "TableQualityStore":
    from shared.clients.quality_store import TableQualityStore
    from shared.clients.tables import Table
    from shared.models.names import QUALITY_TABLE

    return TableQualityStore(Table(to.tables, QUALITY_TABLE))


def _idempotency_store(to: "Connections") -> "TableIdempotencyStore":
    from shared.clients.idempotency_store import TableIdempotencyStore
    from shared.clients.tables import Table
    from shared.models.names import IDEMPOTENCY_TABLE

    return TableIdempotencyStore(Table(to.tables, IDEMPOTENCY_TABLE))


def _user_limit_store(to: "Connections") -> "TableUserLimitStore":
    from shared.clients.tables import Table
    from shared.clients.user_limit_store import TableUserLimitStore
    from shared.models.names import USER_LIMITS_TABLE

    return TableUserLimitStore(Table(to.tables, USER_LIMITS_TABLE))


def _directory(to: "Connections", settings: Settings) -> "CachedDirectory":
    from shared.clients.cached_directory import CachedDirectory
    from shared.clients.graph import GraphDirectory

    graph = GraphDirectory(to.graph, to.graph_token, settings.graph_endpoint, settings.graph_timeout_s)
    return CachedDirectory(graph, settings.group_cache_s)


def _web_search(to: "Connections", settings: Settings) -> "SearxngWebSearch | None":
    from shared.clients.web_search import SearxngWebSearch

    return SearxngWebSearch(to.web_search, settings.web_search_url) if settings.web_search_url else None


def _with_channels(services: Services, to: "Connections") -> Services:
    """The services, those of chat channels among them."""
    from shared.clients.bot_clouds import CLOUDS
    from shared.clients.bot_files import ChannelFiles
    from shared.clients.bot_inbox import ChannelInbox
    from shared.clients.bot_keys import SigningKeys
    from shared.clients.bot_outbox import ChannelOutbox
    from shared.clients.bot_tokens import ChannelTokens
    from shared.clients.bot_turn_store import TableBotTurnStore
    from shared.clients.tables import Table
    from shared.models.names import BOT_TURNS_TABLE

    settings = services.settings
    app_id, cloud = settings.bot_app_id, CLOUDS[settings.bot_cloud]
    tokens = ChannelTokens(SigningKeys(to.bot, cloud.keys_url), app_id, cloud.issuer) if app_id else None
    outbox = ChannelOutbox(settings, to.bot_token)
    return replace(
        services,
        bot_outbox=outbox,
        bot_inbox=ChannelInbox(settings, tokens),
        bot_files=ChannelFiles(to.bot, settings, to.bot_token),
        bot_turns=TableBotTurnStore(Table(to.tables, BOT_TURNS_TABLE)),
        closers=(*services.closers, outbox.close),
    )


@asynccontextmanager
async def opened_index_migration(
    settings: Settings, which: str, on_page: "OnPage"
) -> "AsyncIterator[IndexMigration]":
    """What moves "content", "documents" or "memory" to a new index; closed afterwards."""
    from shared.clients.connections import Connections

    to = Connections(settings)
    try:
        yield index_migration(to, settings, which, on_page)
    finally:
        await to.close()
