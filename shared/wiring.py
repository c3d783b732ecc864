"""Construction of all clients and services from settings. Built once per process, on first use."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache

from azure.search.documents.aio import SearchClient

from shared.access.audit_trail import AuditTrail
from shared.access.directory import (
    CachedDirectory,
    GraphDirectory,
    GroupDirectory,
    connect_graph,
    graph_token,
)
from shared.access.idempotency import IdempotencyStore
from shared.access.listed_directory import ListedDirectory
from shared.access.user_limit_store import UserLimitStore
from shared.answering.control import ControlStore
from shared.conversations.thread_store import ThreadStore
from shared.documents.state_store import DocumentStore
from shared.ingestion.docling import Docling, connect_docling
from shared.ingestion.document_intelligence import DocumentIntelligence, connect_document_intelligence
from shared.ingestion.parser_services import ParserServices
from shared.platform import names
from shared.platform.azure_search import AzureSearchIndex
from shared.platform.blobs import BlobStore
from shared.platform.calls import model_endpoint
from shared.platform.connections import (
    Closable,
    Connection,
    Credentials,
    connect_admin,
    connect_blobs,
    connect_index,
    connect_queues,
    connect_tables,
)
from shared.platform.errors import ConfigurationError
from shared.platform.language_models.chat_model import OpenAIChatModel
from shared.platform.language_models.embeddings import OpenAIEmbedder
from shared.platform.language_models.endpoint import connect_model
from shared.platform.language_models.features import FeatureMemory
from shared.platform.language_models.models import ChatModel, DeployedModel, Embedder, VisionModel
from shared.platform.language_models.traced import TracedChatModel, TracedEmbedder, provider_of
from shared.platform.loading import load
from shared.platform.names import CONTAINERS, QUEUES
from shared.platform.queues import PoisonQueues, TaskQueues
from shared.platform.search import SearchAdmin, SearchIndex
from shared.platform.settings import Settings, get_settings
from shared.platform.tables import Table
from shared.platform.web_pages import WebPages, connect_web_pages
from shared.quality.store import QualityStore
from shared.retrieval.index_admin import AzureSearchAdmin
from shared.retrieval.index_comparison import OnPage
from shared.retrieval.migration import IndexMigration
from shared.retrieval.mirrored_index import MirroredIndex, OpensIndex, WriteTargets
from shared.retrieval.schema import INDEX_VERSIONS, content_index, documents_index, memory_index
from shared.runs.blob_run_log import BlobRunLog
from shared.runs.run_log import RunLog
from shared.runs.run_store import RunStore
from shared.sharepoint.client import SharePointClient, connect_sharepoint, sharepoint_token
from shared.sharepoint.libraries import origin_of
from shared.sharepoint.state import LibraryStore
from shared.tables.databases import Databases
from shared.tables.postgres import PostgresEngine, database_token
from shared.teams.files import ChannelFiles, bot_token
from shared.teams.inbox import ChannelInbox
from shared.teams.outbox import BotOutbox
from shared.teams.store import BotTurnStore
from shared.teams.tokens import CLOUDS, ChannelTokens, SigningKeys, connect_bot
from shared.tools.base import Tool, ToolClient
from shared.tools.registry import enabled_tools
from shared.tools.web_search import BraveWebSearch, SearxngWebSearch, WebSearch, connect_web_search


@dataclass(eq=False)  # not frozen: Protocols with plain attributes require settable ones
class Services:
    """All stores and clients of the process. Each package declares a protocol with the services it uses."""

    settings: Settings
    content_index: SearchIndex
    documents_index: SearchIndex
    memory_index: SearchIndex
    search_admin: SearchAdmin
    chat_model: ChatModel
    vision_model: VisionModel
    embedder: Embedder
    blobs: BlobStore
    run_log: RunLog
    runs: RunStore
    threads: ThreadStore
    documents: DocumentStore
    poison: PoisonQueues
    queues: TaskQueues
    subagent_control: ControlStore
    idempotency: IdempotencyStore
    user_limits: UserLimitStore
    quality: QualityStore
    audit: AuditTrail
    directory: GroupDirectory
    parser_services: ParserServices
    databases: Databases
    web_search: WebSearch | None = None  # None = web search is disabled
    web_pages: WebPages | None = None  # None in tests without web pages
    bot_inbox: ChannelInbox | None = None  # these four: None = no channel is configured, as in most tests
    bot_outbox: BotOutbox | None = None
    bot_files: ChannelFiles | None = None
    bot_turns: BotTurnStore | None = None
    tool_clients: Mapping[str, ToolClient] = field(default_factory=dict)  # enabled tools by name
    sharepoint: SharePointClient | None = None  # this and the next: None = no libraries are configured
    libraries: LibraryStore | None = None
    other_models: Callable[[str], ChatModel] | None = None  # by deployment name
    own_tools: Mapping[str, Tool] = field(default_factory=dict)  # tools of an agent in a program, by name
    closers: tuple[Callable[[], Awaitable[None]], ...] = ()
    is_prepared: bool = False

    def using(
        self,
        *,
        chat_model: ChatModel | None = None,
        run_log: RunLog | None = None,
        settings: Settings | None = None,
        own_tools: Mapping[str, Tool] | None = None,
    ) -> "Services":
        """Return a copy with the given parts replaced."""
        return replace(
            self,
            chat_model=chat_model or self.chat_model,
            run_log=run_log or self.run_log,
            settings=settings or self.settings,
            own_tools=self.own_tools if own_tools is None else own_tools,
        )

    def chat_model_named(self, name: str) -> ChatModel:
        """Return the chat model with this deployment name at the same endpoint. Tests use one model for all
        names.
        """
        return self.other_models(name) if self.other_models else self.chat_model

    async def prepare(self) -> None:
        """Create missing containers, tables, queues, indexes and index fields."""
        settings, dimensions = self.settings, self.settings.models.embedding_dimensions
        await self.blobs.ensure_containers(CONTAINERS)
        await self.documents.ensure_table()
        await self.threads.ensure_table()
        if self.libraries is not None:
            await self.libraries.ensure_table()
        await self.queues.ensure_queues(QUEUES)
        for index in (
            content_index(settings.search.content_index, dimensions),
            documents_index(settings.search.documents_index),
            memory_index(settings.search.memory_index, dimensions),
        ):
            await self.search_admin.ensure_index(index)

    async def ensure_prepared(self) -> None:
        """Prepare the stores on the first call. Concurrent first calls are harmless."""
        if not self.is_prepared:
            await self.prepare()
            self.is_prepared = True

    async def close(self) -> None:
        """Close all connections, for programs and tests whose event loop ends before the process."""
        for close in self.closers:
            await close()


class Connections:
    """One client per service, shared by all adapters."""

    def __init__(self, settings: Settings) -> None:
        # Imported on first use, to keep the worker's start fast.

        self._settings = settings
        self.credentials = Credentials(settings)
        self.blobs = connect_blobs(settings, self.credentials)
        self.queues = connect_queues(settings, self.credentials)
        self.tables = connect_tables(settings, self.credentials)
        self.model = connect_model(settings, self.credentials)
        self.search_admin = connect_admin(settings, self.credentials)
        self.document_intelligence = connect_document_intelligence(settings, self.credentials)
        self.docling = connect_docling(settings)
        self.web_search = connect_web_search(settings)
        self.web_pages = connect_web_pages()
        self.graph = connect_graph()
        self.graph_token = graph_token(settings, self.credentials)
        self.database_token = database_token(self.credentials)
        self.bot = connect_bot()
        self.bot_token = bot_token(settings, self.credentials)
        self._indexes: dict[str, Connection[SearchClient]] = {}

    def search_index(self, name: str) -> Connection[SearchClient]:
        """Return the connection to the search index with this name."""
        if name not in self._indexes:
            self._indexes[name] = connect_index(self._settings, self.credentials, name)
        return self._indexes[name]

    async def close(self) -> None:
        """Close all open connections. The credentials are closed last, because other clients may still
        request tokens.
        """
        connections: tuple[Closable, ...] = (
            *(self.blobs, self.queues, self.tables, self.model, self.search_admin),
            *(self.document_intelligence, self.docling, self.web_search, self.web_pages),
            *(self.graph, self.bot),
            *self._indexes.values(),
            self.credentials,
        )
        for connection in connections:
            await connection.close()


_KEY_FIELDS = {"content": "block_id", "documents": "doc_id", "memory": "memory_id"}


def _opener(to: Connections, settings: Settings, which: str) -> OpensIndex:
    """Return a function that opens an index with the schema of "content", "documents" or "memory" by name."""

    def opens(physical: str, absent_ok: bool = False) -> AzureSearchIndex:
        return AzureSearchIndex(
            to.search_index(physical),
            physical,
            timeout_s=settings.search.timeout_s,
            key_field=_KEY_FIELDS[which],
            absent_ok=absent_ok,
        )

    return opens


@dataclass
class _Telemetry:
    """State of the trace export, which each process tries to start once."""

    is_tried: bool = False
    starting: threading.Lock = field(default_factory=threading.Lock)


_TELEMETRY = _Telemetry()


@cache
def get_services() -> Services:
    """Return the services of this process, which are created on the first call."""
    return build_services(get_settings())


async def ready_services() -> Services:
    """Return the process's services; the first call creates missing containers, tables and indexes.

    Without this, a question asked before the first upload would fail because no index exists.
    """
    services = get_services()
    await services.ensure_prepared()
    return services


async def start_telemetry() -> None:
    """Start the export of traces and metrics if the settings enable it. Otherwise, nothing is imported.

    Called before each request and activity; only a process's first call has an effect. Never raises: invalid
    settings raise where they are used.
    """
    if not _TELEMETRY.is_tried:
        with suppress(ConfigurationError):
            if get_settings().telemetry.is_on:
                await asyncio.to_thread(_start_export)
            _TELEMETRY.is_tried = True


def _start_export() -> None:
    with _TELEMETRY.starting:
        if not _TELEMETRY.is_tried:
            load("shared.platform.trace_export", "start_export")(get_settings())
            _TELEMETRY.is_tried = True


def build_services(settings: Settings) -> Services:
    """Create all adapters. No connection is opened and no SDK imported before an adapter's first call.

    The async clients belong to the event loop of that first call. A program whose loop ends before the
    process (a test, `asyncio.run`) must call `await services.close()` first.
    """
    to = Connections(settings)
    models = settings.models
    content_index, documents_index, memory_index = _indexes(to, settings)
    threads = Table(to.tables, names.THREADS_TABLE, is_sorted=not settings.storage.tables_are_in_cosmos_db)
    services = Services(
        settings=settings,
        content_index=content_index,
        documents_index=documents_index,
        memory_index=memory_index,
        search_admin=AzureSearchAdmin(to.search_admin, timeout_s=settings.search.timeout_s),
        chat_model=_chat_model(to, settings, models.chat, "CHAT_MODEL"),
        vision_model=_chat_model(to, settings, models.vision or models.chat, "VISION_MODEL"),
        embedder=_embedder(to, settings),
        blobs=BlobStore(to.blobs),
        run_log=BlobRunLog(to.blobs),
        runs=RunStore(Table(to.tables, names.RUNS_TABLE)),
        threads=ThreadStore(threads),
        documents=DocumentStore(Table(to.tables, names.DOCUMENTS_TABLE)),
        poison=PoisonQueues(to.queues),
        queues=TaskQueues(to.queues),
        subagent_control=ControlStore(Table(to.tables, names.SUBAGENT_CONTROL_TABLE)),
        idempotency=IdempotencyStore(Table(to.tables, names.IDEMPOTENCY_TABLE)),
        user_limits=UserLimitStore(Table(to.tables, names.USER_LIMITS_TABLE)),
        quality=QualityStore(Table(to.tables, names.QUALITY_TABLE)),
        audit=AuditTrail(Table(to.tables, names.AUDIT_TABLE)),
        directory=_directory(to, settings),
        parser_services=_parser_services(to, settings),
        databases=_databases(to, settings),
        other_models=cache(lambda name: _chat_model(to, settings, name, "the agent's model")),
        closers=(to.close,),
    )
    _add_tools(services, to)
    _add_channels(services, to)
    if settings.sharepoint.addresses:
        _add_sharepoint(services, to)
    return services


def _add_sharepoint(services: Services, to: Connections) -> None:
    settings = services.settings
    connection = connect_sharepoint()
    services.sharepoint = SharePointClient(
        connection,
        sharepoint_token(to.credentials),
        graph=settings.identity.graph_endpoint,
        hosts=[origin_of(address) for address in settings.sharepoint.addresses],
    )
    services.libraries = LibraryStore(
        Table(to.tables, names.LIBRARIES_TABLE, is_sorted=not settings.storage.tables_are_in_cosmos_db)
    )
    services.closers = (*services.closers, connection.close)


def _indexes(to: Connections, settings: Settings) -> tuple[SearchIndex, SearchIndex, SearchIndex]:
    """Return the indexes of blocks, documents and memories."""
    targets = WriteTargets(to.search_admin, timeout_s=settings.search.timeout_s)

    def index(name: str, which: str) -> MirroredIndex:
        opens = _opener(to, settings, which)
        return MirroredIndex(opens(name), name, targets, opens)

    names = settings.search
    return (
        index(names.content_index, "content"),
        index(names.documents_index, "documents"),
        index(names.memory_index, "memory"),
    )


def _add_tools(services: Services, to: Connections) -> None:
    settings = services.settings
    services.web_pages = WebPages(to.web_pages)
    if url := settings.web_search.url:
        kind = BraveWebSearch if settings.web_search.engine == "brave" else SearxngWebSearch
        services.web_search = kind(to.web_search, url)
    if settings.answering.enabled_tools:
        made = ((tool.name, tool.connect(settings)) for tool in enabled_tools(settings))
        clients = {name: client for name, client in made if client is not None}
        services.tool_clients = clients
        services.closers = (*services.closers, *(client.close for client in clients.values()))


def _add_channels(services: Services, to: Connections) -> None:
    settings = services.settings
    app_id, cloud = settings.bot.app_id, CLOUDS[settings.bot.cloud]
    tokens = ChannelTokens(SigningKeys(to.bot, cloud.keys_url), app_id, cloud.issuer) if app_id else None
    outbox = BotOutbox(settings, to.bot_token)
    services.bot_inbox = ChannelInbox(settings, tokens)
    services.bot_outbox = outbox
    services.bot_files = ChannelFiles(to.bot, settings, to.bot_token)
    services.bot_turns = BotTurnStore(Table(to.tables, names.BOT_TURNS_TABLE))
    services.closers = (*services.closers, outbox.close)


def _directory(to: Connections, settings: Settings) -> GroupDirectory:
    identity = settings.identity
    if identity.local_directory and not settings.host.in_azure:
        return ListedDirectory(identity.people)
    graph = GraphDirectory(to.graph, to.graph_token, identity.graph_endpoint, identity.graph_timeout_s)
    return CachedDirectory(graph, identity.group_cache_s)


def _databases(to: Connections, settings: Settings) -> Databases:
    return Databases(settings.databases.sources, lambda source: PostgresEngine(source, to.database_token))


def _chat_model(to: Connections, settings: Settings, model: str, setting: str) -> DeployedModel:
    endpoint = model_endpoint(settings)
    memory = FeatureMemory(settings.models.known_features)  # one per model: they differ within an endpoint
    chat_model = OpenAIChatModel(
        to.model,
        model,
        endpoint,
        setting,
        memory=memory,
        efforts=settings.models.efforts,
        room_tokens=settings.models.reasoning_room_tokens,
    )
    # Record spans only if they are exported.
    return (
        TracedChatModel(chat_model, model, provider_of(endpoint)) if settings.telemetry.is_on else chat_model
    )


def _embedder(to: Connections, settings: Settings) -> Embedder:
    endpoint, model = model_endpoint(settings), settings.models.embedding
    memory = FeatureMemory(settings.models.known_features)
    embedder = OpenAIEmbedder(to.model, model, settings.models.embedding_dimensions, endpoint, memory=memory)
    return TracedEmbedder(embedder, model, provider_of(endpoint)) if settings.telemetry.is_on else embedder


def _parser_services(to: Connections, settings: Settings) -> ParserServices:
    layouts = {
        "docling": Docling(to.docling),
        "document_intelligence": DocumentIntelligence(to.document_intelligence),
    }
    by_service = settings.ingestion.text_recognition == "document_intelligence"
    return ParserServices(
        layout=layouts.get(settings.ingestion.parser_backend),
        pages=DocumentIntelligence(to.document_intelligence) if by_service else None,
    )


@asynccontextmanager
async def opened_index_migration(
    settings: Settings, which: str, on_page: OnPage
) -> AsyncIterator[IndexMigration]:
    """Yield a migration of "content", "documents" or "memory" to a new index.

    Args:
        on_page: called after each copied page.
    """
    dimensions = settings.models.embedding_dimensions
    definitions = {
        "content": content_index(settings.search.content_index, dimensions),
        "documents": documents_index(settings.search.documents_index),
        "memory": memory_index(settings.search.memory_index, dimensions),
    }
    to = Connections(settings)
    try:
        yield IndexMigration(
            to.search_admin,
            _opener(to, settings, which),
            definitions[which],
            version=INDEX_VERSIONS[which],
            timeout_s=settings.search.timeout_s,
            on_page=on_page,
        )
    finally:
        await to.close()
