"""Python API for agents. All channels use the same loop; here it runs in the caller's process for a single
user.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.access.security_filter import principals
from shared.answering.agent_files import read_agent
from shared.answering.agent_sessions import AgentSession, SessionHistory, WaitingRun, delete_run
from shared.answering.clarification import read_reply
from shared.answering.inline import run_to_end, waits
from shared.answering.models import Turn
from shared.answering.script import StepResults
from shared.answering.services import AnsweringServices
from shared.answering.steps import AnswerArrived, StepResult
from shared.answering.web_consent import is_granted
from shared.platform.errors import AccessDeniedError, CallerError, ConfigurationError
from shared.runs.agents import AgentDefinition, AgentLimits
from shared.runs.events import AskUserEvent, CompleteEvent, RunEvent
from shared.runs.journal import keep_reply, read_journal
from shared.runs.log_lines import EventName
from shared.runs.memory_run_log import MemoryRunLog
from shared.runs.models import (
    MAX_ANSWER_CHARS,
    Choice,
    ClarificationAnswer,
    Conversation,
    RunRequest,
)
from shared.runs.run_files import RunFiles
from shared.tools.base import Tool
from shared.tools.registry import block_search, check_tools, tools_of

__all__ = ["AGENT_EVENTS", "Agent", "AgentLimits", "block_search"]

AGENT_EVENTS: frozenset[EventName] = frozenset(
    {"THOUGHT", "ACTION", "TOOL_STARTED", "TOOL_RESULT", "ASK_USER", "COMPLETE", "ERROR"}
)


@dataclass(frozen=True)
class Agent:
    """An agent that acts with the permissions of a single user.

    Attributes:
        definition: None = the default agent, which answers from all documents.
    """

    services: AnsweringServices
    user: UserContext
    definition: AgentDefinition | None = None
    sessions: SessionHistory = field(default_factory=SessionHistory, repr=False)

    def __post_init__(self) -> None:
        if self.user is None:
            raise AccessDeniedError(
                "An agent requires a user context.", "Pass the user context of the caller."
            )
        principals(self.user)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools available to the agent."""
        return tools_of(self.definition, self.services.settings)

    @classmethod
    def create_rag_agent(cls, services: AnsweringServices, user: UserContext) -> "Agent":
        """Create the default agent, which answers from documents.

        Raises:
            AccessDeniedError: the user context identifies no user.
        """
        return cls(services, user)

    @classmethod
    def create_agent(
        cls,
        name: str,
        system_prompt: str,
        tools: Sequence[str | Tool],
        *,
        services: AnsweringServices,
        user: UserContext,
        limits: AgentLimits | None = None,
        proof: Literal["required", "optional"] = "optional",
    ) -> "Agent":
        """Create a custom agent from instructions and tools.

        Args:
            name: lower-case letters, digits and `-`.
            system_prompt: the agent's task and style; the rules of the loop are added to it.
            tools: names of tools, which are bound to `user`, or tools that are bound already.
            limits: turns, calls, tokens and seconds per answer; the limits of the settings apply as well.
            proof: `required` = the agent states only what documents prove.

        Raises:
            ConfigurationError: a tool is unknown, two tools have the same name, or another argument is
                invalid.
            AccessDeniedError: the user context identifies no user.
        """
        own = {tool.name: tool for tool in tools if isinstance(tool, Tool)}
        names = [tool if isinstance(tool, str) else tool.name for tool in tools]
        enabled = services.settings.answering.enabled_tools
        check_tools([tool for tool in names if tool not in own], enabled)
        if len(set(names)) < len(names):
            raise ConfigurationError(f"Two tools of the agent {name!r} have the same name.")
        try:
            definition = AgentDefinition(
                name=name,
                description=name,
                instructions=system_prompt.strip(),
                tools=tuple(names),
                limits=limits or AgentLimits(),
                access=(user.user_id if user else "",),
                proof=proof,
            )
        except ValidationError as invalid:
            first = invalid.errors()[0]
            raise ConfigurationError(f"Invalid {first['loc'][0]} of an agent: {first['msg']}.") from None
        return cls(services.using(own_tools=own), user, definition)

    @classmethod
    def from_file(cls, path: str | Path, *, services: AnsweringServices, user: UserContext) -> "Agent":
        """Load an agent from a `NAME.agent.md` file.

        Raises:
            ConfigurationError: the file is invalid; the message starts with its path and line.
            AccessDeniedError: the user may not use the agent.
        """
        definition = read_agent(Path(path), services.settings.answering.enabled_tools)
        if not definition.is_open_to(user):
            raise AccessDeniedError(f"The agent {definition.name} is not available to this user.")
        return cls(services, user, definition)

    async def execute(self, user_message: str, session_id: str | None = None) -> AsyncIterator[RunEvent]:
        """Answer a message and yield the events listed in AGENT_EVENTS as they occur.

        COMPLETE, ERROR or ASK_USER is the last event. After ASK_USER, the next message of the session is
        taken as the answer to the question. Closing the iterator cancels the run. The files of a finished or
        cancelled run are deleted.

        Args:
            user_message: the question, or the answer to a clarification.
            session_id: the conversation that the message belongs to; None starts a new one.
        """
        async with aclosing(self._answer(user_message, session_id)) as events:
            async for event in events:
                if isinstance(event, CompleteEvent) and session_id is not None:
                    self.sessions.remember(session_id, user_message, event.answer)
                if event.name in AGENT_EVENTS:
                    yield event

    async def _answer(self, user_message: str, session_id: str | None) -> AsyncGenerator[RunEvent]:
        """Answer a message, or resume the run that waits for it, and yield the run's events as they occur.
        The last event is COMPLETE, ERROR or ASK_USER.

        A finished run is deleted. A run that asks a question is stored, and the same user's next message in
        the session answers it, unless the question has expired: then the message starts a new run.
        """
        session = AgentSession(self.services, self.user, session_id or uuid.uuid4().hex)
        waiting = await session.waiting_run()
        results: StepResults = ()
        if waiting is None:
            conversation = self.sessions.of(session_id)
            run_id, log = await self._begin_run(user_message, session.session_id, conversation)
        else:
            try:
                choice = _choice_of(user_message, waiting)
            except CallerError as unknown:
                yield _repeat_question(waiting, unknown)
                return
            run_id, log = waiting.run_id, await self._reply(waiting, choice, session)
            results = (*waiting.results, StepResult(observation=AnswerArrived()))
        async with aclosing(_events(self.services.using(run_log=log), run_id, results, session)) as events:
            async for event in events:
                yield event

    async def _begin_run(
        self, question: str, thread_id: str, conversation: Conversation
    ) -> tuple[str, MemoryRunLog]:
        """Store a question, and return the id of its run with an empty journal."""
        user, key = self.user, self.services.settings.identity.owner_id_key
        request = RunRequest(
            run_id=owned_id(user.user_id, key, uuid.uuid4().hex),
            thread_id=thread_id,
            user=self.definition.restrict_user(user) if self.definition else user,
            question=question,
            created_at=datetime.now(UTC),
            conversation=conversation,
            agent=self.definition,
        )
        await RunFiles(self.services.blobs, request.run_id).put_request(request)
        log = MemoryRunLog()
        await log.create(request.run_id)
        return request.run_id, log

    async def _reply(self, waiting: WaitingRun, choice: Choice, session: AgentSession) -> MemoryRunLog:
        """Append the user's answer to the journal of a waiting run, and return the journal. The run no longer
        waits.
        """
        log = MemoryRunLog({waiting.run_id: waiting.journal})
        choice = choice.model_copy(update={"asker": self.user})
        await keep_reply(log, waiting.run_id, waiting.ask_step, choice, datetime.now(UTC))
        journal = await read_journal(log, self.services.blobs, waiting.run_id)
        asking = await journal.find(waiting.ask_step, Turn, "turn")
        if asking is not None and asking.asks_consent:
            self.sessions.keep_web_consent(session.session_id, allowed=is_granted(choice))
        await session.delete()
        return log


