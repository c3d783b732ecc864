"""Users over HTTP, for administrators: have all that is kept of a person erased, and look how far it is."""

from fastapi import APIRouter, Request, Response

from functions.http.application import ObservedRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import AudiencesQuery
from functions.http.requests import (
    administrator_of,
    admitted,
    caller_and_services,
    note_act,
    ready_services,
)
from functions.http.responses import json_response, read_query
from shared.access.audiences import AudienceList
from shared.access.models import Me
from shared.erasure.models import ErasureQuery, ErasureView
from shared.platform.errors import CallerError, ConflictError, NotFoundError
from shared.platform.telemetry import pseudonym

router = APIRouter(route_class=ObservedRoute)


@router.get(
    "/api/me",
    tags=["Caller"],
    **contract(
        "Who the caller is",
        json_reply(200, "The caller.", Me),
    ),
)
async def get_me(req: Request) -> Response:
    """The caller: names, roles, how many groups count, and what they have used up today."""
    from shared.access.limits import use_of_today
    from shared.access.models import Me
    from shared.documents.rights import is_admin

    user, services = await caller_and_services(req)
    shown = user.model_dump(include={"user_id", "name", "department", "org_id", "roles"})
    today = await use_of_today(user, services.settings, services.user_limits)
    return json_response(
        Me(**shown, group_count=len(user.groups), is_administrator=is_admin(user), today=today)
    )


@router.get(
    "/api/me/audiences",
    tags=["Caller"],
    **contract(
        "Whom the caller may share documents with",
        json_reply(200, "Entries of access lists, with names.", AudienceList),
        query=AudiencesQuery,
    ),
)
async def get_audiences(req: Request) -> Response:
    """Return whom the caller may share documents with; with a query, people and groups of the directory."""
    from shared.access.audiences import audiences_named, audiences_of, find_audiences

    user, services = await caller_and_services(req)
    query = read_query(req, AudiencesQuery)
    if query.q:
        await admitted(req, user, services)
        return json_response(await find_audiences(query.q, services.directory))
    if query.principal:
        await admitted(req, user, services)
        return json_response(await audiences_named(query.principal, services.directory))
    return json_response(await audiences_of(user, services.directory, services.settings))


MAX_ID_CHARS = 256  # Entra ID's have 36; an id of ours for a conversation 45


@router.delete(
    "/api/users/{user_id}",
    tags=["Operators"],
    **contract(
        "Erase everything stored about a person",
        json_reply(202, "It has begun, or is in progress.", ErasureView, "Location"),
        errors=(ConflictError,),
        query=ErasureQuery,
    ),
)
async def erase_user(req: Request) -> Response:
    """Erase what is kept of a person. 202: a queue does it, in passes over a quarter of an hour."""
    from shared.erasure.models import ErasureQuery
    from shared.erasure.requests import ask_for_erasure

    administrator = await administrator_of(req)
    wanted = read_query(req, ErasureQuery)
    user_id, services = _id_of(req), await ready_services()
    view = await ask_for_erasure(user_id, wanted.documents, services)
    await note_act(req, administrator, services, "erase_person", subject=pseudonym(user_id))
    return json_response(view, 202, {"Location": view.status_url})


@router.get(
    "/api/users/{user_id}/erasure",
    tags=["Operators"],
    **contract(
        "The progress of the erasure of a person",
        json_reply(200, "What was erased, and what remains.", ErasureView),
        errors=(NotFoundError,),
    ),
)
async def get_erasure(req: Request) -> Response:
    """The progress of the erasure of a person, or what it has done."""
    from shared.erasure.requests import erasure_of

    await administrator_of(req)
    return json_response(await erasure_of(_id_of(req), (await ready_services()).blobs))


def _id_of(request: Request) -> str:
    """Compared letter by letter, as everywhere; whether there is such a person nobody here knows."""
    user_id = str(request.path_params["user_id"])
    if not user_id.strip() or len(user_id) > MAX_ID_CHARS or not user_id.isprintable():
        raise CallerError("Invalid user id.", "Send the object id in Entra ID, as GET /api/me shows it.")
    return user_id
