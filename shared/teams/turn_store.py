"""`BotTurnStore` in a table. Two kinds of partitions, whose keys are digests, like those of all rows.

One per owner, with what is remembered of them in each conversation; it also tells in which conversations
messages about their runs are to be looked for. One per conversation, with the run of each message of ours.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.tables import Entity, Table, revision_of
from shared.teams.ports import BotTurnStore

if TYPE_CHECKING:
    from shared.teams.models import BotTurn

_MOST = 1_000_000  # rows of one deletion: all there are


class TableBotTurnStore(BotTurnStore):
    """Turns by owner, messages by conversation."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, conversation_key: str, owner_id: str) -> "BotTurn | None":
        """What is remembered. What a version wrote that is not understood goes, and a new one begins."""
        entity = await self._table.get(_owner(owner_id), conversation_key)
        turn = None if entity is None else _from_entity(entity)
        if entity is not None and turn is None:
            await self._table.delete(_owner(owner_id), conversation_key)
        return turn

    async def put(self, conversation_key: str, turn: "BotTurn") -> "BotTurn":
        """The turn as stored. ConflictError when it changed since `turn.revision` was read."""
        entity: Entity = {
            "PartitionKey": _owner(turn.owner_id),
            "RowKey": conversation_key,
            "turn": turn.model_dump_json(exclude={"revision"}),
        }
        if turn.revision is None:
            revision = await self._table.insert(entity)
        else:
            try:
                revision = await self._table.replace(entity, turn.revision)
            except NotFoundError:
                raise ConflictError("What was remembered of the conversation is gone.") from None
        return turn.model_copy(update={"revision": revision})

    async def note_message(self, conversation_key: str, message_id: str, run_id: str, owner_id: str) -> None:
        """Keep which run a message of ours tells of; the same again is no error."""
        entity: Entity = {
            "PartitionKey": f"messages-{conversation_key}",
            "RowKey": _digest(message_id),
            "run_id": run_id,
            "owner_id": owner_id,
            "owner": _owner(owner_id),
        }
        try:
            await self._table.insert(entity)
        except ConflictError:
            return

    async def run_of_message(self, conversation_key: str, message_id: str) -> tuple[str, str] | None:
        """The run and its owner's id; None when the message is not one of ours."""
        entity = await self._table.get(f"messages-{conversation_key}", _digest(message_id))
        return None if entity is None else (str(entity["run_id"]), str(entity["owner_id"]))

    async def forget(self, owner_id: str) -> int:
        """Remove what is remembered of an owner: first the messages, which the rest leads to."""
        owner = _owner(owner_id)
        keys = [str(row["RowKey"]) async for row in self._table.query(f"PartitionKey eq '{owner}'")]
        for key in keys:
            theirs = f"PartitionKey eq 'messages-{key}' and owner eq '{owner}'"
            await self._table.delete_found(theirs, _MOST)
            await self._table.delete(owner, key)
        return len(keys)

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove rows that nobody wrote to since `moment`; how many, at most `most`."""
        instant = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return await self._table.delete_found(f"Timestamp lt datetime'{instant}'", most)


def _owner(owner_id: str) -> str:
    return f"turns-{_digest(owner_id)}"


def _digest(text: str) -> str:
    """Ids of channels and of identity providers may hold what no key of a table can."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _from_entity(entity: Mapping[str, Any]) -> "BotTurn | None":
    # Imported when read: most processes serve no channel.
    from shared.teams.models import BotTurn

    try:
        turn = BotTurn.from_stored(str(entity["turn"]))
    except (KeyError, ValidationError):
        return None
    return turn.model_copy(update={"revision": revision_of(entity)})
