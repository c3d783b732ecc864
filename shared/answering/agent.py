"""Python API for agents. All channels use the same loop; here it runs in the caller's process for a single
user.
"""

import asyncio
import hashlib
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.access.security_filter import principals
from shared.answering.agent_files import read_agent
from shared.answering.clarification import read_reply
from shared.answering.inline import run_to_end, waits
from shared.answering.models import Turn as AskingTurn
from shared.answering.script import Reply, Results, next_command
from shared.answering.services import AnsweringServices
from shared.answering.steps import AnswerArrived, StepResult
from shared.answering.web_consent import is_granted
from shared.platform.blobs import BlobStore, find_model, write_model
from shared.platform.errors import AccessDeniedError, CallerError, ConfigurationError, GroundworkError
from shared.platform.models import Model
from shared.platform.names import RUN_LOG, WORK
from shared.runs.agents import AgentDefinition, AgentLimits
from shared.runs.events import AskUserEvent, CompleteEvent, RunEvent
from shared.runs.journal import clarification_of, keep_reply, read_journal
from shared.runs.log_lines import EventName
from shared.runs.memory_run_log import MemoryRunLog
from shared.runs.models import (
    MAX_ANSWER_CHARS,
    Clarification,
    ClarificationAnswer,
    Conversation,
    RunAnswer,
    RunRequest,
    Turn,
)
from shared.runs.run_files import RunFiles
from shared.tools.base import Tool
from shared.tools.registry import block_search, check_tools, tools_of

__all__ = ["AGENT_EVENTS", "Agent", "AgentLimits", "block_search"]

AGENT_EVENTS: frozenset[EventName] = frozenset(
    {"THOUGHT", "ACTION", "TOOL_STARTED", "TOOL_RESULT", "ASK_USER", "COMPLETE", "ERROR"}
)
# Blob name prefix of stored runs that wait for the user's answer.
SESSIONS = "sessions/"
# Maximum number of sessions that an agent remembers. The least recently used session is evicted.
MAX_SESSIONS = 200
MAX_TURNS = 10
# Maximum length of a question or an answer in the history.
MAX_CHARS = 4000


