"""The events of a run, as they come, for one who writes an answer of them."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from shared.models.events import LogSlice, RunEvent
from shared.ports import LogTail, RunLog
from shared.tracing.spans import unrecorded

_POLLS_S = (0.05, 0.5)  # first, slowest; people in a chat see words by the second
_CHECK_AFTER_S = 5.0  # of silence: is the orchestration still there?

Numbered = tuple[int, RunEvent]


async def follow(
    log: RunLog, run_id: str, after: int, seconds: float, when_silent: Callable[[], Awaitable[None]]
) -> AsyncGenerator[Numbered | None, None]:
    """Events behind number `after` with their numbers; None now and then while nothing comes.

    Ends after `seconds`. `when_silent` may write the last event of a run that nobody goes on with.

    Raises:
        NotFoundError: the run's log is gone.
    """
    ends = time.monotonic() + seconds
    number, offset, heard, pause = 0, 0, time.monotonic(), _POLLS_S[0]
    with log.watch(run_id) as tail:
        while True:
            written = await _next(log, run_id, offset, tail)
            offset = written.next_offset
            for line in written.lines:
                number += 1
                if number > after:
                    yield number, RunEvent.from_kept(line)
            now = time.monotonic()
            if now >= ends:
                return
            if written.lines:
                heard, pause = now, _POLLS_S[0]
                continue
            yield None
            if now - heard >= _CHECK_AFTER_S:
                await when_silent()
                heard = now
            await tail.grown(offset, min(pause, max(ends - now, 0.0)))
            pause = min(pause * 1.5, _POLLS_S[1])


async def _next(log: RunLog, run_id: str, offset: int, tail: LogTail) -> LogSlice:
    """What follows: from memory if this process has it, else from storage."""
    known = tail.since(offset)
    if known is not None:
        await asyncio.sleep(0)
        return known
    with unrecorded():
        return await log.read_piece(run_id, offset)
