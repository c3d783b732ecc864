"""What is stored of messages and conversations.

Blobs of the `work` container hold a message until it is answered, in a folder of its day, and what a reply
keeps with the run that it shows; that is erased with the run. A table holds turns, and which run each of our
messages shows.
"""

import hashlib
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from pydantic import ValidationError

from shared.platform.blobs import BlobStore, find_model, keep_model, write_model
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.instances import StopRun
from shared.platform.names import WORK
from shared.platform.settings import Settings
from shared.platform.tables import Entity, Table, revision_of
from shared.teams.models import (
    BotJoined,
    BotMessage,
    BotTurn,
    ReplyClaim,
    ReplyPlace,
    ReplyStep,
    SentReply,
    TakenActivity,
)

TAKEN_FOLDER = "channel/"
MAX_PURGED = 1000  # per call of the timer; the next call continues
_RETENTION = timedelta(days=2)  # a reply takes minutes, and the Bot Service sends again within minutes
_ALL_ROWS = 1_000_000


async def take_down(activity: BotMessage | BotJoined, key: str, day: str, blobs: BlobStore) -> None:
    """Store an activity. A duplicate changes nothing, also after it was answered."""
    content = TakenActivity(said=activity)
    try:
        await keep_model(blobs, WORK, _path(key, day), content)
    except NotFoundError:  # the very first request of a deployment: there is no container yet
        await blobs.ensure_containers((WORK,))
        await keep_model(blobs, WORK, _path(key, day), content)


async def taken(step: ReplyStep, blobs: BlobStore) -> BotMessage | BotJoined | None:
    """The activity; None once it is answered."""
    stored = await find_model(blobs, WORK, _path(step.reply_key, step.day), TakenActivity)
    return stored.said if stored else None


async def settle(step: ReplyStep, blobs: BlobStore) -> None:
    """Mark the activity as answered, without its words."""
    await write_model(blobs, WORK, _path(step.reply_key, step.day), TakenActivity(is_done=True))


async def purge_taken(now: datetime, settings: Settings, blobs: BlobStore, forget: StopRun) -> int:
    """Remove old activities and the orchestrations of their replies; how many activities.

    An activity is old when its reply cannot wait for anything any more.
    """
    waits = timedelta(seconds=settings.answering.clarification_timeout_s)
    last = (now - _RETENTION - waits).date().isoformat()
    names = [found.name async for found in blobs.list_blobs(WORK, TAKEN_FOLDER)]
    old = [name for name in names if name.removeprefix(TAKEN_FOLDER).partition("/")[0] < last][:MAX_PURGED]
    for name in old:
        await forget(reply_of(name))
        await blobs.delete(WORK, name)
    return len(old)


async def purge_turns(now: datetime, settings: Settings, turns: "BotTurnStore | None") -> int:
    """Remove turns and messages older than RUN_RETENTION_DAYS; how many rows."""
    if turns is None:
        return 0
    limit = now - timedelta(days=settings.conversations.run_retention_days)
    return await turns.delete_before(limit, MAX_PURGED)


def instance_of(key: str) -> str:
    """The orchestration of a reply."""
    return f"{key}-reply"


def reply_of(name: str) -> str:
    """The orchestration of the reply to an activity, from the name of its blob."""
    return instance_of(name.rpartition("/")[2].removesuffix(".json"))


def today() -> str:
    """The day in UTC, as folders are named."""
    return datetime.now(UTC).date().isoformat()


NoteKind = Literal["growing", "sent"]
"""What is noted of a reply: the message that is streamed, and the one that went out whole."""


