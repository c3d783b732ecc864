"""Sends replies to a channel, streaming them in personal Teams chats.

Teams displays sources, figures and buttons; other channels receive everything as text.
"""

import asyncio
from collections.abc import Awaitable, Callable

from shared.platform.errors import GroundworkError, RateLimitError
from shared.platform.settings import Settings
from shared.platform.telemetry import get_logger
from shared.teams.activities import TEAMS
from shared.teams.connector import ChannelConnector, Ending, StreamEndedError
from shared.teams.models import BotConversation, BotReply
from shared.teams.outgoing import (
    MAX_TEXT_CHARS,
    StreamState,
    as_stream_update,
    messages_of,
    typing_of,
    update_of,
)

_MAX_FAILURES = 3  # consecutive failed updates before streaming stops; unmeasured
MAX_PAUSE_S = 10.0  # longer pauses would delay the finished answer; unmeasured
_STREAM_INTERVAL_S = 1.0  # Teams accepts one update per second


class BotStream:
    """A message whose text is streamed while it is written. It must end with `finish`, the only method that
    raises.
    """

    def __init__(
        self,
        connector: ChannelConnector,
        conversation: BotConversation,
        *,
        reply_to: str | None,
        is_live: bool,
        interval_s: float,
        message_id: str = "",
    ) -> None:
        """Create a stream without sending anything. `reply_to` is the message to quote, `message_id` a
        partial message to replace.
        """
        self._connector = connector
        self._conversation = conversation
        self._reply_to = reply_to
        self._is_live = is_live
        self._interval_s = interval_s
        self._line = ""
        self._text = ""
        self._shown_chars = 0
        self._stream_id = message_id
        self._sequence = 0
        self._failures = 0
        self._free_at = 0.0  # Time on the event loop's clock at which the channel accepts the next update.
        self._ending: Ending | None = None
        self._sending: asyncio.Task[None] | None = None

    @property
    def is_live(self) -> bool:
        """Whether updates are visible while the message is written. Otherwise only `finish` sends it."""
        return self._is_live

    @property
    def message_id(self) -> str:
        """The id that the channel assigned; empty until the channel has accepted the first update."""
        return self._stream_id

    async def inform(self, text: str) -> None:
        """Show a progress line, which is replaced once the text of the answer begins."""
        self._line = " ".join(text.split())
        self._wake()

    async def write(self, text: str) -> None:
        """Append to the streamed text. It is sent with the next update."""
        self._text += text
        self._wake()

    async def finish(self, reply: BotReply) -> str:
        """Replace the streamed text by the complete reply. Return the channel's id of the last message sent.

        Nothing is sent if the user stopped the message.

        Raises:
            CallerError, DependencyError: as `BotOutbox.say`.
        """
        self._is_live = False
        if self._sending is not None:
            await self._sending
        if self._has_ended("stopped"):
            return self._stream_id
        await self._pause()
        first, *others = messages_of(self._conversation, reply)
        message_id = self._stream_id if await self._replace_stream(first) else await self._post(first)
        if self._has_ended("stopped"):
            return message_id
        for activity in others:
            message_id = await self._post(activity)
        return message_id

    async def _replace_stream(self, message: dict[str, object]) -> bool:
        """Replace the stream by `message`. Return True on success or if the user stopped the stream, False if
        the message must be sent separately.
        """
        if not self._stream_id or not message["text"]:
            return False
        if self._ending is None:
            try:
                final = StreamState("final", self._stream_id)
                await self._connector.send(self._conversation, as_stream_update(message, final))
                return True
            except StreamEndedError as ended:
                self._end(ended.how)
        is_there = self._has_ended("late") or self._has_ended("done")
        return self._has_ended("stopped") or (is_there and await self._put(message))

    async def _put(self, message: dict[str, object]) -> bool:
        try:
            await self._connector.send(self._conversation, message, message_id=self._stream_id)
        except GroundworkError as failed:
            get_logger().warning("bot.update_failed", error_type=failed.code)
            return False
        return True

    async def _post(self, message: dict[str, object]) -> str:
        return await self._connector.send(self._conversation, message, reply_to=self._reply_to)

    def _wake(self) -> None:
        if self._is_live and self._next() and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        """Send updates, one per interval, until there is nothing new to show."""
        while self._is_live and self._next():
            await self._pause()
            if self._is_live:
                await self._send(self._next())

    def _next(self) -> str:
        """Return the text of the next update: the text written so far or, before it begins, the progress
        line. Return "" if nothing has changed.

        A text that exceeds one message stops growing, and `finish` sends the rest.
        """
        if self._text.strip():
            is_new = self._shown_chars < len(self._text) <= MAX_TEXT_CHARS
            return self._text if is_new else ""
        return self._line

    async def _send(self, text: str) -> None:
        is_text = bool(self._text.strip())
        state = StreamState("streaming" if is_text else "informative", self._stream_id, self._sequence + 1)
        self._line = ""
        shown_chars = len(text) if is_text else 0
        try:
            update = update_of(self._conversation, text, state)
            stream_id = await self._connector.send(self._conversation, update, max_retries=0)
        except StreamEndedError as ended:
            self._end(ended.how)
        except GroundworkError as failed:
            self._fail(failed)
        else:
            self._stream_id = self._stream_id or stream_id
            self._sequence, self._failures, self._shown_chars = state.sequence, 0, shown_chars
            # Without an id, no further update can refer to this message.
            self._is_live = self._is_live and bool(self._stream_id)
        self._free_at = max(self._free_at, asyncio.get_running_loop().time() + self._interval_s)

    def _has_ended(self, how: Ending) -> bool:
        return self._ending == how

    def _end(self, how: Ending) -> None:
        self._is_live, self._ending = False, how
        get_logger().info("bot.stream_ended", reason=how)

    def _fail(self, failed: GroundworkError) -> None:
        self._failures += 1
        get_logger().warning("bot.update_failed", error_type=failed.code)
        if isinstance(failed, RateLimitError) and failed.retry_after_s:
            self._free_at = asyncio.get_running_loop().time() + min(failed.retry_after_s, MAX_PAUSE_S)
        if not failed.retryable or self._failures >= _MAX_FAILURES:
            self._is_live = False

    async def _pause(self) -> None:
        await asyncio.sleep(max(0.0, self._free_at - asyncio.get_running_loop().time()))


