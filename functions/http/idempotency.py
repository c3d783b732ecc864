"""Handling of the Idempotency-Key header, shared by all routes that create resources.

A repeated request with the same key gets the result of the first one. It counts as a call, and its response
has the header `Idempotency-Replayed`. Each route decides when its result counts as complete (`finish` or
`complete_key`).
"""

import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from fastapi import Request

from functions.http.requests import count_call
from functions.http.responses import add_headers
from shared.access.idempotency import LIFETIME, KeyClaim, claim_key, digest_of
from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.platform.errors import CallerError, NotFoundError
from shared.platform.models import Model
from shared.wiring import Services

_KEY = re.compile(r"[\x21-\x7e]{1,200}")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Key:
    """A request that creates a resource, with its optional idempotency key.

    Attributes:
        resource_id: id of the resource to be made; empty if only `make` can choose it.
        value: the key; None = the request's header, if any.
        holds: how long the key is stored.
    """

    request: Request
    order: Model
    user: UserContext
    services: Services
    resource_id: str
    value: str | None = None
    holds: timedelta = LIFETIME

    async def claim(self) -> KeyClaim | None:
        """Claim the key for this request. Return None if the request has no key.

        Raises:
            CallerError: the header isn't a valid key.
            IdempotencyKeyReusedError: the key was used for a different request.
        """
        value = self.value or self.request.headers.get("idempotency-key")
        if value is None:
            return None
        if not _KEY.fullmatch(value):
            raise CallerError("Idempotency-Key must be 1 to 200 visible ASCII characters.", "Use a UUID.")
        return await claim_key(
            value,
            self.user,
            self.services.idempotency,
            route=f"{self.request.method} {self.request.url.path}",
            body=digest_of(self.order),
            resource_id=self.resource_id,
            holds=self.holds,
        )


def new_id(user: UserContext, services: Services) -> str:
    """Return a new resource id that identifies its owner."""
    return owned_id(user.user_id, services.settings.identity.owner_id_key, uuid.uuid4().hex)


async def idempotent(
    key: Key,
    make: Callable[[KeyClaim | None, Made | None], Awaitable[Made]],
    find: Callable[[KeyClaim], Awaitable[Made | None]],
) -> Made:
    """Create a resource, or return the resource that an earlier request with the same key has created.

    Args:
        make: makes the resource and counts the call, or completes an unfinished result of `find`. Its claim
            is None if the request has no key.
        find: returns the result of the earlier request; None if it has none, or the result was deleted.

    Raises:
        NotFoundError: the earlier result has been deleted.
        TooManyRequestsError: a repeat exceeds the rate limit.
    """
    claimed = await key.claim()
    if claimed is None or not claimed.is_repeat:
        return await make(claimed, None)
    is_done = claimed.claim.is_done
    if is_done:
        await count_call(key.request, key.user, key.services)
    existing = await find(claimed)
    if existing is None and is_done:
        raise NotFoundError(
            "The resource created with this Idempotency-Key has been deleted.",
            "Send a new key to create another resource.",
        )
    if existing is not None:
        if not is_done:
            await count_call(key.request, key.user, key.services)
        add_headers(key.request, {"Idempotency-Replayed": "true"})
    return existing if existing is not None and is_done else await make(claimed, existing)
