"""What one activity remembers from its first read to its end: a document's state, and its work files.

The memory never outlives the activity, and is never trusted: a state that is written is compared with the
store's revision as ever, so one that is out of date is a conflict, and is read again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from shared.models.base import Model
from shared.models.ingestion import DocumentState


@dataclass
class Sitting:
    """One activity's memory.

    Attributes:
        states: last known states, by document.
        files: work files by path; those that only this sitting needs are written nowhere else.
        is_whole: the whole ingestion happens in it, so work files need not be stored for later activities.
    """

    is_whole: bool = False
    states: dict[str, DocumentState] = field(default_factory=dict)
    files: dict[str, Model] = field(default_factory=dict)


_current: ContextVar[Sitting | None] = ContextVar("sitting", default=None)


@contextmanager
def sitting(*, is_whole: bool = False) -> Iterator[Sitting]:
    """Remember until the end of the block."""
    begun = Sitting(is_whole=is_whole)
    token = _current.set(begun)
    try:
        yield begun
    finally:
        _current.reset(token)


def current_sitting() -> Sitting:
    """The sitting of this activity; outside of one, a memory that is forgotten at once."""
    return _current.get() or Sitting()
