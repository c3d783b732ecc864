"""GET /api/sharepoint: the status of the synchronised libraries. For administrators."""

from fastapi import APIRouter, Request, Response

from functions.http.application import ObservedRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import administrator_of, ready_services
from functions.http.responses import json_response
from shared.sharepoint.models import LibraryList
from shared.sharepoint.status import view_libraries

router = APIRouter(tags=["Operators"], route_class=ObservedRoute)


@router.get(
    "/api/sharepoint",
    **contract(
        "Status of the synchronised SharePoint libraries",
        json_reply(200, "All libraries.", LibraryList),
    ),
)
async def list_libraries(req: Request) -> Response:
    """Status of the synchronised libraries."""
    await administrator_of(req)
    return json_response(await view_libraries(await ready_services()))
