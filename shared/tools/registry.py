"""Every tool by its name, and how it is bound to a user. A new tool: a class, a line here, one in docs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from shared.access.daily_use import CALCULATING, Usage
from shared.access.limits import admit, charge
from shared.access.models import UserContext
from shared.access.security_filter import readable_databases
from shared.conversations.memory import MemorySearch
from shared.documents.figures import image_urls
from shared.platform.errors import BudgetExceededError, ConfigurationError, DailyLimitError
from shared.platform.language_models.models import CallLimits, ToolDefinition
from shared.platform.search import Filters
from shared.platform.settings import OPTIONAL_TOOLS, Settings
from shared.retrieval.blocks import BlockLookup, BlockSearch, DegradationPolicy, DocumentBlocks
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.filters import BLOCK_FIELDS, DOCUMENT_FIELDS, render_filters
from shared.retrieval.fusion import relevant_cosine
from shared.retrieval.secured_index import SecuredIndex
from shared.runs.agents import AgentDefinition
from shared.tables.queries import QueryResult
from shared.tables.readable_tables import ReadableTable, TableLookup
from shared.tools.ask_user import AskUser
from shared.tools.base import Found, Tool
from shared.tools.block_judges import BlockJudge, Grade, Rerank
from shared.tools.delegate import Delegate
from shared.tools.document_tools import DocumentTool, Facets, GetDocument, ListDocuments, MetadataSearch
from shared.tools.fetch_page import FetchPage
from shared.tools.outside import Outside
from shared.tools.query_rewrite import RewriteQuery
from shared.tools.read_github import ReadGithub
from shared.tools.read_pages import ReadPages
from shared.tools.recall_memory import RecallMemory
from shared.tools.run_python import RunPython
from shared.tools.search_web import SearchWeb
from shared.tools.semantic_search import SemanticSearch
from shared.tools.services import ToolServices
from shared.tools.table_queries import run_query
from shared.tools.table_tools import ListTables, QueryStructuredData, RunQuery, RunSql
from shared.tools.view_figure import ViewFigure
from shared.tools.workspace import Workspace
from shared.tools.workspace_tools import FileRead, FileWrite

# Unmeasured with real models: scores of 20 passages are about 300 tokens, some seconds.
_JUDGE_TOKENS = 1000


@dataclass(frozen=True)
class Binding:
    """Who tools work for, and where.

    Attributes:
        scope: limits that the caller set on every search; a tool's own filters only narrow them.
        found: collects what is found.
        outside: how the run may use the web; by itself no page is open to it.
    """

    services: ToolServices
    user: UserContext
    scope: Filters = field(default_factory=dict)
    found: Found = field(default_factory=Found)
    outside: Outside = field(default_factory=Outside)

    @property
    def blocks(self) -> SecuredIndex:
        """The index of blocks, trimmed."""
        within = render_filters(self.scope, BLOCK_FIELDS)
        return SecuredIndex(self.services.content_index, self.user, within=within)

    @property
    def documents(self) -> SecuredIndex:
        """The index of documents, trimmed."""
        within = render_filters(self.scope, DOCUMENT_FIELDS)
        return SecuredIndex(self.services.documents_index, self.user, within=within)

    @property
    def tables(self) -> TableLookup:
        """The tables, trimmed."""
        blocks, documents = self.blocks, self.documents
        sources = self.services.settings.databases.sources
        # What a caller limits a search to, no database has.
        databases = {} if self.scope else readable_databases(self.user, sources)
        return TableLookup(blocks, documents, self.user, self.services, databases)

    @property
    def limits(self) -> CallLimits:
        """Of one search."""
        return CallLimits(timeout_s=self.services.settings.search.timeout_s)

    def block_search(self, degradation: DegradationPolicy | None = None) -> BlockSearch:
        """Search over blocks; `degradation` as for `BlockSearch`."""
        settings, models = self.services.settings, self.services.settings.models
        return BlockSearch(
            self.blocks,
            self.services.embedder,
            self.limits,
            self.documents,
            semantic_ranker=settings.search.semantic_ranker,
            degradation=degradation,
            relevant_cosine=models.relevant_cosine or relevant_cosine(models.embedding),
        )


def block_search(services: ToolServices, user: UserContext) -> BlockSearch:
    """Search over blocks that `user` may read; by words alone when the embedder fails or is late."""
    binding, patience_s = Binding(services, user), 2 * services.settings.search.timeout_s
    return binding.block_search(DegradationPolicy(embed_limits=binding.limits, patience_s=patience_s))


def _semantic_search(binding: Binding) -> Tool:
    urls = partial(image_urls, services=binding.services)
    return SemanticSearch(binding.block_search(), urls, binding.found)


def _rewrite_query(binding: Binding) -> Tool:
    timeout_s = binding.services.settings.answering.plan_timeout_s
    return RewriteQuery(binding.services.chat_model, CallLimits(timeout_s=timeout_s))


def _over_documents(tool: type[DocumentTool], binding: Binding) -> Tool:
    return tool(DocumentSearch(binding.documents), binding.found)


def _fetch_page(binding: Binding) -> Tool:
    services = binding.services
    memory_mb, whose = services.settings.host.instance_memory_mb, binding.user.user_id
    is_on = FetchPage.name in services.settings.answering.enabled_tools
    pages = services.web_pages if is_on else None
    return FetchPage(pages, binding.outside, memory_mb, whose, binding.found)


def _judging(tool: type[BlockJudge], binding: Binding) -> Tool:
    timeout_s = binding.services.settings.answering.judge_timeout_s
    limits = CallLimits(timeout_s=timeout_s, max_output_tokens=_JUDGE_TOKENS)
    return tool(BlockLookup(binding.blocks), binding.services.chat_model, limits)


def run_query_of(binding: Binding) -> RunQuery:
    """Return what runs SQL for the user over tables that they may read, and charges its time to them."""
    services, user = binding.services, binding.user

    async def charge_seconds(seconds: float) -> None:
        await charge(user.user_id, Usage(parser_seconds=seconds), services.user_limits)

    async def run(sql: str, tables: Sequence[ReadableTable]) -> QueryResult:
        try:
            await admit(user, services.settings, services.user_limits, calls=0, needs=CALCULATING)
        except DailyLimitError as used_up:
            raise BudgetExceededError(used_up.detail, *used_up.hints) from None
        return await run_query(
            sql,
            tables,
            blobs=services.blobs,
            databases=services.databases,
            instance_memory_mb=services.settings.host.instance_memory_mb,
            whose=user.user_id,
            charge=charge_seconds,
        )

    return run


def _query_structured_data(binding: Binding) -> Tool:
    services = binding.services
    models = services.chat_model, services.embedder
    drafting = CallLimits(timeout_s=services.settings.answering.answer_timeout_s)
    return QueryStructuredData(
        binding.tables, run_query_of(binding), *models, binding.limits, binding.found, drafting
    )


def _workspace(binding: Binding, tool: type[Tool]) -> Workspace | None:
    services = binding.services
    is_on = tool.name in services.settings.answering.enabled_tools
    return Workspace(services.blobs, binding.user) if is_on else None


TOOLS: Mapping[str, Callable[[Binding], Tool]] = {
    SemanticSearch.name: _semantic_search,
    ReadPages.name: lambda binding: ReadPages(
        DocumentBlocks(binding.blocks), DocumentSearch(binding.documents), binding.found
    ),
    ViewFigure.name: lambda binding: ViewFigure(BlockLookup(binding.blocks), binding.found),
    **{
        tool.name: partial(_over_documents, tool)
        for tool in (ListDocuments, GetDocument, MetadataSearch, Facets)
    },
    RewriteQuery.name: _rewrite_query,
    **{tool.name: partial(_judging, tool) for tool in (Rerank, Grade)},
    RecallMemory.name: lambda binding: RecallMemory(MemorySearch(binding.services, binding.user)),
    AskUser.name: lambda binding: AskUser(),
    SearchWeb.name: lambda binding: SearchWeb(
        binding.services.web_search, binding.limits, binding.outside, binding.found
    ),
    FetchPage.name: _fetch_page,
    RunPython.name: lambda binding: RunPython(binding.services.sandbox, _workspace(binding, FileRead)),
    ReadGithub.name: lambda binding: ReadGithub(binding.services.github, binding.limits, binding.outside),
    FileRead.name: lambda binding: FileRead(_workspace(binding, FileRead)),
    FileWrite.name: lambda binding: FileWrite(
        _workspace(binding, FileWrite), binding.user, binding.services.audit
    ),
    ListTables.name: lambda binding: ListTables(binding.tables, binding.services.embedder, binding.limits),
    QueryStructuredData.name: _query_structured_data,
    RunSql.name: lambda binding: RunSql(binding.tables, run_query_of(binding), binding.found),
}

_ANSWERING: tuple[type[Tool], ...] = (
    SemanticSearch,
    ReadPages,
    ListDocuments,
    MetadataSearch,
    GetDocument,
    ViewFigure,
    RecallMemory,
    AskUser,
    Delegate,
)
ANSWER_TOOLS = tuple(tool.name for tool in _ANSWERING)
"""The tools that the model has while it answers a question without an agent."""

TABLE_TOOLS = (ListTables.name, QueryStructuredData.name, RunSql.name)
"""Those it has in addition where a question, or what was found for it, has to do with tables."""

_OTHERS: tuple[type[Tool], ...] = (
    Facets,
    RewriteQuery,
    Rerank,
    Grade,
    RunPython,
    ReadGithub,
    FileRead,
    FileWrite,
    SearchWeb,
    FetchPage,
    ListTables,
    QueryStructuredData,
    RunSql,
)
_KINDS: Mapping[str, type[Tool]] = {tool.name: tool for tool in (*_ANSWERING, *_OTHERS)}
"""The tools that an agent may name."""


def check_tools(names: Sequence[str], enabled: Sequence[str]) -> None:
    """Whether an agent can have these tools.

    Args:
        enabled: tools of AGENT_TOOLS.

    Raises:
        ConfigurationError: there is no such tool, it is switched off, or named twice.
    """
    for place, name in enumerate(names):
        if name in OPTIONAL_TOOLS and name not in enabled:
            raise ConfigurationError(f"The tool {name} is switched off.", f"Add {name} to AGENT_TOOLS.")
        if name not in _KINDS:
            raise ConfigurationError(f"There is no tool {name!r}.", f"Tools: {', '.join(_KINDS)}.")
        if name in names[:place]:
            raise ConfigurationError(f"The tool {name} is named twice.")


def tools_of(
    agent: AgentDefinition | None, settings: Settings, *, has_tables: bool = False
) -> tuple[str, ...]:
    """The tools that the model may call; without an agent those of every question, then those of tables.

    The order is always the same, so that an endpoint can read them from its cache.
    """
    enabled = settings.answering.enabled_tools
    if agent is None:
        return (*ANSWER_TOOLS, *enabled, *(TABLE_TOOLS if has_tables else ()))
    # One that was switched off since the run began is gone.
    return tuple(name for name in agent.tools if name not in OPTIONAL_TOOLS or name in enabled)


@cache
def tool_definition(name: str) -> ToolDefinition:
    """A tool as a model sees it: equal for every question, so that it can be cached."""
    tool = _KINDS[name]
    return ToolDefinition(
        name=tool.name, description=tool.description, parameters=tool.parameters.plain_schema()
    )


def bound_tool(
    name: str,
    services: ToolServices,
    user: UserContext,
    scope: Filters | None = None,
    found: Found | None = None,
    *,
    outside: Outside | None = None,
) -> Tool:
    """The tool of that name for one user. `scope`, `found`, `outside`: see `Binding`.

    Raises:
        ConfigurationError: there is no such tool.
        AccessDeniedError: the user context has no user.
    """
    if name not in TOOLS:
        raise ConfigurationError(f"There is no tool {name!r}.", f"Tools: {', '.join(TOOLS)}.")
    return TOOLS[name](Binding(services, user, scope or {}, found or Found(), outside or Outside()))
