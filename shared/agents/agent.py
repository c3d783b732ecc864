"""Agents as configuration: a system prompt and a tool set over the one loop."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from shared.agents.inline import run_to_end
from shared.agents.memory_log import MemoryRunLog
from shared.agents.tools.base import Tool
from shared.agents.tools.get_document import GetDocument
from shared.agents.tools.list_documents import ListDocuments
from shared.agents.tools.semantic_search import SemanticSearch
from shared.agents.working_memory import WorkingMemory
from shared.models.events import EventName, RunEvent
from shared.models.identity import UserContext
from shared.models.prompts import CallLimits
from shared.models.runs import RunRequest
from shared.retrieval.blocks import BlockSearch
from shared.retrieval.documents import DocumentSearch
from shared.retrieval.secured_index import SecuredIndex
from shared.services import Services

AGENT_EVENTS: frozenset[EventName] = frozenset(
    {"THOUGHT", "ACTION", "TOOL_STARTED", "TOOL_RESULT", "ASK_USER", "COMPLETE", "ERROR"}
)


@dataclass(frozen=True)
class Agent:
    """An agent bound to one user. Make it with `create_rag_agent`."""

    services: Services
    user: UserContext
    tools: tuple[Tool, ...]

    @classmethod
    def create_rag_agent(cls, services: Services, user: UserContext) -> "Agent":
        """The agent that answers from documents, with every document tool bound to `user`.

        Raises:
            AccessDeniedError: the user context names nobody.
        """
        return cls(services=services, user=user, tools=tuple(document_tools(services, user)))

    async def execute(self, user_message: str, session_id: str | None = None) -> AsyncIterator[RunEvent]:
        """Answer a message; yields the seven agent events as they happen, COMPLETE or ERROR last.

        Args:
            user_message: the question.
            session_id: the thread it belongs to; None starts a new one.
        """
        log = MemoryRunLog()
        services = replace(self.services, run_log=log)
        request = RunRequest(
            run_id=uuid.uuid4().hex,
            thread_id=session_id or uuid.uuid4().hex,
            user=self.user,
            question=user_message,
            created_at=datetime.now(UTC),
        )
        await log.create(request.run_id)
        await WorkingMemory(services.blobs, request.run_id).put_request(request)
        run: asyncio.Task[object] = asyncio.create_task(run_to_end(request.run_id, services))
        try:
            async for event in log.follow(request.run_id, run):
                if event.name in AGENT_EVENTS:
                    yield event
        finally:
            run.cancel()


def document_tools(services: Services, user: UserContext) -> Sequence[Tool]:
    """The tools over documents, each trimmed to what `user` may read."""
    documents = DocumentSearch(SecuredIndex(services.documents_index, user))
    return (
        SemanticSearch(block_search(services, user)),
        ListDocuments(documents),
        GetDocument(documents),
    )


def block_search(services: Services, user: UserContext) -> BlockSearch:
    """Search over blocks, trimmed to what `user` may read."""
    limits = CallLimits(timeout_s=services.settings.search_timeout_s)
    return BlockSearch(SecuredIndex(services.content_index, user), services.embedder, limits)
