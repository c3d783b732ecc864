"""Routes for sharing answers: create, list and revoke shares of the caller's runs, and open a share."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import Reply, contract, json_reply
from functions.http.requests import Caller, Ready, note_act
from functions.http.responses import json_response
from functions.runs import OwnRun
from shared.answering import shares
from shared.answering.share_models import Share, SharedView, ShareList, ShareOrder
from shared.platform.errors import AccessDeniedError, ConflictError, NotFoundError

ShareId = Annotated[str, Path(min_length=1, description="Share id, as contained in the URL of a share.")]

router = APIRouter(tags=["Questions"], route_class=ApiRoute)


@router.post(
    "/api/runs/{run_id}/shares",
    **contract(
        "Share a run's answer",
        json_reply(201, "The share.", Share, "Location"),
        errors=(ConflictError, AccessDeniedError),
    ),
)
async def share_run(req: Request, run: OwnRun, body: ShareOrder, user: Caller, services: Ready) -> Response:
    """Share the answer of a run with other users."""
    share = await shares.share_run(run, body, user, services, services.directory)
    await note_act(req, user, services, "share", run_id=run.run_id)
    return json_response(share, 201, {"Location": f"/api/shares/{share.share_id}"})


@router.get(
    "/api/runs/{run_id}/shares",
    **contract(
        "The active shares of a run, and the documents that their readers need",
        json_reply(200, "The shares.", ShareList),
    ),
)
async def get_shares(run: OwnRun, user: Caller, services: Ready) -> Response:
    """Return the active shares of a run, and the documents that readers need access to."""
    return json_response(await shares.list_shares(run, user, services))


@router.delete(
    "/api/runs/{run_id}/shares/{share_id}",
    **contract("Revoke a share", Reply(204, "The share has ended."), errors=(NotFoundError,)),
)
async def revoke_share(
    req: Request, run: OwnRun, share_id: ShareId, user: Caller, services: Ready
) -> Response:
    """Revoke a share, which takes effect at once."""
    await shares.revoke_share(run.run_id, share_id, services)
    await note_act(req, user, services, "revoke_share", run_id=run.run_id)
    return Response(status_code=204)


@router.get(
    "/api/shares/{share_id}",
    **contract(
        "A shared answer",
        json_reply(200, "The question, and the answer for readers of all its documents.", SharedView),
        errors=(NotFoundError,),
    ),
)
async def open_share(req: Request, share_id: ShareId, user: Caller, services: Ready) -> Response:
    """Return a shared answer. A reader who may not read all of its documents gets only the question."""
    opened = await shares.open_share(share_id, user, services)
    if opened is None:
        await note_act(req, user, services, "open_share", subject="refused")
        raise NotFoundError(shares.NO_SHARE, "Ask its owner for a new link.")
    content = "answer" if opened.view.answer else "question"
    await note_act(req, user, services, "open_share", *opened.doc_ids, run_id=opened.run_id, subject=content)
    return json_response(opened.view)
