"""POST /api/chat: a question in; a stream, one JSON answer, or 202 with where to look."""

from datetime import UTC, datetime

import azure.durable_functions as df
import azure.functions as func

from functions.event_stream import follow
from functions.http_io import (
    Request,
    Response,
    endpoint,
    event_stream,
    json_response,
    read_model,
)
from functions.identity import caller_of
from functions.orchestration_status import closer
from functions.ready import ready_services
from shared.errors import status_of
from shared.models.chat import ChatRequest, RunView
from shared.services import Services

blueprint = df.Blueprint()


@blueprint.route(route="chat", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
@blueprint.durable_client_input(client_name="client")
@endpoint
async def chat(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """Start a run. SSE unless `stream` is false; `Prefer: respond-async` answers 202 at once."""
    arrived_at = datetime.now(UTC)  # a process that has just started takes a while to get ready
    from shared.agents.runs import begin_run, begun_log, owned_run, view_run

    user = await caller_of(req)
    body = await read_model(req, ChatRequest)
    services = await ready_services()
    request = await begin_run(body, user, services, arrived_at)
    await _start(client, request.run_id, services)
    headers = {"X-Run-Id": request.run_id, "Location": f"/api/runs/{request.run_id}"}
    if "respond-async" in req.headers.get("prefer", ""):
        return json_response(
            await view_run(await owned_run(request.run_id, user, services), services, user), 202, headers
        )
    frames = follow(
        services.run_log,
        request.run_id,
        0,
        services.settings.stream_seconds,
        closer(client, request.run_id, services),
        begun=begun_log(request),
    )
    if body.stream:
        return event_stream(frames, request.run_id)
    async for frame in frames:
        if b"\nevent: ask_user\n" in frame:
            break  # the run waits for its owner; its end is the end of the stream
    view = await view_run(await owned_run(request.run_id, user, services), services, user)
    return json_response(view, _status_of(view), headers)


async def _start(client: df.DurableOrchestrationClient, run_id: str, services: Services) -> None:
    from shared.agents.runs import close_dead_run

    try:
        await client.start_new("answer_question", run_id, {"run_id": run_id})
    except Exception:
        # The client raises nothing more precise. The run is stored already: it must not look alive for ever.
        await close_dead_run(run_id, "The run could not be started.", services)
        raise


def _status_of(view: RunView) -> int:
    if view.status in ("running", "waiting"):
        return 202
    return 200 if view.status == "completed" else status_of(view.error_type)
