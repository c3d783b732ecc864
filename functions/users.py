"""Routes about users: the caller's identity, audiences for sharing and, for administrators, people's limits
and the erasure of their data.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import (
    Administrator,
    Caller,
    Ready,
    count_call,
    note_act,
)
from functions.http.responses import json_response
from shared.access.audiences import AudienceList, audiences_of, find_audiences, look_up_audiences
from shared.access.limits import use_of_today
from shared.access.models import Me
from shared.access.people import PersonList, list_active_people, search_people
from shared.documents.rights import is_admin
from shared.erasure.models import ErasureQuery, ErasureView
from shared.erasure.requests import ask_for_erasure, erasure_of
from shared.platform.errors import CallerError, ConflictError, NotFoundError
from shared.platform.models import Model
from shared.platform.telemetry import pseudonym


class AudiencesQuery(Model):
    """Query parameters that select people and groups from the directory."""

    q: str = Field(default="", max_length=100, description="Prefix of a word in the name, such as `berg`.")
    principal: tuple[str, ...] = Field(
        default=(),
        max_length=50,
        description="Id of a principal. Repeat the parameter for several principals. Ignored if `q` is set.",
    )


class PeopleQuery(Model):
    """Query parameters of GET /api/users."""

    q: str = Field(
        default="",
        max_length=100,
        description="Prefix of a word in the name. By default, recently active people are listed.",
    )


UserId = Annotated[
    str, Path(min_length=1, description="User id, as shown by GET /me. It is the object id in Entra ID.")
]

router = APIRouter(route_class=ApiRoute)


@router.get(
    "/api/me",
    tags=["Caller"],
    **contract(
        "The caller's identity",
        json_reply(200, "The caller.", Me),
    ),
)
async def get_me(user: Caller, services: Ready) -> Response:
    """Return the caller's name, department, organisation, roles, number of groups, and today's use of the
    daily limits.
    """
    profile = user.model_dump(include={"user_id", "name", "department", "org_id", "roles"})
    today = await use_of_today(user.user_id, services.settings, services.user_limits)
    return json_response(
        Me(**profile, group_count=len(user.groups), is_administrator=is_admin(user), today=today)
    )


@router.get(
    "/api/me/audiences",
    tags=["Caller"],
    **contract(
        "People and groups with whom the caller may share documents",
        json_reply(200, "Entries of access lists, with names.", AudienceList),
    ),
)
async def get_audiences(
    req: Request, query: Annotated[AudiencesQuery, Query()], user: Caller, services: Ready
) -> Response:
    """Return the audiences with whom the caller may share documents. With `q` or `principal`, return the
    selected people and groups of the directory.
    """
    if query.q:
        await count_call(req, user, services)
        return json_response(await find_audiences(query.q, services.directory))
    if query.principal:
        await count_call(req, user, services)
        return json_response(await look_up_audiences(query.principal, services.directory))
    return json_response(await audiences_of(user, services.directory, services.settings))


@router.get(
    "/api/users",
    tags=["Operators"],
    **contract(
        "People and their limits",
        json_reply(
            200, "People whose name matches; without `q`, people active in the last 24 hours.", PersonList
        ),
    ),
)
async def list_users(
    req: Request, query: Annotated[PeopleQuery, Query()], administrator: Administrator, services: Ready
) -> Response:
    """List people with their use of the daily limits. With `q`, these are the people whose name matches;
    otherwise, they are the recently active ones.
    """
    settings, limits = services.settings, services.user_limits
    if query.q:
        people = await search_people(query.q, services.directory, settings, limits)
    else:
        people = await list_active_people(services.audit, services.directory, settings, limits)
    await note_act(req, administrator, services, "read_audit", may_repeat=True)
    return json_response(people)


MAX_ID_CHARS = 256  # unmeasured limit; ids have 36 characters in Entra ID and 45 in chat conversations


@router.delete(
    "/api/users/{user_id}",
    tags=["Operators"],
    **contract(
        "Erase everything stored about a person",
        json_reply(202, "The erasure is in progress.", ErasureView, "Location"),
        errors=(ConflictError,),
    ),
)
async def erase_user(
    req: Request,
    user_id: UserId,
    query: Annotated[ErasureQuery, Query()],
    administrator: Administrator,
    services: Ready,
) -> Response:
    """Start the erasure of all data about a person. A queue performs it in several passes over a quarter of
    an hour.
    """
    _require_id(user_id)
    view = await ask_for_erasure(user_id, query.documents, services)
    await note_act(req, administrator, services, "erase_person", subject=pseudonym(user_id))
    return json_response(view, 202, {"Location": view.status_url})


@router.get(
    "/api/users/{user_id}/erasure",
    tags=["Operators"],
    **contract(
        "Progress of the erasure of a person",
        json_reply(200, "Erased and remaining data.", ErasureView),
        errors=(NotFoundError,),
    ),
)
async def get_erasure(user_id: UserId, administrator: Administrator, services: Ready) -> Response:
    """Return the progress of a person's erasure or, once it has finished, its result."""
    _require_id(user_id)
    return json_response(await erasure_of(user_id, services.blobs))


def _require_id(user_id: str) -> None:
    """Raise `CallerError` if a user id is malformed. Whether the user exists is not checked."""
    if not user_id.strip() or len(user_id) > MAX_ID_CHARS or not user_id.isprintable():
        raise CallerError(
            "The user id is not valid.", "Send the object id from Entra ID, as shown by GET /api/me."
        )
