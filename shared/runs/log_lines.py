"""The lines of a run's journal and their names. Pure and cheap to import at worker startup."""

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
InternalName = Literal["value", "attempt", "done", "reply", "reserved"]
"""Names of lines that are not sent to readers."""

TERMINAL_EVENTS: frozenset[EventName] = frozenset({"COMPLETE", "ERROR"})


class LogSlice(Model):
    """Complete lines of a run log, without line ends, and the byte offset where reading continues."""

    lines: tuple[str, ...]
    next_offset: int

    @property
    def public(self) -> tuple[str, ...]:
        """The lines sent to readers, the only ones that are numbered."""
        return tuple(filter(is_public, self.lines))


def is_public(line: str) -> bool:
    """Return whether a line is sent to readers: its event name starts with an upper-case letter."""
    return line[len('{"name":"') :][:1].isupper()
