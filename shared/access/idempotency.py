"""Requests that are sent again: the same person's same request under the same key makes one thing.

A key is claimed before anything is made, with the id that the thing will have; then each write creates what
is not there yet. So the next repeat completes what a crash interrupted, and two at once make one thing.
Unlike the limits this fails when the store fails: a caller who sends a key relies on it.
"""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.access.models import UserContext
from shared.access.user_limit_store import UserLimitStore
from shared.platform.errors import ConflictError, GroundworkError, IdempotencyKeyReusedError
from shared.platform.hashing import digest
from shared.platform.models import Model
from shared.platform.tables import Table, revision_of
from shared.platform.telemetry import get_logger


class Claim(Model):
    """A key's first request.

    Attributes:
        route: such as `POST /chat`.
        body: digest of what was asked for.
        resource_id: of what it makes; chosen before anything is made, but for a page of the web, whose
            document is known by what is read.
        content: digest of the file that came with it; None until it has arrived, and without one.
        is_done: the resource was made. One that is not there any more then was deleted since.
        revision: changes with every write; None before the first.
    """

    route: str
    body: str
    resource_id: str
    created_at: datetime
    content: str | None = None
    is_done: bool = False
    revision: str | None = None


LIFETIME = timedelta(hours=24)  # who retries does so within minutes; a day spans a night's outage
PURGED_AT_ONCE = 5000  # some tens of seconds of single deletions; the next hour continues
_TRIES = 8


@dataclass(frozen=True)
class Claimed:
    """A key that a request may use.

    Attributes:
        claim: of the first request under this key.
        is_repeat: this request is not the first.
    """

    user_id: str
    key: str
    claim: Claim
    is_repeat: bool

    @property
    def resource_id(self) -> str:
        return self.claim.resource_id


def digest_of(order: Model) -> str:
    """What tells one request from another: its fields, with their defaults."""
    return digest(order.model_dump_json())


async def claim_key(
    key: str,
    user: UserContext,
    idempotency: IdempotencyStore,
    *,
    route: str,
    body: str,
    resource_id: str,
    holds: timedelta = LIFETIME,
) -> Claimed:
    """Claim a key, or find what it was first used for.

    Args:
        route: such as `POST /chat`.
        body: digest of what is asked for.
        resource_id: of what will be made, if this is the first request.
        holds: how long the key finds what was made.

    Raises:
        IdempotencyKeyReusedError: it was used for another request in that time.
        GroundworkError: the store failed.
    """
    now = datetime.now(UTC)
    new = Claim(route=route, body=body, resource_id=resource_id, created_at=now)
    for _ in range(_TRIES):
        try:
            stored = await idempotency.write(user.user_id, key, new)
            return Claimed(user.user_id, key, stored, is_repeat=False)
        except ConflictError:
            known = await idempotency.get(user.user_id, key)
        if known is not None and known.created_at > now - holds:
            if (known.route, known.body) != (route, body):
                raise reused()
            return Claimed(user.user_id, key, known, is_repeat=True)
        # What is known holds no more, or was purged just now.
        new = new.model_copy(update={"revision": known.revision if known else None})
    raise ConflictError("Too many requests under this key at the same time.", "Send it again.")


async def finish(
    claimed: Claimed | None,
    idempotency: IdempotencyStore,
    content: str | None = None,
    resource_id: str | None = None,
) -> None:
    """Note that the thing was made. Never fails: without the note a repeat looks for it, and finds it.

    Args:
        claimed: None = the request carries no key.
        content: digest of the file that came with the request.
        resource_id: of what was made, if it was not known before.

    Raises:
        IdempotencyKeyReusedError: another file came under this key at the same time.
    """
    if claimed is None or claimed.claim.is_done:
        return
    made = resource_id or claimed.resource_id
    done = claimed.claim.model_copy(update={"is_done": True, "content": content, "resource_id": made})
    try:
        await idempotency.write(claimed.user_id, claimed.key, done)
    except ConflictError:
        known = await idempotency.get(claimed.user_id, claimed.key)
        if content is not None and known is not None and known.content not in (None, content):
            raise reused() from None
    except GroundworkError as failed:
        get_logger().warning("idempotency.store_failed", error_type=failed.code)


@asynccontextmanager
async def beginning(claimed: Claimed | None, idempotency: IdempotencyStore) -> AsyncIterator[None]:
    """A block that begins the thing: then its key is finished. None = the request carries no key.

    If the block raises, the key is forgotten: the next request under it starts again.
    """
    try:
        yield
    except Exception:
        if claimed is not None:
            try:
                await idempotency.delete(claimed.user_id, claimed.key)
            except GroundworkError as failed:
                get_logger().warning("idempotency.release_failed", error_type=failed.code)
        raise
    await finish(claimed, idempotency)


async def purge_old_requests(
    now: datetime, idempotency: IdempotencyStore, user_limits: UserLimitStore
) -> int:
    """Remove keys that hold no more, and limits of people who made no call for a day; how many rows."""
    moment, most = now - LIFETIME, PURGED_AT_ONCE
    return await idempotency.delete_before(moment, most) + await user_limits.delete_before(moment, most)


def reused() -> IdempotencyKeyReusedError:
    """The one refusal: it does not say what the key was used for."""
    return IdempotencyKeyReusedError(
        "The Idempotency-Key was used for another request within 24 hours.",
        "Send a new key with each new request, and the same one only with the very same request.",
    )


_ALL = 1_000_000_000  # rows of one deletion: all there are


class IdempotencyStore:
    """The first request of each key, by person: a partition per person, a row per key.

    Both are stored as digests only: ids of identity providers, and keys, may hold characters that a table's
    keys cannot.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, user_id: str, key: str) -> Claim | None:
        """What the person's key was first used for, or None."""
        entity = await self._table.get(digest(user_id), digest(key))
        return Claim.from_payload({**entity, "revision": revision_of(entity)}) if entity else None

    async def write(self, user_id: str, key: str, claim: Claim) -> Claim:
        """The claim as stored. ConflictError if it changed, came or went since `claim.revision` was read."""
        fields = claim.model_dump(exclude={"revision"}, exclude_none=True)
        entity = {"PartitionKey": digest(user_id), "RowKey": digest(key), **fields}
        return claim.model_copy(update={"revision": await self._table.swap(entity, claim.revision)})

    async def delete(self, user_id: str, key: str) -> None:
        """Forget it; one that is gone is no error."""
        await self._table.delete(digest(user_id), digest(key))

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove claims made before `moment` and not renewed, at most `most`; returns how many."""
        return await self._table.delete_before("created_at", moment, most)

    async def forget(self, user_id: str) -> int:
        """Remove all claims of a person; returns how many."""
        return await self._table.delete_found(f"PartitionKey eq '{digest(user_id)}'", _ALL)
