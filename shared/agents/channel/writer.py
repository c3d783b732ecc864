"""One message of ours on its way out: it grows, or it is sent whole. What only decorates never fails it."""

import time
from contextlib import suppress

from shared.errors import CallerError, GroundworkError
from shared.models.bot import BotReply
from shared.models.channel import ReplyPlace
from shared.ports import BotOutbox, BotStream
from shared.telemetry import get_logger

_TYPING_EVERY_S = 5.0  # clients show the sign for some seconds


class Writer:
    """From `open_writer`. `finish` once, at the end; `give_up` in any case."""

    def __init__(self, outbox: BotOutbox, place: ReplyPlace, stream: BotStream | None) -> None:
        self._outbox = outbox
        self._place = place
        self._stream = stream
        self._typed_at = time.monotonic()
        self._has_text = False

    @property
    def is_open(self) -> bool:
        """Whether there is a message that people see begun, or wait for."""
        return self._stream is not None

    @property
    def message_id(self) -> str:
        """The channel's id of the message that people see begun; empty where there is none."""
        return self._stream.message_id if self._stream is not None else ""

    async def inform(self, line: str) -> None:
        """Show what is being done, until there is text."""
        if self._stream is not None and not self._has_text:
            with suppress(GroundworkError):
                await self._stream.inform(line)

    async def write(self, text: str) -> None:
        """Add to the text."""
        if self._stream is not None:
            self._has_text = True
            with suppress(GroundworkError):
                await self._stream.write(text)

    async def keep_typing(self) -> None:
        """Show now and then that we write, where the text itself does not show it."""
        if self._stream is not None and self._stream.is_live:
            return
        if time.monotonic() - self._typed_at >= _TYPING_EVERY_S:
            self._typed_at = time.monotonic()
            with suppress(GroundworkError):
                await self._outbox.typing(self._place.conversation)

    async def finish(self, reply: BotReply) -> str:
        """Put the whole message there; the channel's id of it. What cannot end as it began is sent anew.

        Raises:
            CallerError: the channel takes nothing from us there.
            DependencyError: it cannot be reached.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            try:
                return await stream.finish(reply)
            except CallerError:
                raise
            except GroundworkError as failed:
                get_logger().warning("channel.stream_failed", error_type=failed.code)
        # A reply to a message only the first time: later it would stand far above what people read.
        reply_to = self._place.reply_to if stream is not None else None
        return await self._outbox.say(self._place.conversation, reply, reply_to)

    async def give_up(self, text: str) -> bool:
        """End a message that nobody has finished, with a text that says so: what comes is sent anew.

        Whether there was one.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(GroundworkError):
                await stream.finish(BotReply(text=text))
        return stream is not None


async def open_writer(outbox: BotOutbox, place: ReplyPlace, *, grows: bool, begun: str = "") -> Writer:
    """Begin a message; one that grows, where it may and can.

    `begun`: the channel's id of the one that an earlier attempt left behind; the whole is put in its place.
    """
    if not grows and not begun:
        return Writer(outbox, place, None)
    try:
        return Writer(outbox, place, await outbox.begin(place.conversation, place.reply_to, begun))
    except CallerError:
        raise
    except GroundworkError as failed:
        get_logger().warning("channel.stream_failed", error_type=failed.code)
        return Writer(outbox, place, None)
