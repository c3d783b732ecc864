"""Run logs in memory."""

import json
from collections.abc import Sequence
from typing import Any

from shared.platform.errors import ConflictError, NotFoundError
from shared.runs.events import RunEvent, parse_event
from shared.runs.log_lines import EventName, LogSlice
from shared.runs.run_log import RunLog

_REQUIRED: dict[EventName, dict[str, Any]] = {
    "STATUS": {"state": "warning", "text": "slow"},
    "THOUGHT": {"text": "Reading"},
    "TOKEN": {"text": "a"},
    "TOOL_STARTED": {"tool": "rerank", "arguments": {}},
    "ERROR": {"type": "NetworkError", "message": "stopped"},
    "COMPLETE": {"run_id": "r", "thread_id": "t", "answer": {"text": "a"}},
}


def run_event(name: EventName, **data: Any) -> RunEvent:
    """Return an event with these fields. Other required fields get arbitrary values."""
    required = {} if "state" in data else _REQUIRED.get(name, {})
    return parse_event(json.dumps({"name": name, "data": {**required, **data}}))


class InMemoryRunLog(RunLog):
    """A run log with one bytearray per run."""

    def __init__(self) -> None:
        self.logs: dict[str, bytearray] = {}
        self.starts: dict[str, list[int]] = {}

    async def create(self, run_id: str) -> None:
        self.logs.setdefault(run_id, bytearray())

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        log = self._find(run_id)
        if at_offset not in (None, len(log)):
            raise ConflictError("The log of this run grew meanwhile.")
        self.starts.setdefault(run_id, []).append(len(log))
        log.extend("".join(f"{event.to_line()}\n" for event in events).encode())
        return len(log)

    async def read(self, run_id: str, offset: int = 0) -> LogSlice:
        content = bytes(self._find(run_id)[offset:])
        return LogSlice(lines=tuple(content.decode().split("\n")[:-1]), next_offset=offset + len(content))

    async def delete(self, run_id: str) -> None:
        self.logs.pop(run_id, None)
        self.starts.pop(run_id, None)

    def events(self, run_id: str) -> list[RunEvent]:
        """Return the public events of a run, for assertions."""
        return [event for event in self.lines(run_id) if event.name.isupper()]

    def lines(self, run_id: str) -> list[RunEvent]:
        """Return all lines of a run's journal, public or not, for assertions."""
        return [parse_event(line) for line in self._find(run_id).decode().split("\n")[:-1]]

    def cut_last(self, run_id: str) -> None:
        """Remove the last append, as if the process had died before it."""
        del self._find(run_id)[self.starts[run_id].pop() :]

    def _find(self, run_id: str) -> bytearray:
        try:
            return self.logs[run_id]
        except KeyError:
            raise NotFoundError("There is no log of this run.") from None


class ForgetfulLog(InMemoryRunLog):
    """A run log that loses the response to every append, so that the transport sends it twice."""

    async def append(self, run_id: str, events: Sequence[RunEvent], *, at_offset: int | None = None) -> int:
        await super().append(run_id, events, at_offset=at_offset)
        return await super().append(run_id, events, at_offset=at_offset)
