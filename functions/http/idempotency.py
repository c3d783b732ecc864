"""Requests that make something and may be sent again: one rule for chat, summaries, threads and uploads.

A repeat under the same key gets what the first request made. It is counted as a call, and its response says
that it is a replay. What counts as made, and may be noted with `finish` or `beginning`, `make` decides.
"""

import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from fastapi import Request

from functions.http.requests import admitted
from functions.http.responses import add_headers
from shared.access.idempotency import LIFETIME, Claimed, claim_key, digest_of
from shared.access.models import UserContext
from shared.access.owner_ids import owned_id
from shared.platform.errors import CallerError, NotFoundError
from shared.platform.models import Model
from shared.wiring import Services

_KEY = re.compile(r"[\x21-\x7e]{1,200}")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Key:
    """What a request asks for, under its Idempotency-Key.

    Attributes:
        resource_id: of what it makes; empty if only `make` finds that out.
        value: the key; None = the request's header, if any.
        holds: how long the key finds what was made.
    """

    request: Request
    order: Model
    user: UserContext
    services: Services
    resource_id: str
    value: str | None = None
    holds: timedelta = LIFETIME

    async def claim(self) -> Claimed | None:
        """Claim the key for this request; None without a key.

        Raises:
            CallerError: the header does not hold a key.
            IdempotencyKeyReusedError: the key was used for another request.
        """
        value = self.value or self.request.headers.get("idempotency-key")
        if value is None:
            return None
        if not _KEY.fullmatch(value):
            raise CallerError("Idempotency-Key takes 1-200 visible ASCII characters.", "Send a UUID.")
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
    """Return an id for something that a person makes."""
    return owned_id(user.user_id, services.settings.identity.owner_id_key, uuid.uuid4().hex)


async def idempotent(
    key: Key,
    make: Callable[[Claimed | None, Made | None], Awaitable[Made]],
    find: Callable[[Claimed], Awaitable[Made | None]],
) -> Made:
    """Return what a request makes, or what an earlier request under its key has made.

    Args:
        make: makes it and counts the call, or completes what `find` returned but the earlier request had not
            finished. None as the claim = the request carries no key.
        find: returns what an earlier request made; None if it did not come so far, or it was deleted.

    Raises:
        NotFoundError: what was made was deleted since.
        TooManyRequestsError: a repeat exceeds the rate limit.
    """
    claimed = await key.claim()
    if claimed is None or not claimed.is_repeat:
        return await make(claimed, None)
    is_done = claimed.claim.is_done
    if is_done:
        await admitted(key.request, key.user, key.services)
    found = await find(claimed)
    if found is None and is_done:
        raise NotFoundError("What this Idempotency-Key made was deleted.", "Send a new key to make it again.")
    if found is not None:
        if not is_done:
            await admitted(key.request, key.user, key.services)
        add_headers(key.request, {"Idempotency-Replayed": "true"})
    return found if found is not None and is_done else await make(claimed, found)
