"""Registry of all tools by name. A tool added here appears in the app, the documentation and the tests."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from shared.access.models import UserContext
from shared.platform.errors import ConfigurationError
from shared.platform.language_models.models import ToolDefinition
from shared.platform.search import Filters
from shared.platform.settings import Settings, setting_groups
from shared.platform.settings_groups.base import SettingsGroup
from shared.runs.agents import AgentDefinition
from shared.tools.ask_user import AskUser
from shared.tools.base import Tool, ToolEvidence
from shared.tools.binding import Binding, block_search, run_query_of
from shared.tools.block_judges import Grade, Rerank
from shared.tools.delegate import Delegate
from shared.tools.document_tools import Facets, GetDocument, ListDocuments, MetadataSearch
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
from shared.tools.table_tools import ListTables, QueryStructuredData, RunSql
from shared.tools.view_figure import ViewFigure
from shared.tools.workspace_tools import FileRead, FileWrite

__all__ = [
    "ANSWER_TOOLS",
    "OPTIONAL_TOOLS",
    "OUTSIDE_TOOLS",
    "TABLE_TOOLS",
    "TOOLS",
    "Binding",
    "all_setting_groups",
    "block_search",
    "bound_tool",
    "check_tools",
    "enabled_tools",
    "run_query_of",
    "tool_definition",
    "tools_of",
]

# Tools offered for every question that does not name an agent.
_ANSWERING: tuple[type[Tool], ...] = (
    SemanticSearch,
    ReadPages,
    ListDocuments,
    MetadataSearch,
    GetDocument,
    ViewFigure,
    RecallMemory,
    AskUser,
)
# Tools offered in addition if the question or its evidence concerns tables.
_OVER_TABLES: tuple[type[Tool], ...] = (ListTables, QueryStructuredData, RunSql)
# Tools offered only to agents that list them, or if AGENT_TOOLS contains their names.
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
)
TOOLS: Mapping[str, type[Tool]] = {tool.name: tool for tool in (*_ANSWERING, *_OVER_TABLES, *_OTHERS)}
ANSWER_TOOLS = (*(tool.name for tool in _ANSWERING), Delegate.name)
TABLE_TOOLS = tuple(tool.name for tool in _OVER_TABLES)
OPTIONAL_TOOLS = tuple(tool.name for tool in _OTHERS if tool.is_optional)
OUTSIDE_TOOLS = tuple(tool.name for tool in TOOLS.values() if tool.sends_outside)
_KINDS: Mapping[str, type[Tool]] = {**TOOLS, Delegate.name: Delegate}
"""The tools that an agent may list."""

_UNAVAILABLE = {
    "git": "a client whose connections can be checked against private networks",
    "powershell": "a pool of remote sessions, because no shell runs next to the app",
}


def enabled_tools(settings: Settings) -> tuple[type[Tool], ...]:
    """Return the optional tools in AGENT_TOOLS, after validating their settings.

    Raises:
        ConfigurationError: a name isn't an optional tool, or a tool's setting is wrong.
    """
    names = settings.answering.enabled_tools
    for name in names:
        if name in _UNAVAILABLE:
            raise ConfigurationError(f"AGENT_TOOLS: {name} is not available; it needs {_UNAVAILABLE[name]}.")
        if name not in OPTIONAL_TOOLS:
            raise ConfigurationError(
                f"AGENT_TOOLS: there is no tool {name!r}, only {', '.join(OPTIONAL_TOOLS)}."
            )
    tools = tuple(TOOLS[name] for name in names)
    for group in _own_settings(tools):
        settings.group(group)
    return tools


def all_setting_groups() -> dict[str, type[SettingsGroup]]:
    """Return all setting groups of the app and its tools, by class name."""
    return setting_groups() | {group.__name__: group for group in _own_settings(TOOLS.values())}


def _own_settings(tools: Iterable[type[Tool]]) -> list[type[SettingsGroup]]:
    return [tool.settings for tool in tools if tool.settings is not None]


def check_tools(names: Sequence[str], enabled: Sequence[str]) -> None:
    """Raise an error unless an agent can use all tools that it lists.

    Args:
        enabled: names of the tools in AGENT_TOOLS.

    Raises:
        ConfigurationError: a tool doesn't exist, is disabled or is listed twice.
    """
    for place, name in enumerate(names):
        if name in OPTIONAL_TOOLS and name not in enabled:
            raise ConfigurationError(f"The tool {name} is disabled.", f"Add {name} to AGENT_TOOLS.")
        if name not in _KINDS:
            raise ConfigurationError(f"There is no tool {name!r}.", f"Tools: {', '.join(_KINDS)}.")
        if name in names[:place]:
            raise ConfigurationError(f"The tool {name} is listed twice.")


def tools_of(
    agent: AgentDefinition | None, settings: Settings, *, has_tables: bool = False
) -> tuple[str, ...]:
    """Return the names of the tools offered to the model: the tools that the agent lists or, without an
    agent, the standard tools, the tools in AGENT_TOOLS and, with `has_tables`, the table tools.

    The order is fixed, so that endpoints can cache the prompt.
    """
    enabled = settings.answering.enabled_tools
    if agent is None:
        return (*ANSWER_TOOLS, *enabled, *(TABLE_TOOLS if has_tables else ()))
    # A tool may have been disabled after the run started.
    return tuple(name for name in agent.tools if name not in OPTIONAL_TOOLS or name in enabled)


@cache
def tool_definition(name: str) -> ToolDefinition:
    """Return the definition of a tool for the model. It never varies, so that model endpoints can cache the
    prompt.
    """
    tool = _KINDS[name]
    return ToolDefinition(
        name=tool.name, description=tool.description, parameters=tool.parameters.plain_schema()
    )


def bound_tool(
    name: str,
    services: ToolServices,
    user: UserContext,
    scope: Filters | None = None,
    evidence: ToolEvidence | None = None,
    *,
    outside: Outside | None = None,
) -> Tool:
    """Create the named tool for one user. The other parameters are described in `Binding`.

    Raises:
        ConfigurationError: the tool doesn't exist.
        AccessDeniedError: the user context has no user.
    """
    if name not in TOOLS:
        raise ConfigurationError(f"There is no tool {name!r}.", f"Tools: {', '.join(TOOLS)}.")
    return TOOLS[name].bind(
        Binding(services, user, scope or {}, evidence or ToolEvidence(), outside or Outside())
    )
