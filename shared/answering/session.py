"""Answering in process, message by message.

A run leaves nothing behind when it has ended. One that asks something ends its events with ASK_USER, and is
kept. The next message of the same user in the same session is the answer to it, until it has waited too long;
then it is a new question.
"""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.answering.clarification import read_answer
from shared.answering.inline import run_to_end, waits
from shared.answering.loop import LoopState, observe
from shared.answering.services import AnsweringServices
from shared.answering.steps import AnswerArrived
from shared.platform.blobs import BlobStore, find_model, write_model
from shared.platform.errors import CallerError, GroundworkError
from shared.platform.models import Model
from shared.platform.names import RUN_LOG, WORK
from shared.runs.agents import AgentDefinition
from shared.runs.events import AskUserEvent, RunEvent
from shared.runs.memory_run_log import MemoryRunLog
from shared.runs.models import (
    MAX_ANSWER_CHARS,
    Clarification,
    ClarificationAnswer,
    Conversation,
    RunRequest,
)
from shared.runs.working_memory import WorkingMemory, answer_path


class WaitingRun(Model):
    """A run that waits for the next message of its session."""

    run_id: str
    state: LoopState
    asked: Clarification


async def answer_message(
    services: AnsweringServices,
    user: UserContext,
    user_message: str,
    session_id: str | None,
    *,
    agent: AgentDefinition | None,
    conversation: Conversation,
) -> AsyncGenerator[RunEvent]:
    """Every event of the answer as it happens; COMPLETE, ERROR or ASK_USER is the last."""
    session = _Session(services.blobs, user, session_id or uuid.uuid4().hex)
    waiting = await session.waiting()
    if waiting is None:
        request = RunRequest(
            run_id=uuid.uuid4().hex,
            thread_id=session.session_id,
            user=agent.narrowed(user) if agent else user,
            question=user_message,
            created_at=datetime.now(UTC),
            conversation=conversation,
            agent=agent,
        )
        await WorkingMemory(services.blobs, request.run_id).put_request(request)
        run_id, state = request.run_id, None
    else:
        try:
            answer = ClarificationAnswer(text=user_message.strip()[:MAX_ANSWER_CHARS] or "?")
            choice = read_answer(answer, waiting.asked.options).model_copy(update={"asker": user})
        except CallerError as unknown:
            yield _asked_again(waiting, unknown)
            return
        await WorkingMemory(services.blobs, waiting.run_id).put(waiting.state.ask_step, choice, "answered")
        await session.forget()
        run_id, state = waiting.run_id, observe(waiting.state, AnswerArrived())
    events = _events(services.using(run_log=MemoryRunLog()), run_id, state, session)
    async with aclosing(events):
        async for event in events:
            yield event


async def _events(
    services: AnsweringServices, run_id: str, state: LoopState | None, session: "_Session"
) -> AsyncGenerator[RunEvent]:
    log = services.run_log
    assert isinstance(log, MemoryRunLog)  # noqa: S101  # made by the caller above
    await log.create(run_id)

    async def run_and_keep() -> bool:
        ended = await run_to_end(run_id, services, state)
        if is_kept := waits(ended):
            await session.keep(run_id, ended)
        return is_kept

    run = asyncio.create_task(run_and_keep())
    try:
        async for event in log.follow(run_id, run):
            if event.name == "ASK_USER":
                await asyncio.wait({run})  # people who see the options can answer at once
            yield event
    finally:
        run.cancel()
        await asyncio.wait({run})
        if run.cancelled() or run.exception() is not None or not run.result():
            await _forget(run_id, services.blobs)


async def _forget(run_id: str, blobs: BlobStore) -> None:
    """Delete what a run has stored; its answer is with its reader."""
    with suppress(GroundworkError):
        await WorkingMemory(blobs, run_id).erase()
        await blobs.delete(RUN_LOG, answer_path(run_id))


def _asked_again(waiting: WaitingRun, unknown: CallerError) -> RunEvent:
    asked = waiting.asked
    return AskUserEvent(
        step=waiting.state.ask_step,
        question=f"{unknown.detail} {asked.question}",
        options=asked.options,
        expires_at=asked.expires_at,
    )


class _Session:
    """Where the waiting run of one user's session is kept."""

    def __init__(self, blobs: BlobStore, user: UserContext, session_id: str) -> None:
        self.session_id = session_id
        self._blobs = blobs
        # A session's id is the caller's own word: hashed, it is a name, and bound to the user.
        key = hashlib.sha256(f"{user.user_id}\n{session_id}".encode()).hexdigest()
        self._path = f"sessions/{key}.json"

    async def waiting(self) -> WaitingRun | None:
        kept = await find_model(self._blobs, WORK, self._path, WaitingRun)
        return kept if kept and kept.asked.expires_at > datetime.now(UTC) else None

    async def keep(self, run_id: str, state: LoopState) -> None:
        asked = await WorkingMemory(self._blobs, run_id).get(state.ask_step, Clarification, "asked")
        waiting = WaitingRun(run_id=run_id, state=state, asked=asked)
        await write_model(self._blobs, WORK, self._path, waiting)

    async def forget(self) -> None:
        await self._blobs.delete(WORK, self._path)
