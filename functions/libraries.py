"""The route GET /api/sharepoint, which shows administrators the status of synchronised SharePoint and
OneDrive libraries.
"""

from fastapi import APIRouter, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import Administrator, Ready
from functions.http.responses import json_response
from shared.sharepoint.models import LibraryList
from shared.sharepoint.status import view_libraries

router = APIRouter(tags=["Operators"], route_class=ApiRoute)


@router.get(
    "/api/sharepoint",
    **contract(
        "Status of the synchronised SharePoint libraries",
        json_reply(200, "All libraries.", LibraryList),
    ),
)
async def list_libraries(administrator: Administrator, services: Ready) -> Response:
    """List the synchronised libraries, each with the status of its synchronisation."""
    return json_response(await view_libraries(services))
