"""Users over HTTP, for administrators: have all that is kept of a person erased, and look how far it is."""

import azure.functions as func

from functions.http.requests import administrator_of, caller_of, ready_services
from functions.http.responses import Request, Response, endpoint, json_response, read_query
from shared.platform.errors import CallerError

blueprint = func.Blueprint()


@blueprint.route(route="me", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def get_me(req: Request) -> Response:
    """The caller: names, roles, and how many groups count. The rest of what we know is the token's own."""
    # Imported when used: a worker that starts does not wait for it.
    from shared.access.models import Me
    from shared.documents.rights import is_admin

    user = await caller_of(req)
    shown = user.model_dump(include={"user_id", "name", "department", "org_id", "roles"})
    return json_response(Me(**shown, group_count=len(user.groups), is_administrator=is_admin(user)))


MAX_ID_CHARS = 256  # Entra ID's have 36; an id of ours for a conversation 45


@blueprint.route(route="users/{user_id}", methods=["DELETE"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def erase_user(req: Request) -> Response:
    """Erase what is kept of a person. 202: a queue does it, in passes over a quarter of an hour."""
    # Imported when used: a worker that starts does not wait for it.
    from shared.erasure.models import ErasureQuery
    from shared.erasure.requests import ask_for_erasure

    await administrator_of(req)
    wanted = read_query(req, ErasureQuery)
    services = await ready_services()
    view = await ask_for_erasure(_id_of(req), wanted.documents, services.blobs, services.queues)
    return json_response(view, 202, {"Location": view.status_url})


@blueprint.route(route="users/{user_id}/erasure", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def get_erasure(req: Request) -> Response:
    """How far the erasure of a person is, or what it has done."""
    from shared.erasure.requests import erasure_of

    await administrator_of(req)
    return json_response(await erasure_of(_id_of(req), (await ready_services()).blobs))


def _id_of(request: Request) -> str:
    """Compared letter by letter, as everywhere; whether there is such a person nobody here knows."""
    user_id = str(request.path_params["user_id"])
    if not user_id.strip() or len(user_id) > MAX_ID_CHARS or not user_id.isprintable():
        raise CallerError("That is no user id.", "Send the object id in Entra ID, as GET /api/me shows it.")
    return user_id
