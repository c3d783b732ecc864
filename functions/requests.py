"""What a request brings beside body and caller: a key, by which it may be sent again, and its cost."""

import re

from functions.http_io import Request, add_headers
from shared.agents.idempotency import Claimed, claim_key, digest_of
from shared.agents.user_limits import admit
from shared.core.user_limits import limit_headers
from shared.errors import CallerError
from shared.models.base import Model
from shared.models.identity import UserContext
from shared.models.limits import Slot
from shared.services import Services

_KEY = re.compile(r"[\x21-\x7e]{1,200}")


async def admitted(
    request: Request, user: UserContext, services: Services, *, calls: int = 1, slot: Slot | None = None
) -> None:
    """Count a call that costs; its answer, whatever it will be, tells what is left.

    Raises:
        TooManyRequestsError, TooManyRunsError: as `shared.agents.user_limits.admit`.
    """
    add_headers(request, limit_headers(await admit(user, services, calls=calls, slot=slot)))


async def claimed_key(
    request: Request, order: Model, user: UserContext, services: Services, *, resource_id: str
) -> Claimed | None:
    """The request's key, claimed for what is asked for; None when it carries none.

    Raises:
        CallerError: it is no key.
        IdempotencyKeyReusedError: it was used for another request.
    """
    key: str | None = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise CallerError("Idempotency-Key takes 1-200 visible ASCII characters.", "Send a UUID.")
    route = f"{request.method} {request.url.path}"
    return await claim_key(key, user, services, route=route, body=digest_of(order), resource_id=resource_id)


def say_replayed(request: Request) -> None:
    """Have the answer say that it is about what an earlier request made."""
    add_headers(request, {"Idempotency-Replayed": "true"})