class SessionHistory:
    """In-memory store of conversations by session id. Each conversation includes whether the user allowed web
    searches.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Conversation] = OrderedDict()

    def of(self, session_id: str | None) -> Conversation:
        """Return the conversation of a session, or an empty conversation if the id is None or unknown."""
        return self._sessions.get(session_id or "", Conversation())

    def remember(self, session_id: str, question: str, answer: RunAnswer) -> None:
        """Append a question and its answer to a session, which keeps the last MAX_TURNS turns."""
        names = {cited.doc_id: cited.filename for cited in answer.citations if cited.doc_id}
        turn = Turn(
            question=question[:MAX_CHARS],
            answer=answer.text[:MAX_CHARS],
            doc_ids=tuple(names),
            filenames=tuple(names.values()),
            block_ids=tuple(dict.fromkeys(cited.block_id for cited in answer.citations if cited.block_id)),
        )
        before = self.of(session_id)
        turns = (*before.turns, turn)[-MAX_TURNS:]
        self._keep(session_id, before.model_copy(update={"turns": turns}))

    def keep_web_consent(self, session_id: str, *, allowed: bool) -> None:
        """Store whether the user allows web searches in this session."""
        self._keep(session_id, self.of(session_id).model_copy(update={"web_allowed": allowed}))

    def _keep(self, session_id: str, conversation: Conversation) -> None:
        self._sessions[session_id] = conversation
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)


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
        events = _answer_message(
            self.services,
            self.user,
            user_message,
            session_id,
            agent=self.definition,
            sessions=self.sessions,
        )
        async with aclosing(events):
            async for event in events:
                if isinstance(event, CompleteEvent) and session_id is not None:
                    self.sessions.remember(session_id, user_message, event.answer)
                if event.name in AGENT_EVENTS:
                    yield event


class WaitingRun(Model):
    """A stored run that has asked the user a question. The next message of the session is taken as the
    answer.

    Attributes:
        journal: the lines of its journal.
        results: results of the commands that were executed; the script continues after them.
        ask_step: the step that asked the question.
    """

    run_id: str
    journal: tuple[str, ...]
    results: Results
    ask_step: int
    asked: Clarification


async def _answer_message(
    services: AnsweringServices,
    user: UserContext,
    user_message: str,
    session_id: str | None,
    *,
    agent: AgentDefinition | None,
    sessions: SessionHistory,
) -> AsyncGenerator[RunEvent]:
    """Answer a message, or resume the run that waits for it, and yield the run's events as they occur. The
    last event is COMPLETE, ERROR or ASK_USER.

    A finished run is deleted. A run that asks a question is stored, and the same user's next message in the
    session answers it, unless the question has expired: then the message starts a new run.
    """
    session = _Session(services, user, session_id or uuid.uuid4().hex)
    waiting = await session.waiting_run()
    if waiting is None:
        request = RunRequest(
            run_id=owned_id(user.user_id, services.settings.identity.owner_id_key, uuid.uuid4().hex),
            thread_id=session.session_id,
            user=agent.restrict_user(user) if agent else user,
            question=user_message,
            created_at=datetime.now(UTC),
            conversation=sessions.of(session_id),
            agent=agent,
        )
        await RunFiles(services.blobs, request.run_id).put_request(request)
        run_id, log = request.run_id, MemoryRunLog()
        await log.create(run_id)
        results: Results = ()
    else:
        try:
            answer = ClarificationAnswer(text=user_message.strip()[:MAX_ANSWER_CHARS] or "?")
            choice = read_reply(answer, waiting.asked.options).model_copy(update={"asker": user})
        except CallerError as unknown:
            yield _repeat_question(waiting, unknown)
            return
        run_id, log = waiting.run_id, MemoryRunLog({waiting.run_id: waiting.journal})
        await keep_reply(log, run_id, waiting.ask_step, choice, datetime.now(UTC))
        journal = await read_journal(log, services.blobs, run_id)
        asking = await journal.find(waiting.ask_step, AskingTurn, "turn")
        if asking is not None and asking.asks_consent:
            sessions.keep_web_consent(session.session_id, allowed=is_granted(choice))
        await session.delete()
        results = (*waiting.results, StepResult(observation=AnswerArrived()))
    events = _events(services.using(run_log=log), run_id, results, session)
    async with aclosing(events):
        async for event in events:
            yield event


async def _events(
    services: AnsweringServices, run_id: str, results: Results, session: "_Session"
) -> AsyncGenerator[RunEvent]:
    log = services.run_log
    assert isinstance(log, MemoryRunLog)  # noqa: S101  # created by _answer_message
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
            await _delete_run(run_id, services.blobs)


async def _delete_run(run_id: str, blobs: BlobStore) -> None:
    """Delete all stored files of a run, including its answer. Errors of the storage are ignored."""
    with suppress(GroundworkError):
        await RunFiles(blobs, run_id).erase()
        await blobs.delete_prefix(RUN_LOG, f"{run_id}/")


def _repeat_question(waiting: WaitingRun, unknown: CallerError) -> RunEvent:
    clarification = waiting.asked
    return AskUserEvent(
        step=waiting.ask_step,
        question=f"{unknown.detail} {clarification.question}",
        options=clarification.options,
        expires_at=clarification.expires_at,
    )


class _Session:
    """Store for the one run of a session that waits for the user's answer."""

    def __init__(self, services: AnsweringServices, user: UserContext, session_id: str) -> None:
        self.session_id = session_id
        self._blobs = services.blobs
        # Callers choose session ids, so hash them to get a valid blob name. `owned_id` adds the user's
        # prefix.
        unique = hashlib.sha256(f"{user.user_id}\n{session_id}".encode()).hexdigest()
        key = owned_id(user.user_id, services.settings.identity.owner_id_key, unique)
        self._path = f"{SESSIONS}{key}.json"

    async def waiting_run(self) -> WaitingRun | None:
        """Return the run that waits in this session, or None. If its question has expired, delete the run
        first.
        """
        stored = await find_model(self._blobs, WORK, self._path, WaitingRun)
        if stored is None or stored.asked.expires_at > datetime.now(UTC):
            return stored
        await _delete_run(stored.run_id, self._blobs)
        await self.delete()
        return None

    async def store(self, run_id: str, results: Results, log: MemoryRunLog) -> None:
        command = next_command(results)
        assert isinstance(command, Reply)  # noqa: S101  # the caller has checked that the run waits
        clarification, _ = await clarification_of(run_id, command.ask_step, log)
        assert clarification is not None  # noqa: S101  # stored by the step that asked
        waiting = WaitingRun(
            run_id=run_id,
            journal=(await log.read(run_id)).lines,
            results=results,
            ask_step=command.ask_step,
            asked=clarification,
        )
        await write_model(self._blobs, WORK, self._path, waiting)

    async def delete(self) -> None:
        await self._blobs.delete(WORK, self._path)
