"""A chat channel in memory: what is said there, what is remembered, and which orchestrations were started."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.platform.errors import ConflictError, GroundworkError
from shared.teams.context import Orchestrations
from shared.teams.models import BotConversation, BotReply, BotTurn
from shared.teams.outbox import BotOutbox, BotStream
from shared.teams.store import BotTurnStore


@dataclass
class Said:
    """One message. `lines` and `pieces` are what people saw before it was whole."""

    conversation: BotConversation
    reply: BotReply
    reply_to: str | None
    lines: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)


class RecordingOutbox(BotOutbox):
    """Keeps what is said; `fails_with` are errors for the next calls that send a whole message."""

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
        """Of the next message that people see."""
        return f"message-{next(self._numbers)}"

    def keep(self, said: Said, message_id: str = "") -> str:
        """Show a message, in the place of the one of this id if there is one."""
        if self.fails_with:
            raise self.fails_with.pop(0)
        if message_id in self._shown:
            self._shown[message_id].reply = said.reply
            return message_id
        self.said.append(said)
        message_id = message_id or self.new_id()
        self._shown[message_id] = said
        return message_id


class RecordingStream(BotStream):
    """A message that grows in personal chats, as channels do."""

    def __init__(self, outbox: RecordingOutbox, said: Said, message_id: str) -> None:
        self._outbox = outbox
        self._said = said
        self._message_id = message_id
        self._is_live = not message_id and said.conversation.kind == "personal"

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
    """Turns and messages; whoever writes what changed meanwhile is refused."""

    def __init__(self) -> None:
        self.turns: dict[tuple[str, str], BotTurn] = {}
        self.messages: dict[tuple[str, str], tuple[str, str]] = {}
        self._revisions = itertools.count(1)

    async def get(self, conversation_key: str, owner_id: str) -> BotTurn | None:
        return self.turns.get((conversation_key, owner_id))

    async def put(self, conversation_key: str, turn: BotTurn) -> BotTurn:
        known = self.turns.get((conversation_key, turn.owner_id))
        if (known.revision if known else None) != turn.revision:
            raise ConflictError("The turn changed.")
        kept = turn.model_copy(update={"revision": f"revision-{next(self._revisions)}"})
        self.turns[conversation_key, turn.owner_id] = kept
        return kept

    async def note_message(self, conversation_key: str, message_id: str, run_id: str, owner_id: str) -> None:
        self.messages.setdefault((conversation_key, message_id), (run_id, owner_id))

    async def run_of_message(self, conversation_key: str, message_id: str) -> tuple[str, str] | None:
        return self.messages.get((conversation_key, message_id))

    async def forget(self, owner_id: str) -> int:
        before = len(self.turns)
        self.turns = {key: turn for key, turn in self.turns.items() if key[1] != owner_id}
        self.messages = {key: told for key, told in self.messages.items() if told[1] != owner_id}
        return before - len(self.turns)

    async def delete_before(self, moment: datetime, most: int) -> int:
        old = [key for key, turn in self.turns.items() if turn.updated_at < moment][:most]
        for key in old:
            del self.turns[key]
        return len(old)


class RecordingOrchestrations(Orchestrations):
    """Which were started, told and stopped. Those in `dead` write nothing more."""

    def __init__(self) -> None:
        self.started: dict[str, tuple[str, dict[str, Any]]] = {}
        self.told: list[tuple[str, str]] = []
        self.stopped: list[str] = []
        self.dead: set[str] = set()

    async def start(self, orchestration: str, instance_id: str, payload: Mapping[str, Any]) -> None:
        self.started.setdefault(instance_id, (orchestration, dict(payload)))

    async def tell(self, instance_id: str, event: str) -> None:
        self.told.append((instance_id, event))

    async def stop(self, instance_id: str) -> None:
        self.stopped.append(instance_id)

    async def is_alive(self, instance_id: str) -> bool:
        return instance_id not in self.dead
