"""`UserLimitStore` in a table: one row per person, whose etag is the revision of the state."""

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from shared.access.limits import UserLimitStore
from shared.platform.errors import ConflictError, DependencyError, NotFoundError
from shared.platform.names import USER_LIMITS_TABLE
from shared.platform.tables import Entity, Table, revision_of

if TYPE_CHECKING:
    from shared.access.limits import UserLimits

_ROW_KEY = "limits"


class TableUserLimitStore(UserLimitStore):
    """What each person has used up."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def read(self, user_id: str) -> "UserLimits":
        """Their row; an empty one when there is none yet.

        Raises:
            DependencyError: a row that nobody of us wrote, or a later version.
        """
        from shared.access.limits import UserLimits

        entity = await self._table.get(_partition(user_id), _ROW_KEY)
        if entity is None:
            return UserLimits()
        try:
            state = UserLimits.from_kept(str(entity["state"]))
        except (KeyError, ValidationError):
            raise DependencyError(
                "The record of what a person used up is not understood.",
                f"Delete the row of the table {USER_LIMITS_TABLE}: it is made anew.",
            ) from None
        return state.model_copy(update={"revision": revision_of(entity)})

    async def write(self, user_id: str, state: "UserLimits") -> "UserLimits":
        """The row as stored. ConflictError when it changed, or went, since it was read."""
        entity = _to_entity(user_id, state)
        if state.revision is None:
            revision = await self._table.insert(entity)
        else:
            try:
                revision = await self._table.replace(entity, state.revision)
            except NotFoundError:
                raise ConflictError("The record of what a person used up is gone.") from None
        return state.model_copy(update={"revision": revision})

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove rows that nobody wrote to since `moment`; how many, at most `most`."""
        instant = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return await self._table.delete_found(f"Timestamp lt datetime'{instant}'", most)

    async def forget(self, user_id: str) -> int:
        """Remove a person's row; how many there were."""
        return await self._table.delete_found(f"PartitionKey eq '{_partition(user_id)}'", 1)


def _partition(user_id: str) -> str:
    """Ids of identity providers may hold what no key can; a digest holds nothing of a person either."""
    return hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()


def _to_entity(user_id: str, state: "UserLimits") -> Entity:
    content = state.model_dump_json(exclude={"revision"})
    return {"PartitionKey": _partition(user_id), "RowKey": _ROW_KEY, "state": content}
