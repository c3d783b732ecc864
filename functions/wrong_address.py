"""Addresses below `/api` that no route takes: 404, or 405 with the methods that the address does take.

The host tries routes in the alphabetical order of their functions' names, so this function's must come last
(tests/unit/functions/test_wrong_address.py).
"""

from difflib import get_close_matches

import azure.functions as func

from functions.http.responses import API, ROUTES, Request, Response, endpoint
from shared.platform.errors import MethodNotAllowedError, NotFoundError

blueprint = func.Blueprint()

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_COMPARED_CHARS = 100  # of an address that somebody mistyped; comparing takes time by the square


@blueprint.route(route=API + "{*address}", methods=_METHODS, auth_level=func.AuthLevel.ANONYMOUS)
@endpoint(f"/{API}{{*address}}")
async def wrong_address(req: Request) -> Response:
    """Refuse the call.

    Raises:
        MethodNotAllowedError: the address takes other methods.
        NotFoundError: it takes none; the hint names the nearest one that does.
    """
    address = str(req.path_params.get("address", "")).strip("/")
    allowed = sorted({method for method, route in ROUTES if _fits(route, address)})
    if allowed and req.method not in allowed:
        methods = ", ".join(allowed)
        raise MethodNotAllowedError(
            f"This address does not take {req.method}.", f"Use {methods}.", headers={"Allow": methods}
        )
    nearest = get_close_matches(address[:_COMPARED_CHARS], sorted({route for _, route in ROUTES}), n=1)
    hint = f"Did you mean /{API}{nearest[0]}?" if nearest else "/api/docs lists all calls."
    raise NotFoundError("There is no such address.", hint)


def _fits(route: str, address: str) -> bool:
    wanted, given = route.split("/"), address.split("/")
    return len(wanted) == len(given) and all(
        one[:1] == "{" or one == other.lower() for one, other in zip(wanted, given, strict=True)
    )
