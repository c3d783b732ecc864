"""A run log in memory, for the inline driver: its one reader waits for lines as they are appended."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from shared.errors import ConflictError, NotFoundError
from shared.models.events import TERMINAL_EVENTS, LogSlice, RunEvent


class MemoryRunLog:
    """Implements the port RunLog; an offset counts lines, not bytes, which no caller can tell."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._grown = asyncio.Condition()

    async def create(self, run_id: str) -> None:
        """Start the log; one that exists is left as it is."""
        self._lines.setdefault(run_id, [])

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        """Append all at once; ConflictError when the log does not end at `at_offset`."""
        lines = self._of(run_id)
        if at_offset is not None and at_offset != len(lines):
            raise ConflictError("The log has grown since.")
        lines.extend(event.model_dump_json() for event in events)
        async with self._grown:
            self._grown.notify_all()
        return len(lines)

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        """Everything from `offset` on."""
        lines = self._of(run_id)
        return LogSlice(lines=tuple(lines[offset:]), next_offset=len(lines))

    async def delete(self, run_id: str) -> None:
        """Forget the run."""
        self._lines.pop(run_id, None)

    async def follow(self, run_id: str) -> AsyncIterator[RunEvent]:
        """Every event from the first on, as it comes; ends after the terminal one."""
        position = 0
        while True:
            lines = self._of(run_id)
            while position < len(lines):
                event = RunEvent.model_validate_json(lines[position])
                position += 1
                yield event
                if event.name in TERMINAL_EVENTS:
                    return
            async with self._grown:
                while len(lines) <= position:
                    await self._grown.wait()

    def _of(self, run_id: str) -> list[str]:
        if run_id not in self._lines:
            raise NotFoundError(f"There is no run {run_id}.")
        return self._lines[run_id]
