"""What is kept of a message until it is answered, and of its answer; in blobs of the `work` container.

The message lies in a folder of its day until it is answered, and goes with that folder at the latest. What
belongs to a run lies in the run's working memory, and is erased with the run.
"""

from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

from shared.platform.blobs import BlobStore
from shared.platform.errors import NotFoundError
from shared.platform.instances import StopRun
from shared.platform.models import Model
from shared.platform.names import WORK
from shared.platform.settings import Settings
from shared.teams.models import (
    BotJoined,
    BotMessage,
    ReplyClaim,
    ReplyPlace,
    ReplyStep,
    SentReply,
    TakenActivity,
)
from shared.teams.ports import BotTurnStore

TAKEN_FOLDER = "channel/"
MOST_AT_ONCE = 1000  # of one call of the timer; the next call goes on
_KEPT = timedelta(days=2)  # a reply to a message takes minutes; the Bot Service sends again within some
_Kept = TypeVar("_Kept", bound=Model)


async def take_down(said: BotMessage | BotJoined, key: str, day: str, blobs: BlobStore) -> None:
    """Keep what somebody wrote. The same again changes nothing, also when it was answered already."""
    content = TakenActivity(said=said).model_dump_json().encode()
    try:
        await blobs.create(WORK, _path(key, day), content)
    except NotFoundError:  # the very first request of a deployment: nobody has made the container yet
        await blobs.ensure_containers((WORK,))
        await blobs.create(WORK, _path(key, day), content)


async def taken(step: ReplyStep, blobs: BlobStore) -> BotMessage | BotJoined | None:
    """What somebody wrote; None once it is answered."""
    try:
        content = await blobs.read(WORK, _path(step.reply_key, step.day))
    except NotFoundError:
        return None
    return TakenActivity.from_stored(content).said


async def settle(step: ReplyStep, blobs: BlobStore) -> None:
    """It is answered: its words go, that it came stays."""
    content = TakenActivity(is_done=True).model_dump_json().encode()
    await blobs.write(WORK, _path(step.reply_key, step.day), content)


async def purge_taken(now: datetime, settings: Settings, blobs: BlobStore, forget: StopRun) -> int:
    """Remove what is left of old messages and of their replies' orchestrations; how many messages.

    Old are those whose reply cannot wait for anything any more.
    """
    waits = timedelta(seconds=settings.clarification_timeout_s)
    last = (now - _KEPT - waits).date().isoformat()
    listed = blobs.list_blobs(WORK, TAKEN_FOLDER)
    names = [found.name async for found in listed if _day_of(found.name) < last][:MOST_AT_ONCE]
    for name in names:
        await forget(reply_of(name))
        await blobs.delete(WORK, name)
    return len(names)


async def purge_turns(now: datetime, settings: Settings, bot_turns: BotTurnStore | None) -> int:
    """Remove what is remembered of conversations that nobody has gone on with; how many rows."""
    if bot_turns is None:
        return 0
    limit = now - timedelta(days=settings.run_retention_days)
    return await bot_turns.delete_before(limit, MOST_AT_ONCE)


def instance_of(key: str) -> str:
    """The orchestration of a reply."""
    return f"{key}-reply"


def reply_of(name: str) -> str:
    """The orchestration of the reply to a message, by the name of the message's blob."""
    return instance_of(name.rpartition("/")[2].removesuffix(".json"))


def today() -> str:
    """The day, in UTC, as folders are named."""
    return datetime.now(UTC).date().isoformat()


class ReplyMemory:
    """What one reply keeps with the run that it tells of."""

    def __init__(self, blobs: BlobStore, run_id: str, reply_key: str) -> None:
        self._blobs = blobs
        self._run = f"runs/{run_id}/channel"
        self._own = f"{self._run}-{reply_key}"
        self._key = reply_key

    async def keep_place(self, place: ReplyPlace) -> None:
        """Keep where the run is answered."""
        await self._blobs.write(WORK, f"{self._own}-place.json", place.model_dump_json().encode())

    async def place(self) -> ReplyPlace:
        """Where the run is answered. NotFoundError when the run was erased."""
        found = await self._find(f"{self._own}-place.json", ReplyPlace)
        if found is None:
            raise NotFoundError("Nothing is kept of this reply.")
        return found

    async def claim(self, ask_step: int) -> bool:
        """Whether this reply is the one that tells what comes after a question was answered."""
        name = f"{self._run}-after-{ask_step:03d}.json"
        claim = ReplyClaim(reply_key=self._key)
        if await self._blobs.create(WORK, name, claim.model_dump_json().encode()):
            return True
        return await self._find(name, ReplyClaim) == claim

    async def begin(self, ask_step: int) -> bool:
        """Whether nobody has begun before to write this reply; an earlier attempt may have shown a part."""
        return await self._blobs.create(WORK, f"{self._own}-{ask_step:03d}-begun", b"")

    async def note_growing(self, ask_step: int, message_id: str) -> None:
        """The reply is shown under this id while it grows; empty: that message is for something else now."""
        content = SentReply(message_id=message_id).model_dump_json().encode()
        await self._blobs.write(WORK, f"{self._own}-{ask_step:03d}-growing.json", content)

    async def growing(self, ask_step: int) -> str:
        """The id under which an earlier attempt began to show the reply; empty where none did."""
        found = await self._find(f"{self._own}-{ask_step:03d}-growing.json", SentReply)
        return found.message_id if found else ""

    async def note_sent(self, ask_step: int, message_id: str) -> None:
        """The whole reply went out."""
        content = SentReply(message_id=message_id).model_dump_json().encode()
        await self._blobs.write(WORK, f"{self._own}-{ask_step:03d}-sent.json", content)

    async def sent(self, ask_step: int) -> SentReply | None:
        """The reply that went out, if one did."""
        return await self._find(f"{self._own}-{ask_step:03d}-sent.json", SentReply)

    async def _find(self, name: str, kind: type[_Kept]) -> _Kept | None:
        try:
            return kind.from_stored(await self._blobs.read(WORK, name))
        except NotFoundError:
            return None


def _path(key: str, day: str) -> str:
    return f"{TAKEN_FOLDER}{date.fromisoformat(day).isoformat()}/{key}.json"


def _day_of(name: str) -> str:
    return name.removeprefix(TAKEN_FOLDER).partition("/")[0]
