"""The caller's workspace over HTTP: the files that agents wrote for them."""

from fastapi import APIRouter, Request, Response

from functions.http.application import ObservedRoute
from functions.http.contracts import BYTES, Reply, contract, json_reply
from functions.http.requests import caller_and_services
from functions.http.responses import file_response, json_response
from shared.platform.errors import ConflictError, DocumentNotFoundError, InvalidQueryError
from shared.tools.workspace import WorkspaceList

router = APIRouter(tags=["Workspace"], route_class=ObservedRoute)


@router.get(
    "/api/workspace",
    **contract(
        "The files that agents wrote for the caller, by name",
        json_reply(200, "All of them.", WorkspaceList),
    ),
)
async def get_workspace(req: Request) -> Response:
    """The files, by name."""
    from shared.tools.workspace import Workspace, WorkspaceList

    user, services = await caller_and_services(req)
    files = tuple(await Workspace(services.blobs, user).files())
    return json_response(WorkspaceList(files=files, count=len(files)))


@router.get(
    "/api/workspace/{file}",
    **contract(
        "A file that an agent wrote",
        Reply(200, "All of it.", ((BYTES, None),), ("ETag",)),
        errors=(InvalidQueryError, DocumentNotFoundError, ConflictError),
    ),
)
async def get_workspace_file(req: Request) -> Response:
    """A file, as an agent wrote it."""
    from shared.platform.names import WORK
    from shared.tools.workspace import Workspace

    user, services = await caller_and_services(req)
    blob = await Workspace(services.blobs, user).find(str(req.path_params["file"]))
    return await file_response(services.blobs.chunks(WORK, blob.name, etag=blob.etag), blob)


@router.delete(
    "/api/workspace/{file}",
    **contract(
        "Delete a file that an agent wrote",
        Reply(204, "It is gone."),
        errors=(InvalidQueryError, DocumentNotFoundError),
    ),
)
async def delete_workspace_file(req: Request) -> Response:
    """Delete a file."""
    from shared.tools.workspace import Workspace

    user, services = await caller_and_services(req)
    await Workspace(services.blobs, user).delete(str(req.path_params["file"]))
    return Response(status_code=204)
