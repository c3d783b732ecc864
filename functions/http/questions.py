"""Starting a run for a question that arrived over HTTP, and waiting for its result.

A repeated request with the same key follows the run of the first one.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import azure.durable_functions as df
from fastapi import Request

from functions.http.event_stream import NamedFrame, closer, follow_named
from functions.http.idempotency import Key, idempotent, new_id
from functions.http.requests import client_address, count_call
from shared.access.idempotency import LIFETIME, KeyClaim, complete_key
from shared.access.limits import is_expected, release, slot_of_run
from shared.access.models import UserContext
from shared.access.security_filter import in_thread
from shared.answering.clarification import reply_event_name
from shared.answering.clarification_steps import answer_clarification
from shared.answering.runs import Admit, Arrival, begin_run, begun_log, close_dead_run, renew_run, view_run
from shared.ingestion import fair_turns
from shared.platform.errors import GroundworkError, TooManyRequestsError
from shared.platform.instances import Instances
from shared.platform.tracing import link_to
from shared.runs.agents import Channel
from shared.runs.log_lines import LogSlice
from shared.runs.models import ChatRequest, ClarificationAnswer, RunRecord, RunView
from shared.runs.run_store import owned_run
from shared.wiring import Services


@dataclass(frozen=True)
class Question:
    """A question together with its request, its user and the services that answer it.

    Attributes:
        key: idempotency key; None = the request's Idempotency-Key, if any.
        key_holds: lifetime of the key.
        channel: the channel that an agent must allow.
    """

    request: Request
    chat: ChatRequest
    user: UserContext
    services: Services
    client: df.DurableOrchestrationClient
    arrived_at: datetime
    key: str | None = None
    key_holds: timedelta = LIFETIME
    channel: Channel = "chat"

    @property
    def stream_seconds(self) -> float:
        """Maximum duration of an event stream, in seconds."""
        return self.services.settings.host.stream_seconds

    def events(
        self, run_id: str, first_slice: LogSlice | None, seconds: float | None = None
    ) -> AsyncGenerator[NamedFrame, None]:
        """Yield the events of a run for at most `seconds`, by default the maximum duration of a stream."""
        revive = closer(self.client, run_id, self.services)
        limit = self.stream_seconds if seconds is None else seconds
        return follow_named(self.services.run_log, run_id, 0, limit, revive, first_slice=first_slice)


@dataclass(frozen=True)
class _StoredRun:
    """A run that has been stored. `log` is the start of its journal, or None if an earlier request
    wrote it.
    """

    run_id: str
    log: LogSlice | None
    is_running: bool = False


async def begin_question(question: Question) -> tuple[str, LogSlice | None]:
    """Start a run for a question, or find the run that an earlier request with the same key started.
    Concurrent requests with the same key share one run.

    Returns the run's id and the start of its journal, which is None if an earlier request wrote it.
    """
    with fair_turns.SHARES.answering():
        return await _begin(question)


async def _begin(question: Question) -> tuple[str, LogSlice | None]:
    services = question.services
    key = Key(
        question.request,
        question.chat,
        question.user,
        services,
        resource_id=new_id(question.user, services),
        value=question.key,
        holds=question.key_holds,
    )

    async def find(claimed: KeyClaim) -> _StoredRun | None:
        record = await services.runs.get(claimed.resource_id)
        return (
            None if record is None else _StoredRun(record.run_id, None, is_running=record.status == "running")
        )

    async def make(claimed: KeyClaim | None, existing: _StoredRun | None) -> _StoredRun:
        if existing is not None:
            return existing
        run_id = claimed.resource_id if claimed else key.resource_id
        first_slice = await _store(run_id, question, is_claimed=claimed is not None)
        is_repeat = claimed is not None and claimed.is_repeat
        # The context manager closes the run if it can't be started.
        async with complete_key(claimed, services.idempotency):
            await (_start_late if is_repeat else _start)(run_id, question)
        return _StoredRun(run_id, first_slice)

    question_run = await idempotent(key, make, find)
    if question_run.is_running:
        # The process of the first request may have died before it started the orchestration.
        await _start_late(question_run.run_id, question)
    return question_run.run_id, question_run.log


async def _store(run_id: str, question: Question, *, is_claimed: bool) -> LogSlice:
    user, services = question.user, question.services
    slot = slot_of_run(run_id, services.settings)
    admit: Admit | None = partial(count_call, question.request, user, services, slot=slot)
    if is_claimed or not is_expected(user, services.settings, services.user_limits, slot):
        # The caller's limits are checked before the run is stored. Doing both at once would save time, but
        # each refusal would have to delete the stored run, and could affect a request with the same key.
        await count_call(question.request, user, services, slot=slot)
        admit = None
    try:
        request = await begin_run(
            question.chat,
            user,
            services,
            Arrival(question.arrived_at, client_address(question.request), question.channel),
            run_id=run_id,
            admit=admit,
        )
    except TooManyRequestsError:
        raise
    except GroundworkError:
        await release(user.user_id, run_id, services.settings, services.user_limits)
        raise
    return begun_log(request, services.settings)


async def _start(run_id: str, question: Question) -> None:
    try:
        await question.client.start_new("answer_question", run_id, {"run_id": run_id, **link_to(run_id)})
    except Exception:
        if await _is_known(run_id, question):
            return  # a concurrent request with the same key has started the run

        # Close the stored run, which would otherwise seem to run forever. The client raises no specific
        # error.
        await close_dead_run(run_id, "The run could not be started.", question.services)
        raise


async def _start_late(run_id: str, question: Question) -> None:
    """Start the orchestration of a run that an earlier request stored, unless it is already running."""
    user, services = question.user, question.services
    if not await _is_known(run_id, question):
        await renew_run(run_id, user, question.arrived_at, services)
        await _start(run_id, question)
        return
    await closer(question.client, run_id, services)()
    with suppress(GroundworkError):  # best effort: a slot that isn't released expires
        record = await services.runs.get(run_id)
        if record is None or record.status != "running":
            # The run may have ended before this request acquired the slot, so nothing else would release it.
            await release(user.user_id, run_id, services.settings, services.user_limits)


async def _is_known(run_id: str, question: Question) -> bool:
    """Return whether the orchestration of a run was started. Return False if its status can't be read."""
    with suppress(Exception):  # the client raises no specific error if the status can't be read
        return await Instances(question.client).state(run_id) is not None
    return False


