"""The registry's tools over fakes, and good arguments for each."""

from typing import Any

from shared.access.models import UserContext
from shared.platform.language_models.models import ChatModel
from shared.tools.base import Tool
from shared.tools.registry import bound_tool
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_services

ARGUMENTS: dict[str, dict[str, Any]] = {
    "rag_semantic_search": {"query": "pump"},
    "rag_list_documents": {},
    "rag_get_document": {"doc_id": "manual"},
    "read_pages": {"doc_id": "manual"},
    "view_figure": {"block_id": "manual-1"},
    "rag_metadata_search": {"query": "pump"},
    "rag_facets": {},
    "query_rewrite": {"question": "And its weight?"},
    "rerank": {"query": "pump", "block_ids": ["manual-1"]},
    "grade": {"query": "pump", "block_ids": ["manual-1"]},
    "recall_memory": {"query": "pump"},
    "ask_user": {"question": "Which one?"},
    "web_search": {"query": "pump"},
    "web_fetch": {"url": "https://example.org/"},
    "python": {"code": "1 + 1"},
    "github": {"action": "get_file", "repo": "contoso/app", "path": "README.md"},
    "file_read": {"path": "notes.md"},
    "file_write": {"path": "notes.md", "text": "pump"},
    "list_tables": {},
    "query_structured_data": {"question": "pump"},
    "run_sql": {"sql": "SELECT 1", "table_ids": ["manual.1"]},
}
SEARCHING = (
    "rag_semantic_search",
    "rag_list_documents",
    "rag_get_document",
    "read_pages",
    "rag_metadata_search",
    "rag_facets",
)
BY_BLOCKS = ("rerank", "grade")
ASKING_A_MODEL = (*BY_BLOCKS, "query_rewrite")


def tool_for(name: str, user: UserContext, chat_model: ChatModel | None = None) -> Tool:
    """A tool over empty indexes."""
    return bound_tool(name, fake_services(chat_model=chat_model or ScriptedChatModel()), user)
