"""The text of an answer while it grows. What people have seen cannot be taken back, only replaced at the end.

So when a step begins anew, or is given up, nothing more is shown until the new text has come as far, word for
word, as what stands there; if it goes another way, the whole answer shows it.
"""

from collections.abc import Awaitable, Callable

from shared.core.channel_text import ChannelText
from shared.models.events import RunEvent

Write = Callable[[str], Awaitable[None]]


class LiveText:
    """Takes a run's events, writes what can be added."""

    def __init__(self) -> None:
        self._converting = ChannelText()
        self._step: int | None = None
        self._now = ""
        self._shown = ""

    async def take(self, event: RunEvent, write: Write) -> None:
        """Look at the next event; events that are no text change nothing."""
        step = event.data.get("step")
        if event.name == "STATUS" and event.data.get("state") in ("restarted", "discarded"):
            if step == self._step:
                self._begin(None)
        elif event.name == "TOKEN" and "child" not in event.data:
            if step != self._step:
                self._begin(step)
            self._now += self._converting.feed(str(event.data.get("text", "")))
            await self._show(write)

    def _begin(self, step: int | None) -> None:
        self._converting, self._now, self._step = ChannelText(), "", step

    async def _show(self, write: Write) -> None:
        if len(self._now) > len(self._shown) and self._now.startswith(self._shown):
            added = self._now[len(self._shown) :]
            self._shown = self._now
            await write(added)
