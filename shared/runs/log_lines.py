"""The lines of a run's journal and their names. Pure, and light: a worker loads it at its start."""

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
"""Names of the lines that readers don't get."""

TERMINAL_EVENTS: frozenset[EventName] = frozenset({"COMPLETE", "ERROR"})


class LogSlice(Model):
    """Complete lines of a run log, without their line ends, and the byte offset where reading continues."""

    lines: tuple[str, ...]
    next_offset: int

    @property
    def public(self) -> tuple[str, ...]:
        """The lines that readers get. Only they are numbered."""
        return tuple(filter(is_public, self.lines))


def is_public(line: str) -> bool:
    """Whether readers get a line, as the upper-case name at its beginning tells."""
    return line[len('{"name":"') :][:1].isupper()
