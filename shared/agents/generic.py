"""A generic agent: a name, a system prompt and a tool set over a loop of thought, action, observation."""

import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cached_property

from shared.agents.generic_events import GenericEvents
from shared.agents.generic_history import SessionHistory
from shared.agents.generic_run import GenericRun
from shared.agents.prompt_files import load
from shared.agents.tools.base import Tool
from shared.core.prompts import render
from shared.core.tool_loop import begin
from shared.errors import GroundworkError
from shared.models.conversing import ToolDefinition
from shared.models.events import RunEvent
from shared.models.tool_steps import LoopLimits
from shared.ports import ChatModel


class GenericAgent:
    """Answers by calling tools, which are bound to its user already; remembers its sessions."""

    def __init__(
        self, name: str, system_prompt: str, tools: Sequence[Tool], chat_model: ChatModel, limits: LoopLimits
    ) -> None:
        """`system_prompt`: what the agent is for, in its owner's words; text, no template."""
        self._tools = {tool.name: tool for tool in tools}
        self._chat_model = chat_model
        self._limits = limits
        self._sessions = SessionHistory()
        self._system = render(
            load("generic"),
            {
                "name": name,
                "instructions": system_prompt.strip(),
                "tools": ", ".join(self._tools) or "none",
            },
        )

    @cached_property
    def _definitions(self) -> tuple[ToolDefinition, ...]:
        """Made with the first answer, 0.4 ms a tool: many agents are made for one question or none."""
        return tuple(tool.definition for tool in self._tools.values())

    async def answer(self, question: str, session_id: str | None) -> AsyncGenerator[RunEvent]:
        """The events of one answer, COMPLETE or ERROR last. No `session_id` begins a new session."""
        session = session_id or uuid.uuid4().hex
        events = GenericEvents(run_id=uuid.uuid4().hex, thread_id=session)
        run = GenericRun(
            begin(self._system, self._sessions.of(session), question, self._definitions),
            events,
            tools=self._tools,
            definitions=self._definitions,
            chat_model=self._chat_model,
            limits=self._limits,
        )
        try:
            # Closed here, so that a reader that goes away ends the model's work at once.
            async with aclosing(run.play()) as told:
                async for event in told:
                    if event.name == "COMPLETE":
                        self._sessions.remember(session, question, event.data["answer"]["text"])
                    yield event
        except GroundworkError as failed:
            yield events.error(failed)
