"""What people say of an answer, and that they opened a source of it. Each is its owner's alone."""

import azure.functions as func

from functions.http.requests import caller_of, ready_services
from functions.http.responses import Request, Response, json_response, read_model, route

blueprint = func.Blueprint()


@route(blueprint, "PUT", "runs/{run_id}/feedback")
async def put_feedback(req: Request) -> Response:
    """Rate a run that has ended; the last rating counts."""
    # Imported when used: a worker that starts does not wait for it.
    from shared.quality.recording import rate_run
    from shared.runs.models import FeedbackBody

    user = await caller_of(req)
    body = await read_model(req, FeedbackBody)
    services = await ready_services()
    return json_response(await rate_run(_id_of(req), body, user, services.runs, services.quality))


@route(blueprint, "GET", "runs/{run_id}/feedback")
async def get_feedback(req: Request) -> Response:
    """What the caller said of a run."""
    from shared.quality.recording import feedback_of

    user = await caller_of(req)
    return json_response(await feedback_of(_id_of(req), user, (await ready_services()).runs))


@route(blueprint, "DELETE", "runs/{run_id}/feedback")
async def delete_feedback(req: Request) -> Response:
    """Take it back."""
    from shared.quality.recording import withdraw_feedback

    user = await caller_of(req)
    services = await ready_services()
    await withdraw_feedback(_id_of(req), user, services.runs, services.quality)
    return Response(status_code=204)


@route(blueprint, "POST", "runs/{run_id}/openings")
async def post_opening(req: Request) -> Response:
    """Say that the source of a citation was opened; each citation counts once."""
    from shared.quality.recording import open_source
    from shared.runs.models import SourceOpened

    user = await caller_of(req)
    body = await read_model(req, SourceOpened)
    await open_source(_id_of(req), body.n, user, await ready_services())
    return Response(status_code=204)


def _id_of(request: Request) -> str:
    return str(request.path_params["run_id"])
