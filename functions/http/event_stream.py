"""A run's log as server-sent events: numbered, resumable, byte-identical on replay.

If a run executes in the process that serves its readers, they get its events from memory. A run elsewhere is
polled, once per process for all its readers. A reader holds one piece of the log at a time and reads nothing
more until it is sent.
"""

import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import azure.durable_functions as df

from shared.answering.revival import revive_run
from shared.answering.trace import record_end
from shared.platform import tracing
from shared.platform.errors import CallerError, NotFoundError
from shared.platform.instances import Instances
from shared.platform.tracing import TraceLink
from shared.runs.log_lines import TERMINAL_EVENTS, EventName, LogSlice
from shared.runs.run_log import LogTail, RunLog, next_piece
from shared.wiring import Services


async def record_ended_run(client: df.DurableOrchestrationClient, run_id: str, services: Services) -> None:
    """Record the spans of a run that was cancelled, or whose orchestration died. Never raises."""
    if not tracing.is_on():
        return

    try:
        status = await client.get_status(run_id, show_input=True)
        given = status.input_ if status else None
        link = (json.loads(given) if isinstance(given, str) else given or {}).get("trace")
        if link is not None:
            await record_end(run_id, TraceLink.from_payload(link), services, services.runs)
    except Exception:  # noqa: BLE001  # the client raises nothing more precise; a trace is not worth an error
        return


KEEP_ALIVE_S = 15.0  # proxies drop silent connections; the platform's limit is 230 s
_POLLS_S = (0.02, 0.25)  # first, slowest. Token to reader: 12 ms median at 10 ms, 36 at 50 (on Azurite)
_FIRST_POLL_BEGUN_S = 0.1  # a run just begun here mostly continues here, and is heard of without a poll
_POLLS_BESIDE_WRITER_S = (1.0, 3.0)  # its lines come from memory: these find a run that went on elsewhere
_CHECK_AFTER_S = 3.0  # of silence: is the orchestration still there?
_NUMBER = re.compile(r"[0-9]{1,18}")  # lines of a log, or microseconds since 1970
CloseIfDead = Callable[[], Awaitable[None]]
NamedFrame = tuple[EventName | None, bytes]  # None = a comment


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
        close_if_dead: called now and then while nothing comes; has the run begin again, or writes its
            last event, if it cannot continue by itself.
        begun: the beginning of the log, if the caller has just written it.
    """
    events = follow_named(log, run_id, after, stream_seconds, close_if_dead, begun=begun)
    async with aclosing(events):
        async for _, frame in events:
            yield frame


async def follow_named(
    log: RunLog,
    run_id: str,
    after: int,
    stream_seconds: float,
    close_if_dead: CloseIfDead,
    *,
    begun: LogSlice | None = None,
) -> AsyncGenerator[NamedFrame, None]:
    """As `follow`, each frame with the name of its event."""
    with log.watch(run_id) as tail:
        slices = _slices(log, run_id, begun, tail, close_if_dead)
        frames = _frames(slices, after, stream_seconds)
        async with aclosing(slices), aclosing(frames):
            async for frame in frames:
                yield frame


async def _slices(
    log: RunLog, run_id: str, begun: LogSlice | None, tail: LogTail, close_if_dead: CloseIfDead
) -> AsyncGenerator[LogSlice, None]:
    """The log, piece by piece; now and then an empty one."""
    written = begun or await _next(log, run_id, 0, tail, 0.0)
    empty, heard = 0, time.monotonic()
    while True:
        yield written
        empty = 0 if written.lines else empty + 1
        if written.lines:
            heard = time.monotonic()
        elif time.monotonic() - heard >= _CHECK_AFTER_S:
            await close_if_dead()
            heard = time.monotonic()
        first, slowest = _POLLS_BESIDE_WRITER_S if tail.writer_is_here else _POLLS_S
        if begun is not None and written.next_offset == begun.next_offset:
            first = _FIRST_POLL_BEGUN_S
        pause = min(first * 1.5 ** min(empty, 9), slowest)
        written = await _next(log, run_id, written.next_offset, tail, pause)


async def _next(log: RunLog, run_id: str, offset: int, tail: LogTail, pause_s: float) -> LogSlice:
    """A log that is not there yet, or was purged, has nothing in it: the stream's headers are out already."""
    try:
        return await next_piece(log, run_id, offset, tail, pause_s)
    except NotFoundError:
        return LogSlice(lines=(), next_offset=offset)


async def _frames(
    slices: AsyncIterator[LogSlice], after: int, stream_seconds: float
) -> AsyncGenerator[NamedFrame, None]:
    number = 0
    started = spoke = time.monotonic()
    async for written in slices:
        for line in written.public:
            number += 1
            name, frame = _frame(number, line)
            if number > after:
                yield name, frame
                spoke = time.monotonic()
            if name in TERMINAL_EVENTS:
                return
            if spoke - started >= stream_seconds:
                break  # a slow reader may be long at one piece
        now = time.monotonic()
        if now - started >= stream_seconds:
            yield None, b": resume with Last-Event-ID\n\n"
            return
        if now - spoke >= KEEP_ALIVE_S:
            yield None, b": keep-alive\n\n"
            spoke = now


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


def is_at_the_end(written: LogSlice, after: int) -> bool:
    """Whether a reader who has seen event number `after` of a log, read whole, has nothing to wait for.

    Raises:
        CallerError: there is no such event yet, so nobody can have seen it.
    """
    lines = written.public
    if after > len(lines):
        raise CallerError(
            f"This run has no event {after} yet.", "Send the id of the last event received of this run."
        )
    return after == len(lines) and json.loads(lines[-1])["name"] in TERMINAL_EVENTS


def _frame(number: int, line: str) -> tuple[EventName, bytes]:
    event = json.loads(line)
    body = json.dumps(event["data"], ensure_ascii=False, separators=(",", ":"))
    text = f"id: {number}\nevent: {event['name'].lower()}\ndata: {body}\n\n"
    return event["name"], text.encode()


def closer(client: df.DurableOrchestrationClient, run_id: str, services: Services) -> CloseIfDead:
    """A check for one run: has it continue, or ends its log, when its orchestration does nothing more.

    It is asked only while the log has no last event: one that is completed could not store its end. Nobody
    can ask for a run's events before it was started: one that there is not was lost.
    """

    async def close_if_dead() -> None:
        if await revive_run(run_id, Instances(client), services) == "closed":
            await record_ended_run(client, run_id, services)

    return close_if_dead
