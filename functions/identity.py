"""Who calls a route: the one place where a request becomes a user. Awaited, as groups may be looked up."""

from functions.http_io import Request
from shared.core.document_authority import is_admin
from shared.errors import AccessDeniedError
from shared.identity import authenticate
from shared.models.identity import UserContext
from shared.settings import get_settings


async def caller_of(request: Request) -> UserContext:
    """Who is asking. NotAuthenticatedError (401) when nothing believable says so."""
    return authenticate({name.lower(): value for name, value in request.headers.items()}, get_settings())


async def administrator_of(request: Request) -> UserContext:
    """Who is asking. NotAuthenticatedError (401) as `caller_of`; AccessDeniedError (403) without the role."""
    user = await caller_of(request)
    if not is_admin(user):
        raise AccessDeniedError("This is for administrators.", "Ask for the application role `admin`.")
    return user
