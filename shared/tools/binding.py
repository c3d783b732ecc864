"""The context of a tool call: the app's services and the user on whose behalf it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from shared.access.daily_use import CALCULATING, Usage
from shared.access.limits import admit, charge
from shared.access.models import UserContext
from shared.access.security_filter import readable_databases
from shared.platform.errors import BudgetExceededError, DailyLimitError
from shared.platform.language_models.models import CallLimits
from shared.platform.search import Filters
from shared.retrieval.blocks import BlockSearch, DegradationPolicy
from shared.retrieval.document_rows import RowsReadOnce
from shared.retrieval.filters import BLOCK_FIELDS, DOCUMENT_FIELDS, render_filters
from shared.retrieval.secured_index import SecuredIndex
from shared.tables.queries import QueryResult
from shared.tables.readable_tables import ReadableTable, TableLookup
from shared.tools.base import ToolClient, ToolEvidence
from shared.tools.outside import Outside
from shared.tools.searches import configured_block_search
from shared.tools.services import ToolServices
from shared.tools.table_queries import RunQuery, run_query
from shared.tools.workspace import Workspace

Client = TypeVar("Client", bound=ToolClient)


@dataclass(frozen=True)
class Binding:
    """The user and services of one tool call. Create one per call, because it caches document rows.

    Attributes:
        scope: the caller's filters on every search; the filters of a tool can only narrow them.
        evidence: receives the evidence of the call.
        outside: the run's web permissions; by default no page may be read.
    """

    services: ToolServices
    user: UserContext
    scope: Filters = field(default_factory=dict)
    evidence: ToolEvidence = field(default_factory=ToolEvidence)
    outside: Outside = field(default_factory=Outside)

    @cached_property
    def rows(self) -> RowsReadOnce:
        """Cache of document rows, so that one call reads each row only once."""
        return RowsReadOnce(self.services.documents)

    @property
    def blocks(self) -> SecuredIndex:
        """The index of blocks, restricted to the user's permissions and the caller's scope."""
        within = render_filters(self.scope, BLOCK_FIELDS)
        return SecuredIndex(self.services.content_index, self.user, self.rows, within=within)

    @property
    def documents(self) -> SecuredIndex:
        """The index of documents, restricted to the user's permissions and the caller's scope."""
        within = render_filters(self.scope, DOCUMENT_FIELDS)
        return SecuredIndex(self.services.documents_index, self.user, self.rows, within=within)

    @property
    def tables(self) -> TableLookup:
        """Lookup of the tables that the user may read. Databases are excluded if the caller set a scope."""
        blocks, documents = self.blocks, self.documents
        sources = self.services.settings.databases.sources
        # A scope limits documents and cannot be applied to databases.
        databases = {} if self.scope else readable_databases(self.user, sources)
        return TableLookup(blocks, documents, self.user, self.services, databases)

    @property
    def limits(self) -> CallLimits:
        """The time limit of one search."""
        return CallLimits(timeout_s=self.services.settings.search.timeout_s)

    def client(self, tool: str, kind: type[Client]) -> Client | None:
        """Return the connection of a tool, or None if the tool is disabled or needs none."""
        client = self.services.tool_clients.get(tool)
        return client if isinstance(client, kind) else None

    def is_enabled(self, tool: str) -> bool:
        """Return whether AGENT_TOOLS enables the tool."""
        return tool in self.services.settings.answering.enabled_tools

    def workspace_of(self, tool: str) -> Workspace | None:
        """Return the user's workspace, or None if the tool is disabled."""
        return Workspace(self.services.blobs, self.user) if self.is_enabled(tool) else None

    def block_search(self, degradation: DegradationPolicy | None = None) -> BlockSearch:
        """Return a search over blocks that the user may read. `degradation` decides what happens if embedding
        fails or is slow; see `BlockSearch`.
        """
        return configured_block_search(self.blocks, self.documents, self.services, degradation)


def block_search(services: ToolServices, user: UserContext) -> BlockSearch:
    """Return a search over blocks that `user` may read. If embedding fails or is slow, only keywords are
    searched.
    """
    binding, patience_s = Binding(services, user), 2 * services.settings.search.timeout_s
    return binding.block_search(DegradationPolicy(embed_limits=binding.limits, patience_s=patience_s))


def run_query_of(binding: Binding) -> RunQuery:
    """Return a function that runs SQL over tables and charges the worker time to the user's daily limit."""
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