class BotOutbox:
    """Sends one bot's messages to its channels. Raises only errors of `shared.platform.errors`."""

    def __init__(
        self,
        settings: Settings,
        token: Callable[[], Awaitable[str]],
        *,
        stream_interval_s: float = _STREAM_INTERVAL_S,
    ) -> None:
        """Create an outbox without connecting. `token` returns an access token for the Bot Service.

        `stream_interval_s`: seconds between updates of a streamed message.
        """
        self._connector = ChannelConnector(settings, token)
        self._stream_interval_s = stream_interval_s

    async def typing(self, conversation: BotConversation) -> None:
        """Show the typing indicator. Failures are not retried, because a late indicator is useless."""
        await self._connector.send(conversation, typing_of(conversation), max_retries=0)

    async def say(self, conversation: BotConversation, reply: BotReply, reply_to: str | None = None) -> str:
        """Send a reply, split into several messages if it exceeds the channel's limit. Return the channel's
        id of the last one.

        Raises:
            CallerError: the channel permanently rejects our messages to this conversation.
            DependencyError: the channel is unreachable or keeps throttling.
        """
        message_id, answered = "", _quoted_message(conversation, reply_to)
        for activity in messages_of(conversation, reply):
            message_id = await self._connector.send(conversation, activity, reply_to=answered)
        return message_id

    async def begin(
        self, conversation: BotConversation, reply_to: str | None = None, message_id: str = ""
    ) -> BotStream:
        """Begin a message. In personal Teams chats its text is streamed; elsewhere it is sent once complete.

        `message_id` names a message begun by an earlier process, which is replaced instead of streamed.
        """
        return BotStream(
            self._connector,
            conversation,
            reply_to=_quoted_message(conversation, reply_to),
            is_live=_is_personal_teams(conversation) and not message_id,
            message_id=message_id,
            interval_s=self._stream_interval_s,
        )

    async def close(self) -> None:
        """Close the connections to all channels."""
        await self._connector.close()


def _quoted_message(conversation: BotConversation, reply_to: str | None) -> str | None:
    """Return the message to quote, or None in personal Teams chats, where quoting is unnecessary."""
    return None if _is_personal_teams(conversation) else reply_to


def _is_personal_teams(conversation: BotConversation) -> bool:
    return conversation.channel == TEAMS and conversation.kind == "personal"
