"""Operations on runs for API handlers: begin a run, view it, and close it if its orchestration died."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.access.limits import hold, slot_of_run
from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.access.security_filter import in_thread
from shared.answering.agent_files import agent_for
from shared.answering.clarification_steps import pending_clarification
from shared.answering.run_end import close_run
from shared.answering.services import AnsweringServices
from shared.answering.views import live_views
from shared.conversations.turns import OpenedTurn, open_turn
from shared.platform.concurrency import run_together
from shared.platform.errors import ConflictError, NotFoundError, PayloadTooLargeError, TooManyRequestsError
from shared.platform.hashing import digest
from shared.platform.settings import Settings
from shared.platform.telemetry import note_fields
from shared.runs.agents import Channel
from shared.runs.events import AcceptedStatus, ErrorEvent, RunEvent, latest_todo
from shared.runs.fresh_urls import refresh_answer, refresh_views, without_unreadable
from shared.runs.journal import Journal, committed_answer, current_record
from shared.runs.log_lines import LogSlice
from shared.runs.models import ChatRequest, RunAnswer, RunRecord, RunRequest, RunView, SubagentView
from shared.runs.run_files import RunFiles
from shared.runs.run_store import RunStore

Admit = Callable[[], Awaitable[None]]
"""Admits a question, or raises."""


@dataclass(frozen=True)
class Arrival:
    """How a question reached the app.

    Attributes:
        at: time with zone; the run's time starts then. None = now.
        origin: the client's IP address, or the channel, for the audit trail.
        channel: the channel through which an agent is asked.
    """

    at: datetime | None = None
    origin: str = ""
    channel: Channel = "chat"


async def begin_run(
    chat: ChatRequest,
    user: UserContext,
    services: AnsweringServices,
    arrival: Arrival = Arrival(),
    *,
    run_id: str | None = None,
    admit: Admit | None = None,
) -> RunRequest:
    """Store a question, its run and the run's first event. The caller then starts the orchestration.

    The question is added to the thread with the given id; without an id it starts a new thread.

    Args:
        run_id: id of a run that may exist in part; only missing parts are then created. None = a
            new run.
        admit: awaited concurrently with invisible writes and before visible ones; raises to refuse.

    Raises:
        PayloadTooLargeError: the question is longer than `max_question_chars`.
        NotFoundError: the user has no such thread, or may not ask such an agent.
    """
    request = _new_request(chat, user, services.settings, arrival, run_id)
    note_fields(run_id=request.run_id, thread_id=request.thread_id)
    turn = await _open(request, services, admit, is_new=chat.thread_id is None)
    if chat.thread_id is not None:
        opened = {"conversation": turn.conversation, "has_files": turn.with_files}
        request = request.model_copy(update=opened)
        keeping = RunFiles(services.blobs, request.run_id).keep_request(request)
        request, _ = await run_together(keeping, _create(request, turn.number, services.runs))
        return request
    # Create the record last, so that every run with a record has a journal and can be closed.
    await _create(request, turn.number, services.runs)
    return request


def _new_request(
    chat: ChatRequest, user: UserContext, settings: Settings, arrival: Arrival, run_id: str | None
) -> RunRequest:
    """Return the request of a run, with the permissions that the user has in its thread and with its agent.

    Raises:
        PayloadTooLargeError: the question is longer than `max_question_chars`.
        NotFoundError: the user may not ask such an agent.
    """
    limit = settings.answering.max_question_chars
    if len(chat.question) > limit:
        raise PayloadTooLargeError(
            f"The question has {len(chat.question)} characters; the limit is {limit}.",
            "Shorten the question, or upload the text as a document and ask about it.",
        )
    owner_id, key = user.user_id, settings.identity.owner_id_key
    run_id = run_id or owned_id(owner_id, key, uuid.uuid4().hex)
    agent = agent_for(chat.agent, user, settings, arrival.channel) if chat.agent else None
    thread_id = chat.thread_id or thread_of_run(run_id, owner_id, key)
    reader = agent.restrict_user(user) if agent else user
    if arrival.channel == "chat":  # only chat clients can attach files to a thread
        reader = in_thread(reader, thread_id)  # `open_turn` checks that the user owns it
    return RunRequest(
        run_id=run_id,
        thread_id=thread_id,
        user=reader,
        agent=agent,
        question=chat.question,
        project_id=chat.project_id,
        doc_ids=chat.doc_ids,
        deep=chat.deep,
        timezone=chat.timezone or settings.answering.default_timezone,
        created_at=arrival.at or datetime.now(UTC),
        origin=arrival.origin,
        replaces=chat.replaces,
    )


async def renew_run(
    run_id: str, user: UserContext, arrived_at: datetime, services: AnsweringServices
) -> None:
    """Restart the time limit of a stored run that never started, and give it the user's current permissions.

    An idempotency key may be repeated a day later, when the run's time would be over and permissions may have
    changed.
    """
    files = RunFiles(services.blobs, run_id)
    request = await files.request()
    await files.put_request(request.with_rights_of(user).model_copy(update={"created_at": arrived_at}))
    await hold(user.user_id, slot_of_run(run_id, services.settings), services.settings, services.user_limits)


def thread_of_run(run_id: str, owner_id: str, key: str) -> str:
    """Return the id of the thread that a run starts. It depends only on the run, so a repeated request gets
    the same thread.
    """
    return owned_id(owner_id, key, digest("thread", run_id))


def begun_log(request: RunRequest, settings: Settings) -> LogSlice:
    """Return the journal that `begin_run` has just written, so that readers don't have to fetch it."""
    line = _accepted_event(request, settings).to_line()
    return LogSlice(lines=(line,), next_offset=len(line.encode()) + 1)


