"""Idempotency keys: requests that a person repeats under the same key create only one resource.

A key is claimed, with the id of the future resource, before anything is created; each write then creates what
is missing. So a repeat completes what a crash interrupted, and concurrent requests create one resource.
Unlike limits, this fails when the store fails, because a caller who sends a key relies on it.
"""

# Annotations stay text, so that their types need not be imported at start.
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
    """The stored claim of an idempotency key, written by the first request that uses the key.

    Attributes:
        route: method and path of the request, such as `POST /chat`.
        body: digest of the request body.
        resource_id: id of the resource, chosen before it is created. Only the id of an imported web page
            depends on its content.
        content: digest of the uploaded file; None until it has arrived, or if there is none.
        is_done: whether the resource was created. It may have been deleted later.
        revision: changes with every write; None before the first.
    """

    route: str
    body: str
    resource_id: str
    created_at: datetime
    content: str | None = None
    is_done: bool = False
    revision: str | None = None


LIFETIME = timedelta(hours=24)  # clients retry within minutes; a day covers an overnight outage
# Number of rows deleted per hourly run, which takes tens of seconds. The next run continues.
PURGED_AT_ONCE = 5000
_TRIES = 8


@dataclass(frozen=True)
class KeyClaim:
    """The result of claiming an idempotency key for a request.

    Attributes:
        claim: the claim of the first request under this key.
        is_repeat: whether this request is a repeat.
    """

    user_id: str
    key: str
    claim: Claim
    is_repeat: bool

    @property
    def resource_id(self) -> str:
        return self.claim.resource_id


def digest_of(order: Model) -> str:
    """Return a digest of a request body, including default values, to recognise a repeated request."""
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
) -> KeyClaim:
    """Claim an idempotency key for a request, or return the existing claim of an earlier request.

    Args:
        route: method and path of the request, such as `POST /chat`.
        body: digest of the request body.
        resource_id: id of the resource if this is the first request.
        holds: lifetime of the key.

    Raises:
        IdempotencyKeyReusedError: the key was used for another request within its lifetime.
        GroundworkError: the store failed.
    """
    now = datetime.now(UTC)
    new = Claim(route=route, body=body, resource_id=resource_id, created_at=now)
    for _ in range(_TRIES):
        try:
            stored = await idempotency.write(user.user_id, key, new)
            return KeyClaim(user.user_id, key, stored, is_repeat=False)
        except ConflictError:
            claim = await idempotency.get(user.user_id, key)
        if claim is not None and claim.created_at > now - holds:
            if (claim.route, claim.body) != (route, body):
                raise key_reused_error()
            return KeyClaim(user.user_id, key, claim, is_repeat=True)
        # The earlier claim has expired or has just been purged, so this request may replace it.
        new = new.model_copy(update={"revision": claim.revision if claim else None})
    raise ConflictError("Too many concurrent requests with this key.", "Send the request again.")


async def finish(
    claimed: KeyClaim | None,
    idempotency: IdempotencyStore,
    content: str | None = None,
    resource_id: str | None = None,
) -> None:
    """Mark the claim of a request as completed. Store failures are only logged: even without the mark, a
    repeated request finds the resource.

    Args:
        claimed: None = the request has no key.
        content: digest of the uploaded file.
        resource_id: id of the resource if it was unknown before.

    Raises:
        IdempotencyKeyReusedError: another file arrived under this key at the same time.
    """
    if claimed is None or claimed.claim.is_done:
        return
    created_id = resource_id or claimed.resource_id
    done = claimed.claim.model_copy(update={"is_done": True, "content": content, "resource_id": created_id})
    try:
        if await _is_for_another_file(done, claimed, idempotency):
            raise key_reused_error()
    except IdempotencyKeyReusedError:
        raise
    except GroundworkError as failed:
        get_logger().warning("idempotency.store_failed", error_type=failed.code)


async def _is_for_another_file(done: Claim, claimed: KeyClaim, idempotency: IdempotencyStore) -> bool:
    """Store the completed claim. Return whether a concurrent request stored another file under the key."""
    try:
        await idempotency.write(claimed.user_id, claimed.key, done)
    except ConflictError:
        stored = await idempotency.get(claimed.user_id, claimed.key)
        return (
            stored is not None
            and None not in (done.content, stored.content)
            and done.content != stored.content
        )
    return False


@asynccontextmanager
async def complete_key(claimed: KeyClaim | None, idempotency: IdempotencyStore) -> AsyncIterator[None]:
    """Mark an idempotency key as completed once the enclosed block has created the resource. If the block
    raises, delete the key, so that the request can be repeated. Do nothing without a key.

    If the block raises, the key is deleted, so that the next request under it starts again.
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
    """Delete expired idempotency keys, and the limits of people without a request for a day. Return the
    number of deleted rows.
    """
    moment, most = now - LIFETIME, PURGED_AT_ONCE
    return await idempotency.delete_before(moment, most) + await user_limits.delete_before(moment, most)


def key_reused_error() -> IdempotencyKeyReusedError:
    """Return the error for an idempotency key that was used for a different request. The error reveals
    nothing about that request.
    """
    return IdempotencyKeyReusedError(
        "The Idempotency-Key was used for another request within 24 hours.",
        "Use a new key for each request, and repeat a key only with an identical request.",
    )


# Practically unlimited: no store has this many rows.
_ALL = 1_000_000_000


class IdempotencyStore:
    """Storage of idempotency claims, with one partition per person and one row per key.

    Both are stored as digests, because user ids and keys may contain characters that table keys can't.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, user_id: str, key: str) -> Claim | None:
        """Return the claim of a person's key, or None."""
        entity = await self._table.get(digest(user_id), digest(key))
        return Claim.from_payload({**entity, "revision": revision_of(entity)}) if entity else None

    async def write(self, user_id: str, key: str, claim: Claim) -> Claim:
        """Store a claim. Raise ConflictError if the stored claim has changed since `claim.revision` was
        read.
        """
        fields = claim.model_dump(exclude={"revision"}, exclude_none=True)
        entity = {"PartitionKey": digest(user_id), "RowKey": digest(key), **fields}
        return claim.model_copy(update={"revision": await self._table.swap(entity, claim.revision)})

    async def delete(self, user_id: str, key: str) -> None:
        """Delete the claim of a person's key. A missing claim is ignored."""
        await self._table.delete(digest(user_id), digest(key))

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Delete up to `most` claims last written before `moment`. Return their number."""
        return await self._table.delete_before("created_at", moment, most)

    async def forget(self, user_id: str) -> int:
        """Delete all claims of a person. Return their number."""
        return await self._table.delete_found(f"PartitionKey eq '{digest(user_id)}'", _ALL)
