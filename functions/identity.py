"""Who calls a route: the one place where a request becomes a user. Awaited, as groups may be looked up."""

from typing import TYPE_CHECKING

from functions.http_io import Request
from shared.errors import AccessDeniedError, DependencyError, NotAuthenticatedError
from shared.telemetry import get_logger, note_fields
from shared.wiring import get_services

if TYPE_CHECKING:
    from shared.models.identity import UserContext


async def caller_of(request: Request) -> "UserContext":
    """Who is asking.

    Raises:
        NotAuthenticatedError: (401) nothing believable says so.
        AccessDeniedError: (403) somebody who is not let in.
        DependencyError: (502-504) their groups are not in the token, and cannot be looked up.
    """
    # Imported when used: a worker that starts does not wait for it.
    from shared.identity import BEARER_HEADER, PRINCIPAL_HEADER, authenticate

    services = get_services()
    headers = {name: _only(request, name) for name in (PRINCIPAL_HEADER, BEARER_HEADER)}
    try:
        user = await authenticate(headers, services.settings, services.directory)
    except DependencyError as error:
        get_logger().warning("identity.directory_failed", error_type=error.code)
        raise
    note_fields(user_id=user.user_id)
    return user


async def administrator_of(request: Request) -> "UserContext":
    """Who is asking. Errors as `caller_of`; AccessDeniedError (403) without the role."""
    from shared.core.document_authority import is_admin

    user = await caller_of(request)
    if not is_admin(user):
        raise AccessDeniedError("This is for administrators.", "Ask for the application role `admin`.")
    return user


def _only(request: Request, name: str) -> str:
    """A header's value. Of two that differ, nobody can tell which one the platform has checked."""
    values = set(request.headers.getlist(name))
    if len(values) > 1:
        raise NotAuthenticatedError("The request carries two identities.", "Send one.")
    return str(values.pop()) if values else ""
