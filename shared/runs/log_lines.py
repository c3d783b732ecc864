"""The lines of a run log and the names of its events. Pure, and light: a worker loads it at its start."""

from typing import Literal

from shared.platform.models import Model

EventName = Literal[
    "THOUGHT",
    "ACTION",
    "TOOL_STARTED",
    "TOOL_RESULT",
    "ASK_USER",
    "COMPLETE",
    "ERROR",
    "TOKEN",
    "CITATION",
    "STATUS",
]
TERMINAL_EVENTS: frozenset[EventName] = frozenset({"COMPLETE", "ERROR"})


class LogSlice(Model):
    """Complete lines of a run log, without their line ends, and the byte offset where reading continues."""

    lines: tuple[str, ...]
    next_offset: int