def _choice_of(user_message: str, waiting: WaitingRun) -> Choice:
    answer = ClarificationAnswer(text=user_message.strip()[:MAX_ANSWER_CHARS] or "?")
    return read_reply(answer, waiting.clarification.options)


async def _events(
    services: AnsweringServices, run_id: str, results: StepResults, session: AgentSession
) -> AsyncGenerator[RunEvent]:
    log = services.run_log
    assert isinstance(log, MemoryRunLog)  # noqa: S101  # created by Agent._answer
    position = (await log.read(run_id)).next_offset

    async def run_and_store() -> bool:
        ended = await run_to_end(run_id, services, results)
        if is_waiting := waits(ended):
            await session.store(run_id, ended, log)
        return is_waiting

    run = asyncio.create_task(run_and_store())
    try:
        async for event in log.follow(run_id, run, position):
            if event.name == "ASK_USER":
                # Store the waiting run before its question is shown, so that even an immediate answer finds
                # the run.
                await asyncio.wait({run})
            yield event
    finally:
        run.cancel()
        await asyncio.wait({run})
        if run.cancelled() or run.exception() is not None or not run.result():
            await delete_run(run_id, services.blobs)


def _repeat_question(waiting: WaitingRun, unknown: CallerError) -> RunEvent:
    clarification = waiting.clarification
    return AskUserEvent(
        step=waiting.ask_step,
        question=f"{unknown.detail} {clarification.question}",
        options=clarification.options,
        expires_at=clarification.expires_at,
    )
