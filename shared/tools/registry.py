"""Every tool by its name, and how it is bound to a user. A new tool: its file, one line here, one in docs."""

from collections.abc import Callable, Mapping
from functools import partial

from shared.access.models import UserContext
from shared.conversations.memory import memory_search
from shared.documents.figures import image_urls
from shared.platform.errors import ConfigurationError
from shared.platform.language_models.models import CallLimits
from shared.platform.search import SearchIndex
from shared.retrieval.blocks import BlockLookup, BlockSearch
from shared.retrieval.documents import DocumentFacets, DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.tools.ask_user import AskUser
from shared.tools.base import Tool
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
_JUDGING = CallLimits(timeout_s=15, max_output_tokens=1000)


def block_search(services: ToolServices, user: UserContext) -> BlockSearch:
    """Search over blocks, trimmed to what `user` may read."""
    limits = CallLimits(timeout_s=services.settings.search_timeout_s)
    documents = SecuredIndex(services.documents_index, user)
    return BlockSearch(
        SecuredIndex(services.content_index, user),
        services.embedder,
        limits,
        documents,
        semantic_ranker=services.settings.semantic_ranker,
    )


def document_search(documents_index: SearchIndex, user: UserContext) -> DocumentSearch:
    """Search over documents, trimmed to what `user` may read."""
    return DocumentSearch(SecuredIndex(documents_index, user))


def _semantic_search(services: ToolServices, user: UserContext) -> Tool:
    return SemanticSearch(block_search(services, user), partial(image_urls, services=services))


def _facets(services: ToolServices, user: UserContext) -> Tool:
    return Facets(DocumentFacets(SecuredIndex(services.documents_index, user)))


def _rewrite(services: ToolServices, user: UserContext) -> Tool:
    return RewriteQuery(services.chat_model, CallLimits(timeout_s=services.settings.plan_timeout_s))


def _rerank(services: ToolServices, user: UserContext) -> Tool:
    return Rerank(BlockLookup(SecuredIndex(services.content_index, user)), services.chat_model, _JUDGING)


def _grade(services: ToolServices, user: UserContext) -> Tool:
    return Grade(BlockLookup(SecuredIndex(services.content_index, user)), services.chat_model, _JUDGING)


TOOLS: Mapping[str, Binding] = {
    SemanticSearch.name: _semantic_search,
    ListDocuments.name: lambda services, user: ListDocuments(document_search(services.documents_index, user)),
    GetDocument.name: lambda services, user: GetDocument(document_search(services.documents_index, user)),
    MetadataSearch.name: lambda services, user: MetadataSearch(
        document_search(services.documents_index, user)
    ),
    Facets.name: _facets,
    RewriteQuery.name: _rewrite,
    Rerank.name: _rerank,
    Grade.name: _grade,
    RecallMemory.name: lambda services, user: RecallMemory(memory_search(services, user)),
    AskUser.name: lambda services, user: AskUser(),
}

RAG_TOOLS = tuple(TOOLS)
"""What the agent for documents has at hand: everything."""


def bound_tool(name: str, services: ToolServices, user: UserContext) -> Tool:
    """The tool of that name for one user.

    Raises:
        ConfigurationError: there is no such tool.
        AccessDeniedError: the user context names nobody.
    """
    if name not in TOOLS:
        raise ConfigurationError(f"There is no tool {name!r}.", f"Tools: {', '.join(TOOLS)}.")
    return TOOLS[name](services, user)