async def view_run(
    record: RunRecord, services: AnsweringServices, reader: UserContext | None = None
) -> RunView:
    """Return the current view of a run: its to-do list, pending clarification, sub-agents and committed
    answer.

    The URLs of the answer's figures are signed for `reader`, or not signed without one.
    """
    answer: RunAnswer | None = None
    journal = Journal(services.run_log, services.blobs, record.run_id)
    record = await current_record(record, services.run_log)
    if record.status == "completed":
        answer = await committed_answer(record.run_id, services.blobs, services.run_log)
        answer = await refresh_answer(answer, reader, services) if reader else answer
    if record.has_log and not (answer and record.todo):
        await journal.read()
    return RunView(
        run_id=record.run_id,
        thread_id=record.thread_id,
        question=record.question,
        status=record.status,
        created_at=record.created_at,
        finished_at=record.finished_at,
        error=record.error,
        error_type=record.error_type,
        todo=record.todo or latest_todo(journal.events),
        answer=answer,
        sub_agents=answer.sub_agents if answer else await _sub_agents(record, journal, services, reader),
        clarification=await pending_clarification(record, services.run_log),
        feedback=record.feedback,
        events_url=f"/api/runs/{record.run_id}/events",
    )


async def close_dead_run(run_id: str, reason: str, services: AnsweringServices) -> None:
    """End a run whose orchestration died before it wrote a last event, so that readers of the run don't wait
    forever.
    """
    hints = ("Ask again. If it happens again, give the operator the run id.",)
    with suppress(NotFoundError):  # deleted together with its thread
        await close_run(run_id, ErrorEvent(type="InternalError", message=reason, hints=hints), services)


async def _open(
    request: RunRequest, services: AnsweringServices, admit: Admit | None, *, is_new: bool
) -> OpenedTurn:
    """Add the question to its thread, and create the journal at the same time.

    The request of a new thread needs no earlier turns, so it is stored at the same time.
    """
    files = RunFiles(services.blobs, request.run_id)
    writes: list[Coroutine[None, None, object]] = [begin_journal(request, services)]
    if is_new:
        writes.append(files.keep_request(request))

    async def open_when_admitted() -> OpenedTurn:
        if admit is not None:
            await admit()
        return await open_turn(request, services.threads, services.run_log, is_new=is_new)

    opened, results = await asyncio.gather(
        open_when_admitted(), run_together(*writes), return_exceptions=True
    )
    if isinstance(opened, BaseException):
        # After these errors, no other attempt at this request can have succeeded, so nothing needs the files.
        if isinstance(opened, NotFoundError | TooManyRequestsError):
            await run_together(services.run_log.delete(request.run_id), files.erase())
        raise opened
    if isinstance(results, BaseException):
        raise results
    return opened


async def _create(request: RunRequest, turn: int, runs: RunStore) -> None:
    record = RunRecord(
        run_id=request.run_id,
        thread_id=request.thread_id,
        owner_id=request.user.user_id,
        question=request.question,
        created_at=request.created_at,
        turn=turn,
    )
    try:
        await runs.create(record)
    except ConflictError:
        return  # an earlier or concurrent attempt at this request created the record


async def begin_journal(request: RunRequest, services: AnsweringServices) -> None:
    """Create the journal of a run with its first event. Idempotent."""
    await services.run_log.create(request.run_id)
    try:
        await services.run_log.append(
            request.run_id, [_accepted_event(request, services.settings)], at_offset=0
        )
    except ConflictError:
        return  # another attempt at this request has written the event


def _accepted_event(request: RunRequest, settings: Settings) -> RunEvent:
    settings = request.agent.limit_settings(settings) if request.agent else settings
    latency_budget_ms = settings.budgets.max_total_latency_ms
    token_budget = settings.budgets.max_total_tokens_per_request
    if request.summary is not None:
        latency_budget_ms = round(settings.summaries.timeout_s * 1000)
        token_budget = settings.summaries.max_tokens
    return AcceptedStatus(
        run_id=request.run_id,
        thread_id=request.thread_id,
        latency_budget_ms=latency_budget_ms,
        token_budget=token_budget,
    )


async def _sub_agents(
    record: RunRecord, journal: Journal, services: AnsweringServices, reader: UserContext | None
) -> tuple[SubagentView, ...]:
    """Return the sub-agents of the run with the documents that `reader` may read, or without unreadable
    documents if it is None.
    """
    views = await live_views(record, journal)
    return await refresh_views(views, reader, services) if reader else without_unreadable(views, ())
