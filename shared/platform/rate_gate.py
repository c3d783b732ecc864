"""rate_gate."""

import asyncio
import time

from shared.platform.errors import RateLimitError

DEFAULT_PAUSE_S = 1.0  # when the service names none


class RateGate:
    """Shut for as long as the service asked for. Any event loop may use it."""

    def __init__(self) -> None:
        self._shut_until = 0.0

    async def passed(self, at_most_s: float) -> None:
        """Return once the gate is open.

        Raises:
            RateLimitError: it stays shut for longer than `at_most_s`; nothing was asked of the service.
        """
        # Again after the wait: another call may have been refused meanwhile.
        while (wait_s := self._shut_until - time.monotonic()) > 0:
            if wait_s >= at_most_s:
                raise RateLimitError(
                    "The model asked for a pause.", f"Try again in {wait_s:.0f} s.", retry_after_s=wait_s
                )
            at_most_s -= wait_s
            await asyncio.sleep(wait_s)

    def shut(self, refused: RateLimitError) -> None:
        """Nobody passes for as long as the refusal says; a longer pause stays."""
        pause_s = refused.retry_after_s or DEFAULT_PAUSE_S
        self._shut_until = max(self._shut_until, time.monotonic() + pause_s)
