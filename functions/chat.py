"""POST /api/chat: a question in; a stream, one JSON answer, or 202 with where to look.

A question that is sent again under its key finds its run, and follows that one instead.
"""

import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import azure.durable_functions as df

from functions.http.event_stream import closer, follow, follow_named, last_event_id
from functions.http.requests import caller_of, ready_services
from functions.http.responses import Request, Response, event_stream, json_response, read_model, route
from shared.platform.errors import GroundworkError, NotFoundError, TooManyRequestsError, status_of
from shared.platform.tracing import link_to

if TYPE_CHECKING:
    from shared.access.idempotency import Claimed
    from shared.access.models import UserContext
    from shared.answering.runs import Admit
    from shared.runs.log_lines import LogSlice
    from shared.runs.models import ChatRequest, RunView
    from shared.wiring import Services

blueprint = df.Blueprint()


@dataclass(frozen=True)
class _Question:
    """A request, who sent it, and what serves it."""

    request: Request
    chat: "ChatRequest"
    user: "UserContext"
    services: "Services"
    client: df.DurableOrchestrationClient
    arrived_at: datetime


@dataclass(frozen=True)
class _Run:
    """The run that answers.

    Attributes:
        begun: how its log begins; None = it was begun by an earlier request.
    """

    run_id: str
    begun: "LogSlice | None" = None


@route(blueprint, "POST", "chat")
async def chat(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """Start a run. SSE unless `stream` is false; `Prefer: respond-async` answers 202 at once."""
    # Imported when used: a worker that starts does not wait for it.
    from shared.runs.models import ChatRequest

    arrived_at = datetime.now(UTC)  # a process that has just started takes a while to get ready
    user = await caller_of(req)
    body = await read_model(req, ChatRequest)
    question = _Question(req, body, user, await ready_services(), client, arrived_at)
    after = last_event_id(req.headers.get("last-event-id"))
    run = await _begin(question)
    headers = {"X-Run-Id": run.run_id, "Location": f"/api/runs/{run.run_id}"}
    if "respond-async" in req.headers.get("prefer", ""):
        return json_response(await _view(run, question), 202, headers)
    if body.stream:
        services = question.services
        close_if_dead = closer(client, run.run_id, services)
        seconds = services.settings.host.stream_seconds
        after = 0 if run.begun else after
        frames = follow(services.run_log, run.run_id, after, seconds, close_if_dead, begun=run.begun)
        return event_stream(frames, run.run_id)
    view = await _end_of(run, question)
    return json_response(view, _status_of(view), headers)


async def _begin(question: _Question) -> _Run:
    """The run: a new one, or the one that an earlier request under the same key has begun."""
    from functions.http.requests import claimed_key, say_replayed

    run_id = uuid.uuid4().hex
    request, user, services = question.request, question.user, question.services
    claimed = await claimed_key(request, question.chat, user, services.idempotency, resource_id=run_id)
    if claimed is None:
        run = await _store(run_id, question)
        await _start(run_id, question)
        return run
    record = await services.runs.get(claimed.resource_id) if claimed.is_repeat else None
    if record is None:
        return await _begin_claimed(claimed, question)
    if record.status == "running":
        await _start_late(record.run_id, question)  # if whoever stored it died before
    say_replayed(request)
    return _Run(record.run_id)


async def _begin_claimed(claimed: "Claimed", question: _Question) -> _Run:
    """Make of a run what is not there yet; two requests at once make one."""
    from shared.access.idempotency import finish, give_up

    if claimed.claim.is_done:
        raise NotFoundError("The run of this Idempotency-Key was deleted.", "Send a new key to ask again.")
    run = await _store(claimed.resource_id, question, is_claimed=True)
    try:
        await (_start_late if claimed.is_repeat else _start)(run.run_id, question)
    except Exception:
        await give_up(claimed, question.services.idempotency)  # that run is closed
        raise
    await finish(claimed, question.services.idempotency)
    return run


async def _store(run_id: str, question: _Question, *, is_claimed: bool = False) -> _Run:
    from functions.http.requests import admitted
    from shared.access.limits import is_expected, release, slot_of_run
    from shared.answering.runs import begin_run, begun_log

    user, services = question.user, question.services
    slot = slot_of_run(run_id, services.settings)
    admit = partial(admitted, question.request, user, services, slot=slot)
    beside: Admit | None = admit
    if is_claimed or not is_expected(user, services.settings, services.user_limits, slot):
        # A refusal takes back what was begun beside it: it must not be usual, nor meet another request's run.
        await admit()
        beside = None
    try:
        request = await begin_run(
            question.chat, user, services, question.arrived_at, run_id=run_id, admit=beside
        )
    except TooManyRequestsError:
        raise
    except GroundworkError:
        await release(user.user_id, run_id, services.settings, services.user_limits)
        raise
    return _Run(run_id, begun_log(request))


async def _start(run_id: str, question: _Question) -> None:
    from shared.answering.runs import close_dead_run

    try:
        await question.client.start_new("answer_question", run_id, {"run_id": run_id, **link_to(run_id)})
    except Exception:
        if await _is_known(run_id, question):
            return  # the same question came twice at once
        # The client raises nothing more precise. The run is stored already: it must not look alive for ever.
        await close_dead_run(run_id, "The run could not be started.", question.services)
        raise


async def _start_late(run_id: str, question: _Question) -> None:
    """Set to work what an earlier request has left; a run that was set to work meanwhile stays as it is."""
    from shared.access.limits import release
    from shared.answering.runs import renew_run

    user, services = question.user, question.services
    if not await _is_known(run_id, question):
        await renew_run(run_id, user, question.arrived_at, services)
        await _start(run_id, question)
        return
    with suppress(GroundworkError):  # a slot that is not given back expires
        record = await services.runs.get(run_id)
        if record is None or record.status != "running":
            await release(
                user.user_id, run_id, services.settings, services.user_limits
            )  # it may have ended before this request's slot


async def _is_known(run_id: str, question: _Question) -> bool:
    """Whether the run's orchestration was started; no, where nobody can tell."""
    with suppress(Exception):  # the client raises nothing more precise
        status = await question.client.get_status(run_id)
        return bool(status and status.runtime_status)
    return False


async def _end_of(run: _Run, question: _Question) -> "RunView":
    """The run when it has ended, or waits for its owner, or the time of a stream is over."""
    services = question.services
    close_if_dead = closer(question.client, run.run_id, services)
    seconds = services.settings.host.stream_seconds
    events = follow_named(services.run_log, run.run_id, 0, seconds, close_if_dead, begun=run.begun)
    async for name, _ in events:
        if name == "ASK_USER" and (view := await _view(run, question)).status == "waiting":
            return view
    return await _view(run, question)


async def _view(run: _Run, question: _Question) -> "RunView":
    from shared.answering.runs import view_run
    from shared.runs.run_store import owned_run

    record = await owned_run(run.run_id, question.user, question.services.runs)
    return await view_run(record, question.services, question.user)


def _status_of(view: "RunView") -> int:
    if view.status in ("running", "waiting"):
        return 202
    return 200 if view.status == "completed" else status_of(view.error_type)
