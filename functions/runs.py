"""Routes for runs: list, read, stream events, answer a clarification, cancel, and rate."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import STREAM, Reply, contract, json_reply
from functions.http.event_stream import closer, follow, is_at_the_end, last_event_id, stop_run
from functions.http.models import ListQuery, ResumeHeaders, RunStreamEvent
from functions.http.questions import deliver_answer
from functions.http.requests import (
    Caller,
    Durable,
    Ready,
    open_stream,
)
from functions.http.responses import event_stream, json_response
from shared.access.security_filter import in_thread
from shared.answering import run_end
from shared.answering.cited_pages import check_readable
from shared.answering.runs import view_run
from shared.conversations import models as conversations
from shared.conversations import run_list
from shared.platform.errors import ConflictError, NotFoundError
from shared.quality.recording import feedback_of, open_source, rate_run, withdraw_feedback
from shared.runs.journal import current_record
from shared.runs.models import ClarificationAnswer, Feedback, FeedbackBody, RunRecord, RunView, SourceOpened
from shared.runs.portable_text import portable_view
from shared.runs.run_store import owned_run

RunId = Annotated[
    str, Path(min_length=1, description="Run id, as returned in the header `X-Run-Id` of POST /chat.")
]

router = APIRouter(tags=["Questions"], route_class=ApiRoute)


async def own_run(run_id: RunId, user: Caller, services: Ready) -> RunRecord:
    """Return the current record of the run in the path. Raises `NotFoundError` if the run doesn't exist or
    belongs to another user.
    """
    return await current_record(await owned_run(run_id, user, services.runs), services.run_log)


OwnRun = Annotated[RunRecord, Depends(own_run)]


@router.get(
    "/api/runs",
    **contract(
        "The caller's runs, newest first",
        json_reply(200, "A page of runs.", conversations.RunList),
    ),
)
async def list_runs(page: Annotated[ListQuery, Query()], user: Caller, services: Ready) -> Response:
    """List the caller's runs, newest first, one page at a time."""
    return json_response(await run_list.list_runs(user, services, page.limit, page.cursor))


@router.get(
    "/api/runs/{run_id}",
    **contract(
        "A run: status, todo list, answer",
        json_reply(200, "The run in its current state.", RunView),
    ),
)
async def get_run(run: OwnRun, user: Caller, services: Ready, client: Durable) -> Response:
    """Return the status, todo list and clarification of a run and, once committed, its answer."""
    if run.finished_at is None:
        await closer(client, run.run_id, services)()
        run = await owned_run(run.run_id, user, services.runs)
    return json_response(portable_view(await view_run(run, services, in_thread(user, run.thread_id))))


@router.get(
    "/api/runs/{run_id}/events",
    **contract(
        "The events of a run, from the first or after a given one",
        Reply(200, "The events.", ((STREAM, RunStreamEvent),), ("X-Run-Id",)),
        Reply(204, "The run has ended, and the caller has seen its last event."),
        headers=ResumeHeaders,
    ),
)
async def get_run_events(
    req: Request, run: OwnRun, user: Caller, services: Ready, client: Durable
) -> Response:
    """Stream the events of a run, from the first one or after `Last-Event-ID`."""
    after = last_event_id(req.headers.get("last-event-id"))
    if not run.has_log:
        raise NotFoundError(
            "The events of this run have expired.", "Read the answer with GET /runs/{run_id}."
        )
    if run.finished_at is not None:
        await check_readable(run, in_thread(user, run.thread_id), services)
    journal = await services.run_log.read(run.run_id) if after else None
    if journal is not None and is_at_the_end(journal, after):
        return Response(status_code=204)  # after status 204, an EventSource stops reconnecting
    close_if_dead = closer(client, run.run_id, services)
    if after and run.finished_at is None:
        # Check at once, because clients often reconnect after the worker that served them has died.
        await close_if_dead()
    seconds = services.settings.host.stream_seconds
    frames: Any = follow(services.run_log, run.run_id, after, seconds, close_if_dead, first_slice=journal)
    return event_stream(frames, open_stream(user, services), run.run_id)


@router.post(
    "/api/runs/{run_id}/answer",
    **contract(
        "Answer a run's clarifying question",
        json_reply(202, "The run continues.", RunView, "Location"),
        errors=(ConflictError,),
    ),
)
async def answer_run(
    run: OwnRun, answer: ClarificationAnswer, user: Caller, services: Ready, client: Durable
) -> Response:
    """Answer a run's clarification with the number of an option, `{"choice": 2}`, or with text, `{"text":
    "the 2024 one"}`.
    """
    await deliver_answer(run, answer, user, services, client)
    run = await owned_run(run.run_id, user, services.runs)
    view = await view_run(run, services, in_thread(user, run.thread_id))
    return json_response(view, 202, {"Location": f"/api/runs/{run.run_id}"})


@router.post(
    "/api/runs/{run_id}/cancel",
    **contract(
        "Cancel a run and its sub-agents",
        json_reply(200, "The cancelled run.", RunView),
        errors=(ConflictError,),
    ),
)
async def cancel_run(run: OwnRun, user: Caller, services: Ready, client: Durable) -> Response:
    """Cancel a run and its sub-agents. The event stream ends with a RunCancelledError. Cancelling a run again
    has no effect.
    """
    run = await run_end.cancel_run(run.run_id, services)
    await stop_run(client, run.run_id, services)
    return json_response(await view_run(run, services, in_thread(user, run.thread_id)))


@router.put(
    "/api/runs/{run_id}/feedback",
    **contract(
        "Rate a run that has ended",
        json_reply(200, "The stored rating.", Feedback),
        errors=(ConflictError,),
    ),
)
async def put_feedback(run_id: RunId, body: FeedbackBody, user: Caller, services: Ready) -> Response:
    """Store the caller's rating of a run that has ended, replacing an earlier rating."""
    return json_response(await rate_run(run_id, body, user, services))


@router.get(
    "/api/runs/{run_id}/feedback",
    **contract(
        "The rating of a run",
        json_reply(200, "The rating.", Feedback),
    ),
)
async def get_feedback(run_id: RunId, user: Caller, services: Ready) -> Response:
    """Return the caller's rating of a run."""
    return json_response(await feedback_of(run_id, user, services.runs))


@router.delete(
    "/api/runs/{run_id}/feedback",
    **contract(
        "Delete the rating of a run",
        Reply(204, "The rating is deleted, or there was none."),
    ),
)
async def delete_feedback(run_id: RunId, user: Caller, services: Ready) -> Response:
    """Delete the caller's rating of a run, if there is one."""
    await withdraw_feedback(run_id, user, services.runs, services.quality)
    return Response(status_code=204)


@router.post(
    "/api/runs/{run_id}/openings",
    **contract(
        "Report that the source of a citation was opened",
        Reply(204, "The opening has been counted."),
    ),
)
async def post_opening(run_id: RunId, body: SourceOpened, user: Caller, services: Ready) -> Response:
    """Record that the caller opened the source of a citation. Each citation is counted once."""
    await open_source(run_id, body.n, user, services)
    return Response(status_code=204)
