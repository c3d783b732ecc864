"""A run's remaining time as its steps see it: timeouts of the settings, cut to what is left."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Self

from shared.platform.language_models.models import CallLimits
from shared.platform.settings import Settings
from shared.runs.deadline import Part, TimeLeft
from shared.runs.events import ResumedStatus, RunEvent, StepStatus, SubagentStatus, events_of
from shared.runs.evidence import StoredPlan
from shared.runs.log_lines import LogSlice
from shared.runs.models import RunRequest


def child_losses(events: Iterable[RunEvent]) -> dict[tuple[int, int], timedelta]:
    """What each sub-agent, by step and index, lost with a worker: the time of turns that began again."""
    begun: dict[tuple[int, int], SubagentStatus] = {}
    lost: defaultdict[tuple[int, int], timedelta] = defaultdict(timedelta)
    for event in events:
        if not isinstance(event, SubagentStatus) or event.at is None:
            continue
        child = (event.step or 0, event.child or 0)
        before = begun.get(child)
        if event.phase in ("failed", "ended"):
            begun.pop(child, None)
        elif event.phase == "turn":
            if before is not None and before.at is not None and before.turn == event.turn:
                lost[child] += event.at - before.at
            begun[child] = event
    return lost


def _lost_while_waiting(events: Iterable[RunEvent]) -> timedelta:
    """Sub-agents of one step work at the same time, those of several one after the other."""
    longest: dict[int, timedelta] = {}
    for (step, _), lost in child_losses(events).items():
        longest[step] = max(lost, longest.get(step, timedelta()))
    return sum(longest.values(), timedelta())


class StepTime:
    """Reads the clock; the time that a person took to answer is not the run's."""

    def __init__(self, settings: Settings, request: RunRequest, stored: StoredPlan | None = None) -> None:
        began = (stored.resumed_at if stored else None) or request.created_at
        self._total_s = settings.budgets.max_total_latency_ms / 1000
        self._deadline = began + timedelta(seconds=self._total_s)

    def without_losses(self, written: LogSlice | None, step: int) -> Self:
        """The same, not counting what was lost with a worker or a host.

        Args:
            written: the log as it is when an attempt at `step` begins; None = it could not be read.
        """
        events = events_of(written) if written is not None else ()
        began = max([self.began, *(event.at for event in events if isinstance(event, ResumedStatus))])
        marks: dict[int, datetime] = {}
        lost = timedelta()
        for event in events:
            if isinstance(event, StepStatus) and event.at is not None:
                if event.step in marks:  # it was begun before, and did not come to its end
                    lost += max(event.at - max(marks[event.step], began), timedelta())
                marks[event.step] = event.at
        if step in marks:
            lost += datetime.now(UTC) - max(marks[step], began)
        at_work = [event for event in events if isinstance(event, SubagentStatus)]
        lost += _lost_while_waiting(event for event in at_work if event.at and event.at >= began)
        self._deadline = began + timedelta(seconds=self._total_s) + lost
        return self

    @property
    def began(self) -> datetime:
        """When the run's time began: later by every wait and loss that does not count."""
        return self._deadline - timedelta(seconds=self._total_s)

    @property
    def left(self) -> TimeLeft:
        """What is left now."""
        remaining_s = (self._deadline - datetime.now(UTC)).total_seconds()
        return TimeLeft(remaining_s=remaining_s, total_s=self._total_s)

    def seconds(self, part: Part, limit_s: float) -> float:
        """How long a part that begins now may take."""
        return self.left.allowed_s(part, limit_s)

    def limits(self, part: Part, limit_s: float) -> CallLimits:
        """The same, as limits of one call."""
        return CallLimits(timeout_s=self.seconds(part, limit_s))
