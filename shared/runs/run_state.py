"""The outcome of a run, derived from its journal. Pure.

The journal is the only truth about how a run ended. The run's record, its thread's row and the stored answer
are copies that may lag behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.platform.errors import RunCancelledError
from shared.runs.events import CompleteEvent, ErrorEvent, RunEvent, StepStatus, is_terminal
from shared.runs.models import RunAnswer, RunRecord, RunStatus
from shared.runs.plan import TodoItem


@dataclass(frozen=True)
class RunState:
    """The outcome of a run according to the part of its journal that has been read.

    Attributes:
        status: `running` until the last event, also while the run waits for a reply.
        finished_at: start of the attempt that wrote the last event; None before the end.
        answer: None unless the run is completed.
        todo: final todo list of a completed run.
    """

    status: RunStatus = "running"
    finished_at: datetime | None = None
    answer: RunAnswer | None = None
    error: str | None = None
    error_type: str | None = None
    todo: tuple[TodoItem, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether the journal contains the run's last event."""
        return self.status != "running"

    def update(self, record: RunRecord) -> RunRecord:
        """Return the record with this outcome, or unchanged if the run is still in progress."""
        if not self.has_ended:
            return record
        names = ("status", "finished_at", "error", "error_type", "todo")
        return record.model_copy(update={name: getattr(self, name) for name in names})


def fold(events: Sequence[RunEvent]) -> RunState:
    """Derive the outcome of a run from all lines of its journal."""
    end = next(filter(is_terminal, events), None)
    # The last event has no timestamp, because repeated reads must return identical bytes. The start of the
    # last attempt is used instead.
    started = [event.at for event in events if isinstance(event, StepStatus) and event.at is not None]
    finished_at = started[-1] if started else None
    match end:
        case CompleteEvent():
            return RunState("completed", finished_at, answer=end.answer, todo=end.todo)
        case ErrorEvent():
            status: RunStatus = "cancelled" if end.type == RunCancelledError.code else "failed"
            return RunState(status, finished_at, error=end.message, error_type=end.type)
        case _:
            return RunState()
