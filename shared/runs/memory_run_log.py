"""An in-memory run log for the inline driver, with a reader that waits for new lines."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from shared.platform.errors import ConflictError, NotFoundError
from shared.runs.events import RunEvent, parse_event
from shared.runs.log_lines import LogSlice, is_public
from shared.runs.run_log import RunLog


class MemoryRunLog(RunLog):
    """In-memory `RunLog`. Offsets count lines instead of bytes, which makes no difference to callers."""

    def __init__(self, lines: Mapping[str, Sequence[str]] | None = None) -> None:
        """Create logs that start with the given lines, keyed by run id."""
        self._lines = {run_id: list(entries) for run_id, entries in (lines or {}).items()}
        self._grown = asyncio.Condition()

    async def create(self, run_id: str) -> None:
        self._lines.setdefault(run_id, [])

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        lines = self._of(run_id)
        if at_offset is not None and at_offset != len(lines):
            raise ConflictError("The log has grown since.")
        lines.extend(event.to_line() for event in events)
        async with self._grown:
            self._grown.notify_all()
        return len(lines)

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        lines = self._of(run_id)
        return LogSlice(lines=tuple(lines[offset:]), next_offset=len(lines))

    async def delete(self, run_id: str) -> None:
        self._lines.pop(run_id, None)

    async def follow(
        self, run_id: str, run: "asyncio.Task[object]", position: int = 0
    ) -> AsyncIterator[RunEvent]:
        """Yield public events from line `position` until the task that writes them ends.

        Raises:
            Exception: any exception of the task.
        """
        while True:
            # Check this before reading, so that lines written just before the task ended are not missed.
            ended = run.done()
            lines = self._of(run_id)
            for line in filter(is_public, lines[position:]):
                yield parse_event(line)
            position = len(lines)
            if ended:
                run.result()
                return
            await self._growth(run_id, position, run)

    async def _growth(self, run_id: str, position: int, run: "asyncio.Task[object]") -> None:
        grown = asyncio.ensure_future(self._longer_than(run_id, position))
        try:
            await asyncio.wait({grown, run}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            grown.cancel()

    async def _longer_than(self, run_id: str, position: int) -> None:
        async with self._grown:
            await self._grown.wait_for(lambda: len(self._of(run_id)) > position)

    def _of(self, run_id: str) -> list[str]:
        if run_id not in self._lines:
            raise NotFoundError(f"There is no run {run_id}.")
        return self._lines[run_id]
