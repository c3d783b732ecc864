"""The caller's workspace over HTTP: the files that agents wrote for them."""

import azure.functions as func

from functions.http.requests import caller_and_services
from functions.http.responses import Request, Response, file_response, json_response, route

blueprint = func.Blueprint()


@route(blueprint, "GET", "workspace")
async def get_workspace(req: Request) -> Response:
    """The files, by name."""
    from shared.tools.workspace import Workspace, WorkspaceList

    user, services = await caller_and_services(req)
    files = tuple(await Workspace(services.blobs, user).files())
    return json_response(WorkspaceList(files=files, count=len(files)))


@route(blueprint, "GET", "workspace/{file}")
async def get_workspace_file(req: Request) -> Response:
    """A file, as an agent wrote it."""
    from shared.platform.names import WORK
    from shared.tools.workspace import Workspace

    user, services = await caller_and_services(req)
    blob = await Workspace(services.blobs, user).find(str(req.path_params["file"]))
    return await file_response(services.blobs.chunks(WORK, blob.name, etag=blob.etag), blob)


@route(blueprint, "DELETE", "workspace/{file}")
async def delete_workspace_file(req: Request) -> Response:
    """Delete a file."""
    from shared.tools.workspace import Workspace

    user, services = await caller_and_services(req)
    await Workspace(services.blobs, user).delete(str(req.path_params["file"]))
    return Response(status_code=204)
