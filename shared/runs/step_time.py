"""The remaining time of a run, from which the timeouts of its steps are derived."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Self

from shared.platform.language_models.models import CallLimits
from shared.platform.settings import Settings
from shared.runs.events import ResumedStatus, RunEvent, StepStatus, SubagentStatus
from shared.runs.evidence import StoredPlan
from shared.runs.models import RunRequest

Part = Literal["plan", "resolve", "gather", "embed", "write", "repair"]

# Shares of the time that remains when the part begins. Even if planning and embedding both hang, more than
# half is left for writing. Unmeasured with real models.
SHARES: dict[Part, float] = {
    "plan": 0.3,  # a real model needs 1-3 s; this allows 7 of 25 s
    "resolve": 0.3,
    "gather": 0.4,  # searches take 0.2 s
    "embed": 0.2,  # part of gathering; a keyword search is enough to continue
    "write": 1.0,
    "repair": 0.25,  # repair of quotations, up to three times while the answer waits
}

# Reserve for displaying the answer (0.05 s locally) and committing it (0.06 s), multiplied by ten for a busy
# machine.
_KEPT_S = 1.5
# Upper limit as a share of short budgets.
_KEPT_SHARE = 0.25
# Time between the last token and the stored answer, for marks, conflicts and the append.
_CLOSING_S = 0.25
_LEAST_S = 0.05  # shortest timeout, because some clients reject a timeout of 0
_HURRY_S = 8.0  # optional work is skipped if less time is left; unmeasured
_HURRY_SHARE = 0.3  # upper limit as a share of short budgets
_SEARCH_LEAST_S = 2.0  # even a late run must search, because an answer without evidence would be wrong
_SEARCHES: frozenset[Part] = frozenset({"resolve", "gather"})

# A search that takes longer than this indicates an outage rather than a late run. An overloaded machine
# needed 2 to 4 s instead of 0.2 s.
_FAIR_S = 5.0
_FAIR_SHARE = 0.2  # upper limit as a share of short budgets


@dataclass(frozen=True)
class TimeLeft:
    """The remaining time of a run at one moment, negative after the deadline.

    Attributes:
        remaining_s: seconds until the run's deadline.
        total_s: seconds from its beginning to its deadline.
    """

    remaining_s: float
    total_s: float

    @property
    def usable_s(self) -> float:
        """Remaining seconds minus the reserve for committing the answer."""
        return self.remaining_s - min(_KEPT_S, self.total_s * _KEPT_SHARE)

    @property
    def is_short(self) -> bool:
        """Whether so little time is left that optional work is skipped."""
        return self.remaining_s < min(_HURRY_S, self.total_s * _HURRY_SHARE)

    @property
    def fair_search_s(self) -> float:
        """Time in seconds that the searches of a step need even on a busy machine."""
        return min(_FAIR_S, self.total_s * _FAIR_SHARE)

    def allowed_s(self, part: Part, limit_s: float) -> float:
        """Return the timeout in seconds for a part of a step that begins now. It never exceeds `limit_s`, the
        configured timeout.
        """
        closing_s = _CLOSING_S if part == "write" else 0.0
        share_s = (self.usable_s - closing_s) * SHARES[part]
        least_s = _SEARCH_LEAST_S if part in _SEARCHES else _LEAST_S
        if part == "gather":
            # An answer without evidence is useless, so searches may use time otherwise kept for writing.
            least_s = max(least_s, min(self.fair_search_s, self.usable_s))
        return min(limit_s, max(share_s, least_s))

    @property
    def may_write(self) -> bool:
        """Whether enough time is left for another model call."""
        return self.usable_s > _CLOSING_S + _LEAST_S


def child_losses(events: Iterable[RunEvent]) -> dict[tuple[int, int], timedelta]:
    """Return the time that each sub-agent, keyed by step and index, lost in restarted turns."""
    turn_starts: dict[tuple[int, int], SubagentStatus] = {}
    lost: defaultdict[tuple[int, int], timedelta] = defaultdict(timedelta)
    for event in events:
        if not isinstance(event, SubagentStatus) or event.at is None:
            continue
        child = (event.step or 0, event.child or 0)
        before = turn_starts.get(child)
        if event.phase in ("failed", "ended"):
            turn_starts.pop(child, None)
        elif event.phase == "turn":
            if before is not None and before.at is not None and before.turn == event.turn:
                lost[child] += event.at - before.at
            turn_starts[child] = event
    return lost


def _lost_while_waiting(events: Iterable[RunEvent]) -> timedelta:
    """Return the time that the run lost while it waited for restarted sub-agents.

    Sub-agents of one step run concurrently, so only the longest loss of each step counts.
    """
    longest: dict[int, timedelta] = {}
    for (step, _), lost in child_losses(events).items():
        longest[step] = max(lost, longest.get(step, timedelta()))
    return sum(longest.values(), timedelta())


class StepTime:
    """The deadline of a run and the timeouts derived from it. Time spent waiting for the user doesn't
    count.
    """

    def __init__(self, settings: Settings, request: RunRequest, stored: StoredPlan | None = None) -> None:
        began = (stored.resumed_at if stored else None) or request.created_at
        self._total_s = settings.budgets.max_total_latency_ms / 1000
        self._deadline = began + timedelta(seconds=self._total_s)

    def without_losses(self, events: Sequence[RunEvent], step: int) -> Self:
        """Postpone the deadline by the time lost to failed workers or hosts, and return this object.

        Args:
            events: the journal at the start of an attempt at `step`; empty if it could not be read.
        """
        began = max([self.began, *(event.at for event in events if isinstance(event, ResumedStatus))])
        marks: dict[int, datetime] = {}
        lost = timedelta()
        for event in events:
            if isinstance(event, StepStatus) and event.at is not None:
                if event.step in marks:  # An earlier attempt at this step did not finish.
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
        """Start of the run's time, postponed by waits for the user and by losses."""
        return self._deadline - timedelta(seconds=self._total_s)

    @property
    def left(self) -> TimeLeft:
        """The time remaining now."""
        remaining_s = (self._deadline - datetime.now(UTC)).total_seconds()
        return TimeLeft(remaining_s=remaining_s, total_s=self._total_s)

    def seconds(self, part: Part, limit_s: float) -> float:
        """Return the timeout in seconds for a part of a step that begins now, as `TimeLeft.allowed_s`
        does.
        """
        return self.left.allowed_s(part, limit_s)

    def limits(self, part: Part, limit_s: float) -> CallLimits:
        """Return the timeout and retry limits of a model call that begins now."""
        return CallLimits(timeout_s=self.seconds(part, limit_s))
