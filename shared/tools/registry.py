"""Every tool by its name, and how it is bound to a user. A new tool: its file, one line here, one in docs."""

from collections.abc import Callable, Mapping
from functools import partial

from shared.access.models import UserContext
from shared.conversations.memory import memory_search
from shared.documents.figures import image_urls
from shared.platform.errors import ConfigurationError
from shared.platform.language_models.models import CallLimits
from shared.retrieval.blocks import BlockLookup, BlockSearch
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.tools.ask_user import AskUser
from shared.tools.base import BlockJudge, DocumentTool, Tool
from shared.tools.facets import Facets
from shared.tools.get_document import GetDocument
from shared.tools.grade import Grade
from shared.tools.list_documents import ListDocuments
from shared.tools.metadata_search import MetadataSearch
from shared.tools.query_rewrite import RewriteQuery
from shared.tools.recall_memory import RecallMemory
from shared.tools.rerank import Rerank
from shared.tools.semantic_search import SemanticSearch
from shared.tools.services import ToolServices

Binding = Callable[[ToolServices, UserContext], Tool]

# Unmeasured with real models: scores of 20 passages are about 300 tokens, some seconds.
_JUDGE_LIMITS = CallLimits(timeout_s=15, max_output_tokens=1000)


def block_search(services: ToolServices, user: UserContext) -> BlockSearch:
    """Search over blocks, trimmed to what `user` may read."""
    return BlockSearch(
        SecuredIndex(services.content_index, user),
        services.embedder,
        CallLimits(timeout_s=services.settings.search.timeout_s),
        SecuredIndex(services.documents_index, user),
        semantic_ranker=services.settings.search.semantic_ranker,
    )


def _over_documents(tool: type[DocumentTool], services: ToolServices, user: UserContext) -> Tool:
    return tool(DocumentSearch(SecuredIndex(services.documents_index, user)))


def _judging(tool: type[BlockJudge], services: ToolServices, user: UserContext) -> Tool:
    return tool(BlockLookup(SecuredIndex(services.content_index, user)), services.chat_model, _JUDGE_LIMITS)


_DOCUMENT_TOOLS = (ListDocuments, GetDocument, MetadataSearch, Facets)
_JUDGES = (Rerank, Grade)
TOOLS: Mapping[str, Binding] = {
    SemanticSearch.name: lambda services, user: SemanticSearch(
        block_search(services, user), partial(image_urls, services=services)
    ),
    **{tool.name: partial(_over_documents, tool) for tool in _DOCUMENT_TOOLS},
    RewriteQuery.name: lambda services, user: RewriteQuery(
        services.chat_model, CallLimits(timeout_s=services.settings.answering.plan_timeout_s)
    ),
    **{tool.name: partial(_judging, tool) for tool in _JUDGES},
    RecallMemory.name: lambda services, user: RecallMemory(memory_search(services, user)),
    AskUser.name: lambda services, user: AskUser(),
}

RAG_TOOLS = tuple(TOOLS)
"""The tools of the agent for documents: all of them."""


def bound_tool(name: str, services: ToolServices, user: UserContext) -> Tool:
    """The tool of that name for one user.

    Raises:
        ConfigurationError: there is no such tool.
        AccessDeniedError: the user context has no user.
    """
    if name not in TOOLS:
        raise ConfigurationError(f"There is no tool {name!r}.", f"Tools: {', '.join(TOOLS)}.")
    return TOOLS[name](services, user)
