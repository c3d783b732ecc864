"""The port of the run log, and the end of a log as a process remembers it for its readers."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from shared.platform.errors import NotFoundError
from shared.platform.tracing import unrecorded
from shared.runs.events import RunEvent
from shared.runs.log_lines import LogSlice

KEPT_CHARS = 64 * 1024
"""Of lines, per run that is followed: some 30 s of a fast model. Who is further behind reads from storage."""


class LogTail:
    """What was last written to a log, by offset in bytes."""

    def __init__(self) -> None:
        self.reading = asyncio.Lock()  # held while somebody asks storage for what comes next
        self._parts: dict[int, LogSlice] = {}
        self._kept = 0
        self._end = 0
        self._looked: tuple[int, float] = (-1, 0.0)
        self._news = asyncio.Event()
        self.writer_is_here = False  # what came last was written by this process, not found in storage

    def add(self, offset: int, lines: Sequence[str], end: int, *, written_here: bool) -> None:
        """Lines that stand in the log from `offset` to `end`; wakes who waits."""
        self.writer_is_here = written_here
        if not lines or offset in self._parts:
            return
        self._parts[offset] = LogSlice(lines=tuple(lines), next_offset=end)
        self._kept += sum(map(len, lines))
        while self._kept > KEPT_CHARS:
            self._kept -= sum(map(len, self._parts.pop(next(iter(self._parts))).lines))
        self._end = max(self._end, end)
        self._news.set()
        self._news = asyncio.Event()

    def since(self, offset: int) -> LogSlice | None:
        """What is known to follow `offset`; None = nothing, or nothing that is still here."""
        lines: list[str] = []
        end = offset
        while (part := self._parts.get(end)) is not None:
            lines += part.lines
            end = part.next_offset
        return LogSlice(lines=tuple(lines), next_offset=end) if lines else None

    async def grown(self, offset: int, within_s: float) -> bool:
        """Wait until something is known to follow `offset`; False after `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                while self._end <= offset:
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def is_behind(self, offset: int) -> bool:
        """Whether more is known to follow `offset`, and is not here any more."""
        return self._end > offset and offset not in self._parts

    def note_look(self, offset: int) -> None:
        """Storage was asked just now, and nothing followed `offset`."""
        self._looked = (offset, asyncio.get_running_loop().time())
        if self.is_behind(offset):
            self._end = offset  # the log was deleted

    def was_looked(self, offset: int, within_s: float) -> bool:
        """Whether somebody asked so lately that it need not be asked again."""
        where, when = self._looked
        return where == offset and asyncio.get_running_loop().time() - when < within_s


class RunLog(Protocol):
    """The append-only event log of each run; an event's number is its line, counted from 1.

    A line is the JSON of one RunEvent. Offsets are bytes.
    """

    async def create(self, run_id: str) -> None:
        """Start the log; one that exists is left as it is."""

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        """Append atomically: readers see all of these events or none, in order. Returns the new end.

        Raises:
            ConflictError: `at_offset` was given and the log does not end there: somebody else wrote.
        """

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        """Everything from a byte offset on (0 = from the start). NotFoundError when there is no log."""

    async def delete(self, run_id: str) -> None:
        """Remove the log; an absent one is no error."""

    async def read_piece(self, run_id: str, offset: int) -> LogSlice:
        """As `read`, but of a long log perhaps only the next lines; none only when there are none."""
        return await self.read(run_id, offset)

    @contextmanager
    def watch(self, run_id: str) -> Iterator[LogTail]:
        """What this process learns of the end of a log, while it is watched.

        No more than a help: what other processes add may be missing, and a log may never tell it anything.
        """
        yield LogTail()


async def next_piece(log: RunLog, run_id: str, offset: int, tail: LogTail, pause_s: float) -> LogSlice:
    """What follows `offset` as soon as this process knows it, else what storage has after a pause.

    `tail`: of `log.watch(run_id)`. Of several readers that wait, one asks storage.

    Raises:
        NotFoundError: there is no such log.
    """
    await tail.grown(offset, pause_s)
    if tail.is_behind(offset):
        with unrecorded():
            return await log.read_piece(run_id, offset)
    async with tail.reading:
        if (known := tail.since(offset)) is not None:
            return known
        if tail.was_looked(offset, pause_s):  # by another reader, while this one waited
            return LogSlice(lines=(), next_offset=offset)
        try:
            with unrecorded():
                written = await log.read_piece(run_id, offset)
        except NotFoundError:
            tail.note_look(offset)
            raise
        if written.lines:
            tail.add(offset, written.lines, written.next_offset, written_here=False)
        else:
            tail.note_look(offset)
    return written
