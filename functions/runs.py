"""Runs from the outside: list them, read one, follow it, answer what it asks, cancel it, rate its answer."""

from typing import TYPE_CHECKING, Any

import azure.durable_functions as df
from fastapi import APIRouter, Request, Response

from functions.http import models as http
from functions.http.application import ObservedRoute
from functions.http.contracts import STREAM, Reply, contract, json_reply
from functions.http.event_stream import closer, follow, is_at_the_end, last_event_id, record_ended_run
from functions.http.questions import deliver_answer
from functions.http.requests import Durable, caller_and_services, caller_of, open_stream, ready_services
from functions.http.responses import event_stream, json_response, read_model, read_query
from shared.conversations import models as conversations
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.telemetry import get_logger
from shared.runs.models import ClarificationAnswer, Feedback, FeedbackBody, RunView, SourceOpened

if TYPE_CHECKING:
    from shared.access.models import UserContext
    from shared.runs.models import RunRecord
    from shared.wiring import Services

router = APIRouter(tags=["Questions"], route_class=ObservedRoute)


@router.get(
    "/api/runs",
    **contract(
        "The caller's runs, newest first",
        json_reply(200, "A page of runs.", conversations.RunList),
        query=http.ListQuery,
    ),
)
async def list_runs(req: Request) -> Response:
    """The caller's runs, a page at a time."""
    from functions.http.models import ListQuery
    from shared.conversations.run_list import list_runs as listed

    user = await caller_of(req)
    page = read_query(req, ListQuery)
    services = await ready_services()
    return json_response(await listed(user, services.threads, services.runs, page.limit, page.cursor))


@router.get(
    "/api/runs/{run_id}",
    **contract(
        "A run: status, todo list, answer",
        json_reply(200, "The run as it is now.", RunView),
    ),
)
async def get_run(req: Request, client: Durable) -> Response:
    """A run's status, todo list, what it asks and, once committed, its answer."""
    from shared.answering.runs import view_run
    from shared.runs.run_store import owned_run

    record, user, services = await _own_run(req)
    if record.finished_at is None:
        await closer(client, record.run_id, services)()
        record = await owned_run(record.run_id, user, services.runs)
    return json_response(await view_run(record, services, user))


@router.get(
    "/api/runs/{run_id}/events",
    **contract(
        "The events of a run, from the first or after one",
        Reply(200, "The events.", ((STREAM, http.RunStreamEvent),), ("X-Run-Id",)),
        Reply(204, "The run has ended, and the caller has seen its last event."),
        headers=http.ResumeHeaders,
    ),
)
async def get_run_events(req: Request, client: Durable) -> Response:
    """A run's events from the first, or after `Last-Event-ID`."""
    from shared.answering.cited_pages import check_readable

    record, user, services = await _own_run(req)
    after = last_event_id(req.headers.get("last-event-id"))
    if not record.has_log:
        raise NotFoundError(
            "The events of this run are no longer kept.", "Its answer is still there: GET the run."
        )
    if record.finished_at is not None:
        await check_readable(record, user, services)
    begun = await services.run_log.read(record.run_id) if after else None
    if begun is not None and is_at_the_end(begun, after):
        return Response(status_code=204)  # tells an EventSource to stop connecting again
    close_if_dead = closer(client, record.run_id, services)
    if after and record.finished_at is None:
        await close_if_dead()  # who comes back has often lost the line to a worker that died
    seconds = services.settings.host.stream_seconds
    frames: Any = follow(services.run_log, record.run_id, after, seconds, close_if_dead, begun=begun)
    return event_stream(frames, open_stream(user, services), record.run_id)


@router.post(
    "/api/runs/{run_id}/answer",
    **contract(
        "Answer what a run asks",
        json_reply(202, "The run continues.", RunView, "Location"),
        errors=(ConflictError,),
        body=ClarificationAnswer,
    ),
)
async def answer_run(req: Request, client: Durable) -> Response:
    """Answer what a run asks: `{"choice": 2}` or `{"text": "the 2024 one"}`. 202; the run continues."""
    from shared.answering.runs import view_run
    from shared.runs.models import ClarificationAnswer
    from shared.runs.run_store import owned_run

    record, user, services = await _own_run(req)
    answer = await read_model(req, ClarificationAnswer)
    await deliver_answer(record, answer, user, services, client)
    record = await owned_run(record.run_id, user, services.runs)
    return json_response(
        await view_run(record, services, user), 202, {"Location": f"/api/runs/{record.run_id}"}
    )


