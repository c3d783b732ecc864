"""Storage of incoming activities, of replies in progress and of conversation state.

Blobs of the `work` container hold a message until it is answered, in a folder per day and writer, and the
state of a reply, which is erased with its run. A table contains the conversation states and the run that
each bot message shows.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import ValidationError

from shared.access.owner_ids import owner_prefix
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
from shared.teams.parsing import owner_of

TAKEN_FOLDER = "channel/"
# Rows or activities deleted per timer call. The next call continues.
MAX_PURGED = 1000
# Retention of activities. Replies and redeliveries take minutes.
_RETENTION = timedelta(days=2)
_ALL_ROWS = 1_000_000


async def store_activity(activity: BotMessage | BotJoined, key: str, folder: str, blobs: BlobStore) -> None:
    """Store an incoming activity in the folder returned by `folder_of`. Duplicates are ignored, even after
    the activity was answered.
    """
    content = TakenActivity(said=activity)
    try:
        await keep_model(blobs, WORK, _path(key, folder), content)
    except NotFoundError:  # The container doesn't exist before the first request of a new deployment.
        await blobs.ensure_containers((WORK,))
        await keep_model(blobs, WORK, _path(key, folder), content)


async def read_activity(step: ReplyStep, blobs: BlobStore) -> BotMessage | BotJoined | None:
    """Return the stored activity that a step belongs to, or None if it has been answered."""
    stored = await find_model(blobs, WORK, _path(step.reply_key, step.folder), TakenActivity)
    return stored.said if stored else None


async def settle(step: ReplyStep, blobs: BlobStore) -> None:
    """Mark the activity of a step as answered and delete its text."""
    await write_model(blobs, WORK, _path(step.reply_key, step.folder), TakenActivity(is_done=True))


async def purge_activities(now: datetime, settings: Settings, blobs: BlobStore, forget: StopRun) -> int:
    """Delete expired activities together with the orchestrations of their replies. Return the number of
    activities deleted.

    An activity expires two days after the longest time that its run may wait for a clarification.
    """
    waits = timedelta(seconds=settings.answering.clarification_timeout_s)
    last = (now - _RETENTION - waits).date().isoformat()
    names = [blob.name async for blob in blobs.list_blobs(WORK, TAKEN_FOLDER)]
    old = [name for name in names if name.removeprefix(TAKEN_FOLDER).partition("/")[0] < last][:MAX_PURGED]
    for name in old:
        await forget(reply_of(name))
        await blobs.delete(WORK, name)
    return len(old)


async def purge_turns(now: datetime, settings: Settings, turns: "BotTurnStore | None") -> int:
    """Delete conversation states and message records older than RUN_RETENTION_DAYS. Return the number of rows
    deleted.
    """
    if turns is None:
        return 0
    limit = now - timedelta(days=settings.conversations.run_retention_days)
    return await turns.delete_before(limit, MAX_PURGED)


def instance_of(key: str) -> str:
    """Return the instance id of the orchestration that handles the reply with this key."""
    return f"{key}-reply"


def reply_of(name: str) -> str:
    """Return the instance id of the reply orchestration for the blob of a stored activity."""
    return instance_of(name.rpartition("/")[2].removesuffix(".json"))


def folder_of(activity: BotMessage | BotJoined, owner_id_key: str) -> str:
    """Return the folder for a new activity, named after today's UTC date and the id prefix of its sender.

    In a group, the sender is not the owner of the run. Erasure finds the sender's messages by this prefix.
    """
    sender = activity.sender
    writer = sender.object_id or owner_of(activity.conversation, sender)
    return f"{datetime.now(UTC).date().isoformat()}/{owner_prefix(writer, owner_id_key)}"


async def activities_of(prefix: str, blobs: BlobStore) -> list[str]:
    """Return the blob names of all stored activities that one person sent.

    Args:
        prefix: the person's id prefix, which is part of the folder names.
    """
    names = [blob.name async for blob in blobs.list_blobs(WORK, TAKEN_FOLDER)]
    return [name for name in names if f"/{prefix}" in name]


NoteKind = Literal["growing", "sent"]
"""Kinds of recorded messages: the one being streamed, and the complete one that was sent."""


class ReplyMemory:
    """The state of a reply, stored with the files of its run."""

    def __init__(self, blobs: BlobStore, run_id: str, reply_key: str) -> None:
        self._blobs = blobs
        self._run = f"runs/{run_id}/channel"
        self._own = f"{self._run}-{reply_key}"
        self._key = reply_key

    async def keep_place(self, place: ReplyPlace) -> None:
        """Store the destination of the run's answer."""
        await write_model(self._blobs, WORK, f"{self._own}-place.json", place)

    async def place(self) -> ReplyPlace:
        """Return the destination of the run's answer. Raise NotFoundError if the run was erased."""
        place = await find_model(self._blobs, WORK, f"{self._own}-place.json", ReplyPlace)
        if place is None:
            raise NotFoundError("No state is stored for this reply.")
        return place

    async def claim(self, ask_step: int) -> bool:
        """Claim the reply to an answered clarification. Return False if another reply has already claimed
        it.
        """
        claim = ReplyClaim(reply_key=self._key)
        return await keep_model(self._blobs, WORK, f"{self._run}-after-{ask_step:03d}.json", claim) == claim

    async def begin(self, ask_step: int) -> bool:
        """Record an attempt to send the reply. Return True for the first one; an earlier attempt may have
        sent a partial message.
        """
        return await self._blobs.create(WORK, f"{self._own}-{ask_step:03d}-begun", b"")

    async def note(self, ask_step: int, kind: NoteKind, message_id: str) -> None:
        """Store the channel's id of a message. For `growing`, an empty id means that no partial message is
        left.
        """
        await write_model(self._blobs, WORK, self._part(ask_step, kind), SentReply(message_id=message_id))

    async def sent_message_id(self, ask_step: int, kind: NoteKind) -> str | None:
        """Return the stored message id, or None if none was stored."""
        reply = await find_model(self._blobs, WORK, self._part(ask_step, kind), SentReply)
        return reply.message_id if reply else None

    def _part(self, ask_step: int, kind: NoteKind) -> str:
        return f"{self._own}-{ask_step:03d}-{kind}.json"


