"""`IdempotencyStore` in a table: a partition per person, a row per key. Of both only digests are kept."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shared.access.idempotency import IdempotencyStore
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.tables import Entity, Table, revision_of

if TYPE_CHECKING:
    from shared.access.idempotency import Claim

_EVERY = 1_000_000_000  # rows of one deletion: all there are
_FIELDS = {"route", "body", "resource_id", "created_at", "content", "is_done"}


class TableIdempotencyStore(IdempotencyStore):
    """The first request of each key."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def create(self, user_id: str, key: str, claim: "Claim") -> "Claim":
        """The claim as stored. ConflictError when the person's key has one."""
        revision = await self._table.insert(_to_entity(user_id, key, claim))
        return claim.model_copy(update={"revision": revision})

    async def get(self, user_id: str, key: str) -> "Claim | None":
        """What the person's key was first used for, or None."""
        entity = await self._table.get(_digest(user_id), _digest(key))
        return None if entity is None else _from_entity(entity)

    async def replace(self, user_id: str, key: str, claim: "Claim") -> "Claim":
        """The claim as stored. ConflictError when it changed, or went, since it was read."""
        try:
            revision = await self._table.replace(_to_entity(user_id, key, claim), claim.revision)
        except NotFoundError:
            raise ConflictError("The record of the key is gone.") from None
        return claim.model_copy(update={"revision": revision})

    async def delete(self, user_id: str, key: str) -> None:
        """Forget it; one that is gone is no error."""
        await self._table.delete(_digest(user_id), _digest(key))

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove claims made before `moment`; how many, at most `most`. One made anew meanwhile stays."""
        instant = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return await self._table.delete_found(f"created_at lt datetime'{instant}'", most)

    async def forget(self, user_id: str) -> int:
        """Remove all claims of a person; how many."""
        return await self._table.delete_found(f"PartitionKey eq '{_digest(user_id)}'", _EVERY)


def _digest(text: str) -> str:
    """Ids of identity providers, and keys, may hold what no key of a table can."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _to_entity(user_id: str, key: str, claim: "Claim") -> Entity:
    fields = claim.model_dump(include=_FIELDS, exclude_none=True)
    return {"PartitionKey": _digest(user_id), "RowKey": _digest(key), **fields}


def _from_entity(entity: Mapping[str, Any]) -> "Claim":
    # Imported when read: most processes never see a key.
    from shared.access.idempotency import Claim

    fields = {name: entity[name] for name in _FIELDS if name in entity}
    return Claim.model_validate({**fields, "revision": revision_of(entity)})
