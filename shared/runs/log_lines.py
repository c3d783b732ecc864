"""Journal line names, and the rule that decides which lines are public. Pure, and cheap to import at worker
startup.
"""

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
    """Complete lines of a journal without line endings, and the byte offset of the next line."""

    lines: tuple[str, ...]
    next_offset: int

    @property
    def public(self) -> tuple[str, ...]:
        """Lines that clients receive. Only these are numbered."""
        return tuple(filter(is_public, self.lines))


def is_public(line: str) -> bool:
    """Return whether clients receive a journal line, i.e. whether its name starts with an upper-case
    letter.
    """
    return line[len('{"name":"') :][:1].isupper()
