"""The route POST /api/chat, which starts a run and replies with an event stream, the finished answer as JSON,
or 202.
"""

from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from fastapi import APIRouter, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import JSON, STREAM, Reply, contract, json_reply
from functions.http.event_stream import closer, follow, last_event_id
from functions.http.models import KeyHeaders, RunStreamEvent
from functions.http.questions import Question, begin_question, view_at_end, view_of
from functions.http.requests import Caller, Durable, Ready, open_stream
from functions.http.responses import event_stream, json_response
from shared.platform.errors import ConflictError, NotFoundError, status_of
from shared.runs.models import ChatRequest, RunView
from shared.runs.portable_text import portable_view


class ChatHeaders(KeyHeaders):
    """Request headers of POST /api/chat."""

    prefer: str = Field(
        default="",
        alias="Prefer",
        description="`respond-async` makes the reply an immediate 202 instead of waiting for the answer.",
    )
    last_event_id: str = Field(
        default="",
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,18}$",
        description=(
            "Number of the last event received. A retry with the same idempotency key resumes the stream "
            "after it."
        ),
    )


router = APIRouter(tags=["Questions"], route_class=ApiRoute)


@router.post(
    "/api/chat",
    **contract(
        "Ask a question",
        Reply(
            200,
            "The stream of the run's events; with `stream` false, the finished run.",
            ((STREAM, RunStreamEvent), (JSON, RunView)),
            ("X-Run-Id",),
        ),
        json_reply(
            202, "The run is in progress or waits for a clarification.", RunView, "Location", "X-Run-Id"
        ),
        errors=(NotFoundError, ConflictError),
        headers=ChatHeaders,
        ends_as=RunView,
        costs=True,
    ),
)
async def chat(req: Request, body: ChatRequest, user: Caller, services: Ready, client: Durable) -> Response:
    """Start a run and stream its events. With `stream` false, the reply is the finished run as JSON; with
    `Prefer: respond-async`, it is an immediate 202.
    """
    # Take the time first, because preparing a new process may take seconds.
    arrived_at = datetime.now(UTC)
    question = Question(req, body, user, services, client, arrived_at)
    after = last_event_id(req.headers.get("last-event-id"))
    if "respond-async" in req.headers.get("prefer", ""):
        run_id, _ = await begin_question(question)
        return json_response(await view_of(run_id, question), 202, _headers(run_id))
    # Reserve the stream first, so that a run never starts without a connection for its answer.
    place = open_stream(user, services)
    run_id, first_slice = await begin_question(question)
    if body.stream:
        revive = closer(client, run_id, services)
        after = 0 if first_slice else after
        frames = follow(
            services.run_log, run_id, after, question.stream_seconds, revive, first_slice=first_slice
        )
        return event_stream(frames, place, run_id)
    with closing(place):
        view = await view_at_end(question.events(run_id, first_slice), partial(view_of, run_id, question))
    return json_response(portable_view(view), _status_of(view), _headers(run_id))


def _headers(run_id: str) -> dict[str, str]:
    return {"X-Run-Id": run_id, "Location": f"/api/runs/{run_id}"}


def _status_of(view: RunView) -> int:
    if view.status in ("running", "waiting"):
        return 202
    return 200 if view.status == "completed" else status_of(view.error_type)
