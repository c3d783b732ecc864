"""Streaming of a run's journal as server-sent events. Events are numbered, streams can be resumed, and a
replay is byte-identical.

If a run executes in the process that serves its readers, they get its events from memory. Otherwise the
process polls the journal once for all readers of the run. Each reader keeps only one piece of the journal in
memory, and reads the next one after sending it.
"""

import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import azure.durable_functions as df

from shared.answering.children import child_ids
from shared.answering.control import release
from shared.answering.revival import revive_run
from shared.answering.trace import record_end
from shared.platform import tracing
from shared.platform.errors import CallerError, NotFoundError
from shared.platform.instances import Instances
from shared.platform.telemetry import get_logger
from shared.platform.tracing import TraceLink
from shared.runs.log_lines import TERMINAL_EVENTS, EventName, LogSlice
from shared.runs.run_log import LogTail, RunLog, next_piece
from shared.wiring import Services


async def record_ended_run(client: df.DurableOrchestrationClient, run_id: str, services: Services) -> None:
    """Record the tracing spans of a run that was cancelled or whose orchestration died. Never raises."""
    if not tracing.is_on():
        return

    try:
        status = await client.get_status(run_id, show_input=True)
        payload = status.input_ if status else None
        link = (json.loads(payload) if isinstance(payload, str) else payload or {}).get("trace")
        if link is not None:
            await record_end(run_id, TraceLink.from_payload(link), services, services.runs)
    except Exception:  # noqa: BLE001  # the client raises no specific error; a missing trace is tolerable
        return


# Interval of comments that keep the connection open. Proxies drop silent connections; the platform does so
# after 230 s.
KEEP_ALIVE_S = 15.0
# First and slowest interval between polls. On Azurite, the median delay of a token is 12 ms with polls every
# 10 ms, and 36 ms with polls every 50 ms.
_POLLS_S = (0.02, 0.25)
# Delay of the first poll for a run that this process has just started. The run usually executes here too, so
# its events arrive without polling.
_FIRST_POLL_BEGUN_S = 0.1
# First and slowest interval if the run executes in this process. Its events come from memory; polls only
# notice that it has moved to another process.
_POLLS_BESIDE_WRITER_S = (1.0, 3.0)
# If no event arrives for this long, the state of the orchestration is checked.
_CHECK_AFTER_S = 3.0
# Matches a line number of a journal, or a time in microseconds since 1970.
_NUMBER = re.compile(r"[0-9]{1,18}")
CloseIfDead = Callable[[], Awaitable[None]]
NamedFrame = tuple[EventName | None, bytes]  # the name is None if the frame is a comment


async def follow(
    log: RunLog,
    run_id: str,
    after: int,
    stream_seconds: float,
    close_if_dead: CloseIfDead,
    *,
    first_slice: LogSlice | None = None,
) -> AsyncIterator[bytes]:
    """Yield the events of a run as server-sent event frames, starting after event number `after`. New events
    follow when they are appended to the journal.

    Ends after the last event of the run, or after `stream_seconds`; clients then resume the stream.

    Args:
        close_if_dead: called if no event arrives for a while; restarts a dead run or ends its journal.
        first_slice: start of the journal, if the caller has just written it.
    """
    events = follow_named(log, run_id, after, stream_seconds, close_if_dead, first_slice=first_slice)
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
    first_slice: LogSlice | None = None,
) -> AsyncGenerator[NamedFrame, None]:
    """Yield the same frames as `follow`, each with the name of its event. Comments have the name None."""
    with log.watch(run_id) as tail:
        slices = _slices(log, run_id, first_slice, tail, close_if_dead)
        frames = _frames(slices, after, stream_seconds)
        async with aclosing(slices), aclosing(frames):
            async for frame in frames:
                yield frame


async def _slices(
    log: RunLog, run_id: str, first_slice: LogSlice | None, tail: LogTail, close_if_dead: CloseIfDead
) -> AsyncGenerator[LogSlice, None]:
    """Yield the journal piece by piece as it grows. A poll that finds nothing new yields an empty piece."""
    piece = first_slice or await _next(log, run_id, 0, tail, 0.0)
    empty, heard = 0, time.monotonic()
    while True:
        yield piece
        empty = 0 if piece.lines else empty + 1
        if piece.lines:
            heard = time.monotonic()
        elif time.monotonic() - heard >= _CHECK_AFTER_S:
            await close_if_dead()
            heard = time.monotonic()
        first, slowest = _POLLS_BESIDE_WRITER_S if tail.writer_is_here else _POLLS_S
        if first_slice is not None and piece.next_offset == first_slice.next_offset:
            first = _FIRST_POLL_BEGUN_S
        pause = min(first * 1.5 ** min(empty, 9), slowest)
        piece = await _next(log, run_id, piece.next_offset, tail, pause)


