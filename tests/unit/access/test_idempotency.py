"""Tests for completing idempotency keys while the store fails or another request uses the same key."""

import pytest

from shared.access.idempotency import Claim, KeyClaim, claim_key, finish
from shared.access.models import UserContext
from shared.platform.errors import DependencyError, IdempotencyKeyReusedError
from tests.fakes.stores_requests import InMemoryIdempotencyStore

ANNA = UserContext(user_id="anna")


class UnreadableStore(InMemoryIdempotencyStore):
    """A store whose reads fail after the key was claimed."""

    async def get(self, user_id: str, key: str) -> Claim | None:
        """Raise an error."""
        raise DependencyError("The table does not respond.")


async def claimed(store: InMemoryIdempotencyStore) -> KeyClaim:
    return await claim_key("key", ANNA, store, route="PUT /documents", body="digest", resource_id="r1")


async def concurrent_upload(store: InMemoryIdempotencyStore, content: str) -> KeyClaim:
    """Complete the key with a file in another request, and return the outdated claim of this request."""
    claim = await claimed(store)
    await finish(claim, store, content)
    return claim


async def test_a_failing_store_does_not_fail_a_created_resource(caplog: pytest.LogCaptureFixture) -> None:
    store = UnreadableStore()
    claim = await concurrent_upload(store, "one file")
    await finish(claim, store, "one file")
    assert "idempotency.store_failed" in caplog.text


async def test_another_file_under_the_same_key_is_an_error() -> None:
    store = InMemoryIdempotencyStore()
    claim = await concurrent_upload(store, "one file")
    await finish(claim, store, "one file")
    with pytest.raises(IdempotencyKeyReusedError):
        await finish(claim, store, "another file")
