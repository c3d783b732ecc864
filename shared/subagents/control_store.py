"""`ControlStore` in a table: one entity for all instances, whose etag is the revision of the state.

The state is kept as JSON, in as many properties as its length asks for: there can be many leases.
"""

from typing import TYPE_CHECKING

from pydantic import ValidationError

from shared.platform.errors import ConflictError, DependencyError, NotFoundError
from shared.platform.names import SUBAGENT_CONTROL_TABLE
from shared.platform.tables import MAX_TEXT_CHARS, Entity, Table, revision_of
from shared.subagents.control import ControlStore

if TYPE_CHECKING:
    from shared.subagents.control import ControlState

_KEY = "subagents"


class TableControlStore(ControlStore):
    """The row of sub-agents at work."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def read(self) -> "ControlState":
        """The state with its revision; an empty one when there is no row yet.

        Raises:
            DependencyError: a row that nobody of us wrote, or a later version.
        """
        # Imported when read: a worker that answers no question never does.
        from shared.subagents.control import ControlState

        entity = await self._table.get(_KEY, _KEY)
        if entity is None:
            return ControlState()
        names = sorted(name for name in entity if name.startswith("state_"))
        try:
            state = ControlState.from_stored("".join(str(entity[name]) for name in names))
        except ValidationError:
            # Not taken for an empty one: who knows how many are at work.
            raise DependencyError(
                "The record of sub-agents at work is not understood.",
                f"Delete the row of the table {SUBAGENT_CONTROL_TABLE}: it is made anew.",
            ) from None
        return state.model_copy(update={"revision": revision_of(entity)})

    async def write(self, state: "ControlState") -> "ControlState":
        """The state as stored. ConflictError when it changed, or went, since it was read."""
        entity = _to_entity(state)
        if state.revision is None:
            revision = await self._table.insert(entity)
        else:
            try:
                revision = await self._table.replace(entity, state.revision)
            except NotFoundError:
                raise ConflictError("The record of sub-agents is gone.") from None
        return state.model_copy(update={"revision": revision})


def _to_entity(state: "ControlState") -> Entity:
    text = state.model_dump_json(exclude={"revision"})
    pieces = [text[start : start + MAX_TEXT_CHARS] for start in range(0, len(text), MAX_TEXT_CHARS)]
    return {
        "PartitionKey": _KEY,
        "RowKey": _KEY,
        **{f"state_{number:03d}": piece for number, piece in enumerate(pieces)},
    }
