"""Ports of chat channels: what comes in is checked, what goes out is sent."""

# For annotations alone: the start of the app need not build every model.
from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from shared.teams.models import BotActivity, BotAttachment, BotConversation, BotReply, BotTurn


class BotInbox(Protocol):
    """What channels send us."""

    async def receive(self, authorization: str | None, body: bytes, peer: str | None) -> BotActivity:
        """The activity, once its sender is believed.

        Args:
            authorization: the header as it came.
            peer: the address of whoever connected; for the local mode without tokens alone.

        Raises:
            NotAuthenticatedError: no token, or one that is not the channel's for us.
            CallerError: no activity of the protocol, or one that says not where it came from.
        """


class BotStream(Protocol):
    """One message that is written while people read it. Ends with `finish`, whatever happens."""

    @property
    def is_live(self) -> bool:
        """Whether people see it grow. False: `write` keeps what is written for `finish`."""

    @property
    def message_id(self) -> str:
        """The channel's id of the message; empty until something of it was shown."""

    async def inform(self, text: str) -> None:
        """Show what is being done, until the text begins."""

    async def write(self, text: str) -> None:
        """Add to the text."""

    async def finish(self, reply: BotReply) -> str:
        """Put the whole message in its place; the channel's id of it."""


class BotOutbox(Protocol):
    """What we send to channels. Every method raises only errors of `shared/platform/errors.py`."""

    async def typing(self, conversation: BotConversation) -> None:
        """Show that we write."""

    async def say(self, conversation: BotConversation, reply: BotReply, reply_to: str | None = None) -> str:
        """Send a message, in several if the channel takes no such long one; the channel's id of the last."""

    async def begin(
        self, conversation: BotConversation, reply_to: str | None = None, message_id: str = ""
    ) -> BotStream:
        """A message that grows, where the channel and the kind of conversation can show that.

        `message_id`: of one that was begun and lost: it grows no more, and is put whole in its place.
        """


class BotFiles(Protocol):
    """Files that people dropped into chats."""

    async def fetch(self, attachment: BotAttachment, conversation: BotConversation, target: Path) -> int:
        """Write the file to `target`; its size in bytes.

        Raises:
            CallerError: its host is none from which files are taken.
            PayloadTooLargeError: larger than MAX_DOCUMENT_BYTES; reading stops there.
            DependencyError: it cannot be had.
        """


class BotTurnStore(Protocol):
    """What is remembered of people in conversations, and of which run our messages tell."""

    async def get(self, conversation_key: str, owner_id: str) -> BotTurn | None: ...

    async def put(self, conversation_key: str, turn: BotTurn) -> BotTurn:
        """The turn as stored. ConflictError when it changed since `turn.revision` was read."""

    async def note_message(self, conversation_key: str, message_id: str, run_id: str, owner_id: str) -> None:
        """Keep which run a message of ours tells of; the same again is no error."""

    async def run_of_message(self, conversation_key: str, message_id: str) -> tuple[str, str] | None:
        """The run and its owner's id; None when the message is not one of ours."""

    async def forget(self, owner_id: str) -> int:
        """Remove what is remembered of an owner; of how many conversations."""

    async def delete_before(self, moment: datetime, most: int) -> int:
        """Remove what nobody wrote to since `moment`; how many, at most `most`."""
