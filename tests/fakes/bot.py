"""A chat channel in memory: sent messages, stored turns and started orchestrations."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.platform.errors import GroundworkError
from shared.platform.instances import Instances
from shared.teams.models import BotConversation, BotReply, BotTurn
from shared.teams.outbox import BotOutbox, BotStream
from shared.teams.store import BotTurnStore
from tests.fakes.table import InMemoryTable


@dataclass
class Said:
    """A message that the bot sent. `lines` and `pieces` are the intermediate states that users saw."""

    conversation: BotConversation
    reply: BotReply
    reply_to: str | None
    lines: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)


class RecordingOutbox(BotOutbox):
    """An outbox that records sent messages. `fails_with` contains errors for the next calls that send a
    complete message.
    """

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.typed = 0
        self.streams = 0
        self.fails_with: list[GroundworkError] = []
        self._shown: dict[str, Said] = {}
        self._numbers = itertools.count(1)

    @property
    def texts(self) -> list[str]:
        return [one.reply.text for one in self.said]

    async def typing(self, conversation: BotConversation) -> None:
        self.typed += 1

    async def say(self, conversation: BotConversation, reply: BotReply, reply_to: str | None = None) -> str:
        return self.keep(Said(conversation, reply, reply_to))

    async def begin(
        self, conversation: BotConversation, reply_to: str | None = None, message_id: str = ""
    ) -> BotStream:
        self.streams += not message_id
        return RecordingStream(self, Said(conversation, BotReply(text=""), reply_to), message_id)

    def new_id(self) -> str:
        """Return the id of the next visible message."""
        return f"message-{next(self._numbers)}"

    def keep(self, message: Said, message_id: str = "") -> str:
        """Record a new message, or replace the message with this id."""
        if self.fails_with:
            raise self.fails_with.pop(0)
        if message_id in self._shown:
            self._shown[message_id].reply = message.reply
            return message_id
        self.said.append(message)
        message_id = message_id or self.new_id()
        self._shown[message_id] = message
        return message_id


class RecordingStream(BotStream):
    """A streamed message for personal chats, which grows as in real channels."""

    def __init__(self, outbox: RecordingOutbox, message: Said, message_id: str) -> None:
        self._outbox = outbox
        self._said = message
        self._message_id = message_id
        self._is_live = not message_id and message.conversation.kind == "personal"

    @property
    def is_live(self) -> bool:
        return self._is_live

    @property
    def message_id(self) -> str:
        return self._message_id

    async def inform(self, text: str) -> None:
        if self._is_live and not self._message_id:
            self._message_id = self._outbox.new_id()
        self._said.lines.append(text)

    async def write(self, text: str) -> None:
        if self._is_live:
            self._said.pieces.append(text)

    async def finish(self, reply: BotReply) -> str:
        self._said.reply = reply
        return self._outbox.keep(self._said, self._message_id)


class InMemoryBotTurnStore(BotTurnStore):
    """The real store over a table in memory."""

    def __init__(self) -> None:
        self.table = InMemoryTable()
        super().__init__(self.table)

    @property
    def turns(self) -> dict[tuple[str, str], BotTurn]:
        """The turns by table keys."""
        rows = self.table.rows.items()
        return {keys: BotTurn.from_stored(row["turn"]) for keys, row in rows if "turn" in row}

    @property
    def messages(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Run and owner of each message, by table keys."""
        rows = self.table.rows.items()
        return {keys: (row["run_id"], row["owner_id"]) for keys, row in rows if "run_id" in row}


class RecordingOrchestrations(Instances):
    """A recorder of the orchestrations that were started, notified and stopped. Orchestrations in `dead`
    write nothing more.
    """

    def __init__(self) -> None:
        self.started: dict[str, tuple[str, dict[str, Any]]] = {}
        self.told: list[tuple[str, str]] = []
        self.stopped: list[str] = []
        self.dead: set[str] = set()

    async def start(self, orchestration: str, instance_id: str, payload: Mapping[str, Any]) -> None:
        self.started.setdefault(instance_id, (orchestration, dict(payload)))

    async def raise_event(self, instance_id: str, event: str) -> None:
        self.told.append((instance_id, event))

    async def stop(self, instance_id: str, reason: str = "") -> None:
        self.stopped.append(instance_id)

    async def is_alive(self, instance_id: str) -> bool:
        return instance_id not in self.dead