@router.post(
    "/api/runs/{run_id}/cancel",
    **contract(
        "End a run and its sub-agents",
        json_reply(200, "The run, cancelled.", RunView),
        errors=(ConflictError,),
    ),
)
async def cancel_run(req: Request, client: Durable) -> Response:
    """End a run and its sub-agents: its stream ends with a RunCancelledError. Again: the same."""
    from shared.answering.run_end import cancel_run as cancel
    from shared.answering.runs import view_run
    from shared.subagents.artifacts import child_ids
    from shared.subagents.control import release

    record, user, services = await _own_run(req)
    record = await cancel(record.run_id, services)
    await _terminate(client, record.run_id, record.run_id)
    # Ending an orchestration ends none of its children. They come second: nobody starts another one now.
    children = await child_ids(services.blobs, record.run_id)
    for child_id in children:
        await _terminate(client, child_id, record.run_id)
    await release(services.subagent_control, children)
    await record_ended_run(client, record.run_id, services.blobs, services.runs)
    return json_response(await view_run(record, services, user))


@router.put(
    "/api/runs/{run_id}/feedback",
    **contract(
        "Rate a run that has ended",
        json_reply(200, "The stored rating.", Feedback),
        errors=(ConflictError,),
        body=FeedbackBody,
    ),
)
async def put_feedback(req: Request) -> Response:
    """Rate a run that has ended; the last rating counts."""
    from shared.quality.recording import rate_run
    from shared.runs.models import FeedbackBody

    user, services = await caller_and_services(req)
    body = await read_model(req, FeedbackBody)
    return json_response(await rate_run(_id_of(req), body, user, services.runs, services.quality))


@router.get(
    "/api/runs/{run_id}/feedback",
    **contract(
        "The rating of a run",
        json_reply(200, "The rating.", Feedback),
    ),
)
async def get_feedback(req: Request) -> Response:
    """What the caller said of a run."""
    from shared.quality.recording import feedback_of

    user, services = await caller_and_services(req)
    return json_response(await feedback_of(_id_of(req), user, services.runs))


@router.delete(
    "/api/runs/{run_id}/feedback",
    **contract(
        "Delete the rating of a run",
        Reply(204, "The rating is deleted, or there was none."),
    ),
)
async def delete_feedback(req: Request) -> Response:
    """Take it back."""
    from shared.quality.recording import withdraw_feedback

    user, services = await caller_and_services(req)
    await withdraw_feedback(_id_of(req), user, services.runs, services.quality)
    return Response(status_code=204)


@router.post(
    "/api/runs/{run_id}/openings",
    **contract(
        "Report that the source of a citation was opened",
        Reply(204, "Counted once."),
        body=SourceOpened,
    ),
)
async def post_opening(req: Request) -> Response:
    """Report that the source of a citation was opened; each citation counts once."""
    from shared.quality.recording import open_source
    from shared.runs.models import SourceOpened

    user, services = await caller_and_services(req)
    body = await read_model(req, SourceOpened)
    await open_source(_id_of(req), body.n, user, services)
    return Response(status_code=204)


async def _terminate(client: df.DurableOrchestrationClient, instance_id: str, run_id: str) -> None:
    try:
        await client.terminate(instance_id, "cancelled by its owner")
    except Exception:  # noqa: BLE001  # the client raises nothing more precise
        # It has ended, or ends by itself: a step of a closed run does nothing, and the loop stops there.
        get_logger().warning("run.terminate_failed", run_id=run_id)


async def _own_run(req: Request) -> "tuple[RunRecord, UserContext, Services]":
    from shared.runs.run_store import owned_run

    user, services = await caller_and_services(req)
    return await owned_run(_id_of(req), user, services.runs), user, services


def _id_of(request: Request) -> str:
    return str(request.path_params["run_id"])