async def _next(log: RunLog, run_id: str, offset: int, tail: LogTail, pause_s: float) -> LogSlice:
    """Read the next piece of the journal. A missing journal counts as empty, because a 404 can't be sent
    after the stream's headers.
    """
    try:
        return await next_piece(log, run_id, offset, tail, pause_s)
    except NotFoundError:
        return LogSlice(lines=(), next_offset=offset)


async def _frames(
    slices: AsyncIterator[LogSlice], after: int, stream_seconds: float
) -> AsyncGenerator[NamedFrame, None]:
    number = 0
    started = spoke = time.monotonic()
    async for piece in slices:
        for line in piece.public:
            number += 1
            name, frame = _frame(number, line)
            if number > after:
                yield name, frame
                spoke = time.monotonic()
            if name in TERMINAL_EVENTS:
                return
            if spoke - started >= stream_seconds:
                break  # checked because sending a piece to a slow client may take longer than the time limit
        now = time.monotonic()
        if now - started >= stream_seconds:
            yield None, b": resume with Last-Event-ID\n\n"
            return
        if now - spoke >= KEEP_ALIVE_S:
            yield None, b": keep-alive\n\n"
            spoke = now


def last_event_id(header: str | None) -> int:
    """Parse a Last-Event-ID header. Return 0 if the header is missing or blank.

    Raises:
        CallerError: the header isn't the number of an event.
    """
    if header is None or not header.strip():
        return 0
    if not _NUMBER.fullmatch(header.strip()):
        raise CallerError("Last-Event-ID is not a number.", "Send the id of the last event received.")
    return int(header)


def is_at_the_end(journal: LogSlice, after: int) -> bool:
    """Return whether event `after` is the last event of a run that has ended, so that a stream has nothing
    left to send.

    Raises:
        CallerError: the journal has no event with this number yet.
    """
    lines = journal.public
    if after > len(lines):
        raise CallerError(
            f"This run has no event {after} yet.", "Send the id of the last event received from this run."
        )
    return after == len(lines) and json.loads(lines[-1])["name"] in TERMINAL_EVENTS


def _frame(number: int, line: str) -> tuple[EventName, bytes]:
    event = json.loads(line)
    body = json.dumps(event["data"], ensure_ascii=False, separators=(",", ":"))
    text = f"id: {number}\nevent: {event['name'].lower()}\ndata: {body}\n\n"
    return event["name"], text.encode()


def closer(client: df.DurableOrchestrationClient, run_id: str, services: Services) -> CloseIfDead:
    """Return a function that restarts a run whose orchestration is dead, or writes the last event to its
    journal if it can't be restarted.

    The function must be called only while the journal has no last event. Therefore a completed orchestration
    means that storing its end failed. A missing orchestration was lost, because events can be requested only
    after a run was started.
    """

    async def close_if_dead() -> None:
        if await revive_run(run_id, Instances(client), services) == "closed":
            await record_ended_run(client, run_id, services)

    return close_if_dead


async def stop_run(client: df.DurableOrchestrationClient, run_id: str, services: Services) -> None:
    """Terminate the orchestrations of a cancelled run and of its sub-agents, and record their tracing
    spans.
    """
    await _terminate(client, run_id, run_id)
    # Terminating an orchestration leaves its children running, so terminate them too. The parent is
    # terminated first, so that it can't start more children.
    children = await child_ids(services.run_log, services.blobs, run_id)
    for child_id in children:
        await _terminate(client, child_id, run_id)
    await release(services.subagent_control, children)
    await record_ended_run(client, run_id, services)


async def _terminate(client: df.DurableOrchestrationClient, instance_id: str, run_id: str) -> None:
    try:
        await client.terminate(instance_id, "cancelled by its owner")
    except Exception:  # noqa: BLE001  # the client raises no specific error
        # Ignore the failure: the steps of a closed run do nothing, so the orchestration ends soon anyway.
        get_logger().warning("run.terminate_failed", run_id=run_id)
