"""Routes for the caller's workspace, which contains the files that agents wrote for the caller."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import BYTES, Reply, contract, json_reply
from functions.http.requests import Caller, Ready
from functions.http.responses import file_response, json_response
from shared.platform.errors import ConflictError, DocumentNotFoundError, InvalidQueryError
from shared.platform.names import WORK
from shared.tools.workspace import Workspace, WorkspaceList

FileName = Annotated[str, Path(min_length=1, description="File name, as returned by GET /workspace.")]

router = APIRouter(tags=["Workspace"], route_class=ApiRoute)


@router.get(
    "/api/workspace",
    **contract(
        "Files that agents wrote for the caller, by name",
        json_reply(200, "All files.", WorkspaceList),
    ),
)
async def get_workspace(user: Caller, services: Ready) -> Response:
    """List the files in the caller's workspace, sorted by name."""
    files = tuple(await Workspace(services.blobs, user).files())
    return json_response(WorkspaceList(files=files, count=len(files)))


@router.get(
    "/api/workspace/{file}",
    **contract(
        "A file that an agent wrote",
        Reply(200, "The whole file.", ((BYTES, None),), ("ETag",)),
        errors=(InvalidQueryError, DocumentNotFoundError, ConflictError),
    ),
)
async def get_workspace_file(file: FileName, user: Caller, services: Ready) -> Response:
    """Download a file from the caller's workspace."""
    blob = await Workspace(services.blobs, user).find(file)
    return await file_response(services.blobs.chunks(WORK, blob.name, etag=blob.etag), blob)


@router.delete(
    "/api/workspace/{file}",
    **contract(
        "Delete a file that an agent wrote",
        Reply(204, "The file has been deleted."),
        errors=(InvalidQueryError, DocumentNotFoundError),
    ),
)
async def delete_workspace_file(file: FileName, user: Caller, services: Ready) -> Response:
    """Delete a file from the caller's workspace."""
    await Workspace(services.blobs, user).delete(file)
    return Response(status_code=204)