class ReplyMemory:
    """What one reply keeps with the run that it shows."""

    def __init__(self, blobs: BlobStore, run_id: str, reply_key: str) -> None:
        self._blobs = blobs
        self._run = f"runs/{run_id}/channel"
        self._own = f"{self._run}-{reply_key}"
        self._key = reply_key

    async def keep_place(self, place: ReplyPlace) -> None:
        """Store where the run is answered."""
        await write_model(self._blobs, WORK, f"{self._own}-place.json", place)

    async def place(self) -> ReplyPlace:
        """Where the run is answered. NotFoundError if the run was erased."""
        found = await find_model(self._blobs, WORK, f"{self._own}-place.json", ReplyPlace)
        if found is None:
            raise NotFoundError("Nothing is kept of this reply.")
        return found

    async def claim(self, ask_step: int) -> bool:
        """Whether this reply is the one that shows what follows an answered clarification."""
        claim = ReplyClaim(reply_key=self._key)
        return await keep_model(self._blobs, WORK, f"{self._run}-after-{ask_step:03d}.json", claim) == claim

    async def begin(self, ask_step: int) -> bool:
        """Whether this is the first attempt to write the reply; an earlier one may have shown a part."""
        return await self._blobs.create(WORK, f"{self._own}-{ask_step:03d}-begun", b"")

    async def note(self, ask_step: int, kind: NoteKind, message_id: str) -> None:
        """Store the channel's id of a message; empty for `growing`: that message is finished."""
        await write_model(self._blobs, WORK, self._part(ask_step, kind), SentReply(message_id=message_id))

    async def noted(self, ask_step: int, kind: NoteKind) -> str | None:
        """The id of the message, if there is one."""
        found = await find_model(self._blobs, WORK, self._part(ask_step, kind), SentReply)
        return found.message_id if found else None

    def _part(self, ask_step: int, kind: NoteKind) -> str:
        return f"{self._own}-{ask_step:03d}-{kind}.json"


def _path(key: str, day: str) -> str:
    return f"{TAKEN_FOLDER}{date.fromisoformat(day).isoformat()}/{key}.json"


class BotTurnStore:
    """Turns of owners in conversations, and the run that each of our messages shows.

    A table with two kinds of partitions, whose keys are digests like those of all rows.
    One partition per owner holds the owner's turns, by conversation. One per conversation holds the run of
    each of our messages.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, conversation_key: str, owner_id: str) -> BotTurn | None:
        """The turn, or None. A row that cannot be read is removed."""
        entity = await self._table.get(_owner(owner_id), conversation_key)
        if entity is None:
            return None
        try:
            turn = BotTurn.from_stored(str(entity["turn"]))
        except (KeyError, ValidationError):
            await self._table.delete(_owner(owner_id), conversation_key)
            return None
        return turn.model_copy(update={"revision": revision_of(entity)})

    async def put(self, conversation_key: str, turn: BotTurn) -> BotTurn:
        """The turn as stored. ConflictError if it changed since `turn.revision` was read."""
        entity: Entity = {
            "PartitionKey": _owner(turn.owner_id),
            "RowKey": conversation_key,
            "turn": turn.model_dump_json(exclude={"revision"}),
        }
        revision = await self._table.swap(entity, turn.revision)
        return turn.model_copy(update={"revision": revision})

    async def note_message(self, conversation_key: str, message_id: str, run_id: str, owner_id: str) -> None:
        """Store which run a message of ours shows; a duplicate changes nothing."""
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
        """The run and its owner's id; None if the message is not one of ours."""
        entity = await self._table.get(f"messages-{conversation_key}", _digest(message_id))
        return None if entity is None else (str(entity["run_id"]), str(entity["owner_id"]))

    async def forget(self, owner_id: str) -> int:
        """Remove the turns and messages of an owner; of how many conversations."""
        owner = _owner(owner_id)
        keys = [str(row["RowKey"]) async for row in self._table.query(f"PartitionKey eq '{owner}'")]
        for key in keys:
            # Messages first: only the turn leads to them.
            theirs = f"PartitionKey eq 'messages-{key}' and owner eq '{owner}'"
            await self._table.delete_found(theirs, _ALL_ROWS)
            await self._table.delete(owner, key)
        return len(keys)

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove rows that were not written since `moment`; how many, at most `most`."""
        return await self._table.delete_before("Timestamp", moment, most)


def _owner(owner_id: str) -> str:
    return f"turns-{_digest(owner_id)}"


def _digest(text: str) -> str:
    """Ids of channels and of identity providers may hold characters that no key of a table can."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
