"""GET /api/me: who the caller is, as the app sees them."""

import azure.functions as func

from functions.http_io import Request, Response, endpoint, json_response
from functions.identity import caller_of

blueprint = func.Blueprint()


@blueprint.route(route="me", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def get_me(req: Request) -> Response:
    """The caller: names, roles, and how many groups count. The rest of what we know is the token's own."""
    # Imported when used: a worker that starts does not wait for it.
    from shared.core.document_authority import is_admin
    from shared.models.identity import Me

    user = await caller_of(req)
    shown = user.model_dump(include={"user_id", "name", "department", "org_id", "roles"})
    return json_response(Me(**shown, group_count=len(user.groups), is_administrator=is_admin(user)))
