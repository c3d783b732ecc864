"""events."""

from typing import Any, Literal

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


class RunEvent(Model):
    """One event; its number is its line in the run log, counted from 1.

    Attributes:
        name: sent in lower case as the SSE event name.
        data: plain JSON; what each event carries stands in docs/events.md.
    """

    name: EventName
    data: dict[str, Any]


class LogSlice(Model):
    """Complete lines of a run log, without their line ends, and the byte offset where reading goes on."""

    lines: tuple[str, ...]
    next_offset: int
