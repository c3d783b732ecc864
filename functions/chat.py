"""POST /api/chat: a question in; a stream, one JSON answer, or 202 with where to look."""

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import azure.durable_functions as df

from functions.http.event_stream import closer, follow, last_event_id
from functions.http.questions import Question, begin_question, view_at_end, view_of
from functions.http.requests import caller_and_services, open_stream
from functions.http.responses import Request, Response, event_stream, json_response, read_model, route
from shared.platform.errors import status_of

if TYPE_CHECKING:
    from shared.runs.models import RunView

blueprint = df.Blueprint()


@route(blueprint, "POST", "chat")
async def chat(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """Start a run. SSE unless `stream` is false; `Prefer: respond-async` answers 202 at once."""
    from shared.runs.models import ChatRequest

    arrived_at = datetime.now(UTC)  # a process that has just started takes a while to get ready
    user, services = await caller_and_services(req)
    body = await read_model(req, ChatRequest)
    question = Question(req, body, user, services, client, arrived_at)
    after = last_event_id(req.headers.get("last-event-id"))
    if "respond-async" in req.headers.get("prefer", ""):
        run_id, _ = await begin_question(question)
        return json_response(await view_of(run_id, question), 202, _headers(run_id))
    place = open_stream(user, services)  # before the run begins: its answer needs a connection
    run_id, begun = await begin_question(question)
    if body.stream:
        revive = closer(client, run_id, services)
        after = 0 if begun else after
        frames = follow(services.run_log, run_id, after, question.stream_seconds, revive, begun=begun)
        return event_stream(frames, place, run_id)
    with closing(place):
        view = await view_at_end(run_id, question.events(run_id, begun), question)
    return json_response(view, _status_of(view), _headers(run_id))


def _headers(run_id: str) -> dict[str, str]:
    return {"X-Run-Id": run_id, "Location": f"/api/runs/{run_id}"}


def _status_of(view: "RunView") -> int:
    if view.status in ("running", "waiting"):
        return 202
    return 200 if view.status == "completed" else status_of(view.error_type)
