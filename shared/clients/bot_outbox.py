"""`BotOutbox`: what we say in chats. Teams shows it with sources, pictures and buttons, others as text.

Why pictures alone have signed addresses: decision 0024.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from shared.clients.bot_connector import ChannelConnector
from shared.ports import BotOutbox
from shared.settings import Settings

# For annotations alone: the start of the app need not build the models of channels.
if TYPE_CHECKING:
    from shared.models.bot import BotConversation, BotReply
    from shared.ports import BotStream

_STREAM_INTERVAL_S = 1.0  # Teams takes one update a second


class ChannelOutbox(BotOutbox):
    """Sends to the channels of one bot."""

    def __init__(
        self,
        settings: Settings,
        token: Callable[[], Awaitable[str]],
        *,
        stream_interval_s: float = _STREAM_INTERVAL_S,
    ) -> None:
        """`token`: gives the bot's own for the Bot Service.

        `stream_interval_s`: between two updates of a message that grows.
        """
        self._connector = ChannelConnector(settings, token)
        self._stream_interval_s = stream_interval_s

    async def typing(self, conversation: BotConversation) -> None:
        """As the port says. Tried once: a sign that comes late says nothing."""
        from shared.clients.bot_messages import typing_of

        await self._connector.post_once(conversation, typing_of(conversation))

    async def say(self, conversation: BotConversation, reply: BotReply, reply_to: str | None = None) -> str:
        """As the port says.

        Raises:
            CallerError: the channel takes nothing of us there, now and later.
            DependencyError: it cannot be reached, or goes on asking us to wait.
        """
        from shared.clients.bot_messages import messages_of

        sent = ""
        for activity in messages_of(conversation, reply):
            sent = await self._connector.post(conversation, activity, _answered(conversation, reply_to))
        return sent

    async def begin(
        self, conversation: BotConversation, reply_to: str | None = None, message_id: str = ""
    ) -> BotStream:
        """As the port says: in Teams, where nobody else reads along."""
        from shared.clients.bot_stream import ChannelStream

        return ChannelStream(
            self._connector,
            conversation,
            reply_to=_answered(conversation, reply_to),
            is_live=_is_personal_teams(conversation) and not message_id,
            message_id=message_id,
            interval_s=self._stream_interval_s,
        )

    async def close(self) -> None:
        """End all connections."""
        await self._connector.close()


def _answered(conversation: BotConversation, reply_to: str | None) -> str | None:
    """What a message answers; nothing in a chat of two, where one follows the other."""
    return None if _is_personal_teams(conversation) else reply_to


def _is_personal_teams(conversation: BotConversation) -> bool:
    return conversation.channel == "msteams" and conversation.kind == "personal"