def _path(key: str, folder: str) -> str:
    return f"{TAKEN_FOLDER}{folder}/{key}.json"


class BotTurnStore:
    """Table of conversation states, and of the runs that bot messages show.

    The table has two kinds of partitions, with digests as keys: one per owner with their turns by
    conversation, and one per conversation with the run of each of our messages.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, conversation_key: str, owner_id: str) -> BotTurn | None:
        """Return an owner's state in a conversation, or None. An unreadable row is deleted."""
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
        """Store an owner's state. Raise ConflictError if the row changed since `turn.revision`."""
        entity: Entity = {
            "PartitionKey": _owner(turn.owner_id),
            "RowKey": conversation_key,
            "turn": turn.model_dump_json(exclude={"revision"}),
        }
        revision = await self._table.swap(entity, turn.revision)
        return turn.model_copy(update={"revision": revision})

    async def note_message(self, conversation_key: str, message_id: str, run_id: str, owner_id: str) -> None:
        """Record which run a bot message shows. Duplicates are ignored."""
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
        """Return the run id and owner id for a bot message, or None if the message was not recorded."""
        entity = await self._table.get(f"messages-{conversation_key}", _digest(message_id))
        return None if entity is None else (str(entity["run_id"]), str(entity["owner_id"]))

    async def forget(self, owner_id: str) -> int:
        """Delete an owner's conversation states and message records. Return the number of conversations."""
        owner = _owner(owner_id)
        keys = [str(row["RowKey"]) async for row in self._table.query(f"PartitionKey eq '{owner}'")]
        for key in keys:
            # Delete messages first, because they can be found only through the conversation's row.
            theirs = f"PartitionKey eq 'messages-{key}' and owner eq '{owner}'"
            await self._table.delete_found(theirs, _ALL_ROWS)
            await self._table.delete(owner, key)
        return len(keys)

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Delete up to `most` rows that have not been written since `moment`. Return the number of rows
        deleted.
        """
        return await self._table.delete_before("Timestamp", moment, most)


def _owner(owner_id: str) -> str:
    return f"turns-{_digest(owner_id)}"


def _digest(text: str) -> str:
    """Return a digest of an id, because ids from channels may contain characters that are invalid in table
    keys.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