async def view_of(run_id: str, question: Question) -> RunView:
    record = await owned_run(run_id, question.user, question.services.runs)
    return await view_run(record, question.services, in_thread(question.user, record.thread_id))


async def view_at_end(
    events: AsyncGenerator[NamedFrame, None], read_view: Callable[[], Awaitable[RunView]]
) -> RunView:
    """Wait until a run ends or waits for a clarification, or until `events` reaches its time limit. Return
    the run's current state.
    """
    async with aclosing(events):
        async for name, _ in events:
            # The events may begin with a clarification that was answered long ago.
            if name == "ASK_USER" and (view := await read_view()).status == "waiting":
                return view
    return await read_view()


async def deliver_answer(
    record: RunRecord,
    answer: ClarificationAnswer,
    user: UserContext,
    services: Services,
    client: df.DurableOrchestrationClient,
) -> None:
    """Store the user's answer to a clarification, and resume the waiting run.

    Raises:
        ConflictError: the run isn't waiting for an answer.
    """
    if await answer_clarification(record, answer, user, services):
        # The event is raised only after the answer is stored. If raising it fails, the user's retry raises it
        # again.
        try:
            await client.raise_event(record.run_id, reply_event_name(record.ask_step), {})
        except Exception:  # noqa: BLE001  # the instance is lost; a restarted one finds the answer
            await closer(client, record.run_id, services)()
