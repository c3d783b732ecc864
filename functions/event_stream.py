"""A run's log as server-sent events: numbered by line, resumable, byte-identical on replay.

A run mostly goes on in the process that serves its reader; each append wakes the reader then. One that
goes on elsewhere is polled for.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

from shared.errors import CallerError, NotFoundError
from shared.models.events import TERMINAL_EVENTS, LogSlice
from shared.ports import RunLog

KEEP_ALIVE_S = 15.0  # proxies drop silent connections; the platform's limit is 230 s
_POLL_FIRST_S = 0.02  # token to reader: 12 ms median at 10 ms, 36 ms at 50 ms (measured on Azurite)
_POLL_SLOWEST_S = 0.25
_CHECK_AFTER_S = 3.0  # of silence: is the orchestration still there?

_NUMBER = re.compile(r"[0-9]{1,18}")  # lines of a log, or microseconds since 1970

CloseIfDead = Callable[[], Awaitable[None]]


async def follow(
    log: RunLog,
    run_id: str,
    after: int,
    stream_seconds: float,
    close_if_dead: CloseIfDead,
    *,
    begun: LogSlice | None = None,
) -> AsyncIterator[bytes]:
    """Frames of every event after number `after`, as they come.

    Ends after the run's last event, or on purpose after `stream_seconds`, to be resumed.

    Args:
        close_if_dead: called now and then while nothing comes; writes the run's last event if the run
            cannot go on by itself.
        begun: how the log begins, for whoever has just written that.
    """
    with log.watch(run_id) as grown:
        slices = _slices(log, run_id, begun, grown)
        frames = _frames(slices, after, stream_seconds, close_if_dead)
        async with aclosing(slices), aclosing(frames):
            async for frame in frames:
                yield frame


async def _slices(
    log: RunLog, run_id: str, begun: LogSlice | None, grown: asyncio.Event
) -> AsyncGenerator[LogSlice, None]:
    """The log, piece by piece; now and then an empty one."""
    written = begun or await _read(log, run_id, 0)
    delay, is_here = _POLL_FIRST_S, False
    while True:
        yield written
        if is_here:
            delay = _POLL_SLOWEST_S
        else:
            delay = _POLL_FIRST_S if written.lines else min(delay * 1.5, _POLL_SLOWEST_S)
        is_here = await _is_set(grown, delay)
        grown.clear()
        written = await _read(log, run_id, written.next_offset)


async def _is_set(grown: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await grown.wait()
    except TimeoutError:
        return False


async def _frames(
    slices: AsyncIterator[LogSlice], after: int, stream_seconds: float, close_if_dead: CloseIfDead
) -> AsyncGenerator[bytes, None]:
    number = 0
    started = spoke = checked = time.monotonic()
    async for written in slices:
        for line in written.lines:
            number += 1
            name, frame = _frame(number, line)
            if number > after:
                yield frame
                spoke = time.monotonic()
            if name in TERMINAL_EVENTS:
                return
        now = time.monotonic()
        if now - started >= stream_seconds:
            yield b": resume with Last-Event-ID\n\n"
            return
        if now - spoke >= KEEP_ALIVE_S:
            yield b": keep-alive\n\n"
            spoke = now
        if not written.lines and now - max(checked, spoke) >= _CHECK_AFTER_S:
            await close_if_dead()
            checked = now


def last_event_id(header: str | None) -> int:
    """The number that a client has seen; 0 without the header.

    Raises:
        CallerError: it is no number of ours.
    """
    if header is None or not header.strip():
        return 0
    if not _NUMBER.fullmatch(header.strip()):
        raise CallerError("Last-Event-ID is not a number.", "Send the id of the last event received.")
    return int(header)


async def has_seen_the_end(log: RunLog, run_id: str, after: int) -> bool:
    """Whether a reader who has seen event number `after` has nothing to wait for."""
    lines = (await _read(log, run_id, 0)).lines
    return after >= len(lines) > 0 and json.loads(lines[-1])["name"] in TERMINAL_EVENTS


async def _read(log: RunLog, run_id: str, offset: int) -> LogSlice:
    """A log that is not there yet, or was purged, has nothing in it: the stream's headers are out already."""
    try:
        return await log.read(run_id, offset)
    except NotFoundError:
        return LogSlice(lines=(), next_offset=offset)


def _frame(number: int, line: str) -> tuple[str, bytes]:
    event = json.loads(line)
    body = json.dumps(event["data"], ensure_ascii=False, separators=(",", ":"))
    text = f"id: {number}\nevent: {event['name'].lower()}\ndata: {body}\n\n"
    return event["name"], text.encode()
