"""The registered tools over fakes, and valid arguments for each."""

import json
from typing import Any

from shared.access.models import UserContext
from shared.platform.language_models.models import ChatModel
from shared.tools.base import Tool
from shared.tools.registry import TOOLS, bound_tool
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_services

ARGUMENTS: dict[str, dict[str, Any]] = {name: json.loads(tool.example) for name, tool in TOOLS.items()}
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
    """Return a tool over empty indexes."""
    return bound_tool(name, fake_services(chat_model=chat_model or ScriptedChatModel()), user)
