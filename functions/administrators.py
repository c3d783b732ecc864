"""Who may use the routes of administrators."""

from functions.http_io import Request, user_of
from shared.core.document_authority import is_admin
from shared.errors import AccessDeniedError
from shared.models.identity import UserContext


def administrator_of(request: Request) -> UserContext:
    """Who is asking. NotAuthenticatedError (401) as `user_of`; AccessDeniedError (403) without the role."""
    user = user_of(request)
    if not is_admin(user):
        raise AccessDeniedError("This is for administrators.", "Ask for the application role `admin`.")
    return user
