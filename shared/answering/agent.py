"""Agents as configuration: a system prompt and a tool set, bound to one user.

`create_agent` runs them over the generic loop. `create_rag_agent` answers from documents by the loop that all
channels use; its prompts replace the generic one whole.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from shared.access.models import UserContext
from shared.answering.generic import GenericAgent
from shared.answering.services import AnsweringServices
from shared.answering.session import answer_from_documents
from shared.platform.errors import ConfigurationError
from shared.runs.events import RunEvent
from shared.runs.log_lines import EventName
from shared.tools.base import Tool
from shared.tools.loop import LoopLimits
from shared.tools.registry import RAG_TOOLS, block_search, bound_tool

__all__ = ["AGENT_EVENTS", "Agent", "block_search"]

AGENT_EVENTS: frozenset[EventName] = frozenset(
    {"THOUGHT", "ACTION", "TOOL_STARTED", "TOOL_RESULT", "ASK_USER", "COMPLETE", "ERROR"}
)


@dataclass(frozen=True)
class Agent:
    """An agent bound to one user. Make it with `create_rag_agent` or `create_agent`."""

    services: AnsweringServices
    user: UserContext
    tools: tuple[Tool, ...]
    name: str = "rag"
    generic: GenericAgent | None = None

    @classmethod
    def create_rag_agent(cls, services: AnsweringServices, user: UserContext) -> "Agent":
        """The agent that answers from documents, with every document tool bound to `user`.

        Raises:
            AccessDeniedError: the user context names nobody.
        """
        tools = tuple(bound_tool(name, services, user) for name in RAG_TOOLS)
        return cls(services=services, user=user, tools=tools)

    @classmethod
    def create_agent(
        cls,
        name: str,
        system_prompt: str,
        tools: Sequence[str | Tool],
        *,
        services: AnsweringServices,
        user: UserContext,
        limits: LoopLimits | None = None,
    ) -> "Agent":
        """An agent of your own, over the generic loop.

        Args:
            name: what it calls itself.
            system_prompt: what it is for and how it answers; the rules of the loop are added around it.
            tools: names of the registry, which are bound to `user` here, or tools that are bound already.
            limits: turns, calls, tokens and time of one answer.

        Raises:
            ConfigurationError: there is no such tool, or two have one name.
            AccessDeniedError: the user context names nobody.
        """
        bound = tuple(bound_tool(tool, services, user) if isinstance(tool, str) else tool for tool in tools)
        if len({tool.name for tool in bound}) < len(bound):
            raise ConfigurationError(f"Two tools of the agent {name!r} have the same name.")
        generic = GenericAgent(name, system_prompt, bound, services.chat_model, limits or LoopLimits())
        return cls(services=services, user=user, tools=bound, name=name, generic=generic)

    async def execute(self, user_message: str, session_id: str | None = None) -> AsyncIterator[RunEvent]:
        """Answer a message; yields the seven agent events as they happen, COMPLETE or ERROR last.

        An agent over documents may end with ASK_USER instead: then the next message of the session is taken
        as the answer to it.

        Args:
            user_message: the question, or the answer to what was asked.
            session_id: the thread it belongs to; None starts a new one.
        """
        answer = self.generic.answer if self.generic else self._answer_from_documents
        async with aclosing(answer(user_message, session_id)) as events:
            async for event in events:
                yield event

    async def _answer_from_documents(
        self, user_message: str, session_id: str | None
    ) -> AsyncGenerator[RunEvent]:
        events = answer_from_documents(self.services, self.user, user_message, session_id)
        async with aclosing(events):
            async for event in events:
                if event.name in AGENT_EVENTS:
                    yield event
