"""The `RunLog` interface, and a cache of the newest lines in each process."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from shared.platform.errors import NotFoundError
from shared.platform.tracing import without_spans
from shared.runs.events import RunEvent
from shared.runs.log_lines import LogSlice

KEPT_CHARS = 64 * 1024
"""Characters cached per followed run: about 30 s of a fast model. Slower readers read from storage."""


class LogTail:
    """The newest lines of a log, cached by byte offset and shared by all readers in the process."""

    def __init__(self) -> None:
        # Held while a reader requests the next lines from storage, so that others do not send the same
        # request.
        self.reading = asyncio.Lock()
        self._parts: dict[int, LogSlice] = {}
        self._kept = 0
        self._end = 0
        self._looked: tuple[int, float] = (-1, 0.0)
        self._news = asyncio.Event()
        self.writer_is_here = False  # True if this process wrote the newest lines.

    def add(self, offset: int, lines: Sequence[str], end: int, *, written_here: bool) -> None:
        """Add the lines from `offset` to `end`, and wake waiting readers."""
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
        """Return the cached lines from `offset` on, or None if there are none."""
        lines: list[str] = []
        end = offset
        while (part := self._parts.get(end)) is not None:
            lines += part.lines
            end = part.next_offset
        return LogSlice(lines=tuple(lines), next_offset=end) if lines else None

    async def wait_for_lines(self, offset: int, within_s: float) -> bool:
        """Wait for lines after `offset` and return True, or False if there are none within `within_s`
        seconds.
        """
        try:
            async with asyncio.timeout(within_s):
                while self._end <= offset:
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def is_behind(self, offset: int) -> bool:
        """Return whether lines after `offset` exist that have already been evicted from the cache."""
        return self._end > offset and offset not in self._parts

    def note_empty(self, offset: int) -> None:
        """Record that storage had no lines after `offset` when it was just read."""
        self._looked = (offset, asyncio.get_running_loop().time())
        if self.is_behind(offset):
            self._end = offset  # Storage has less than the cache, so the log was deleted.

    def was_empty(self, offset: int, within_s: float) -> bool:
        """Return whether a read at `offset` found nothing within the last `within_s` seconds."""
        where, when = self._looked
        return where == offset and asyncio.get_running_loop().time() - when < within_s


class RunLog(Protocol):
    """The append-only event log of each run.

    A line is the JSON of one RunEvent. Offsets are bytes.
    """

    async def create(self, run_id: str) -> None:
        """Create the log unless it exists."""

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        """Append events in order and return the new end. Readers see all of them or none.

        Raises:
            ConflictError: the log does not end at `at_offset`, because another writer appended.
        """

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        """Return all lines from a byte offset (0 = from the start).

        Raises:
            NotFoundError: the log doesn't exist.
        """

    async def delete(self, run_id: str) -> None:
        """Delete the log. Missing logs are ignored."""

    async def read_piece(self, run_id: str, offset: int) -> LogSlice:
        """Return the next lines like `read`, but possibly only some of them. An empty result means that the
        log ends here.
        """
        return await self.read(run_id, offset)

    @contextmanager
    def watch(self, run_id: str) -> Iterator[LogTail]:
        """Yield this process's cache of the end of the log.

        It is only an optimisation: appends by other processes may be missing, and it may stay empty.
        """
        yield LogTail()


async def next_piece(log: RunLog, run_id: str, offset: int, tail: LogTail, pause_s: float) -> LogSlice:
    """Return the next lines after `offset`, from the cache as soon as they arrive there, otherwise from
    storage after a pause.

    `tail` comes from `log.watch(run_id)`. Of several waiting readers, only one reads storage.

    Raises:
        NotFoundError: the log doesn't exist.
    """
    await tail.wait_for_lines(offset, pause_s)
    if tail.is_behind(offset):
        with without_spans():
            return await log.read_piece(run_id, offset)
    async with tail.reading:
        if (cached := tail.since(offset)) is not None:
            return cached
        # Another reader has read storage while this one waited for the lock.
        if tail.was_empty(offset, pause_s):
            return LogSlice(lines=(), next_offset=offset)
        try:
            with without_spans():
                log_slice = await log.read_piece(run_id, offset)
        except NotFoundError:
            tail.note_empty(offset)
            raise
        if log_slice.lines:
            tail.add(offset, log_slice.lines, log_slice.next_offset, written_here=False)
        else:
            tail.note_empty(offset)
    return log_slice
