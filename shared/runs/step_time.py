"""A run's remaining time as its steps see it: timeouts of the settings, cut to what is left."""

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

# Shares of what remains when the part begins; those of models that hang add up, so that with both planning
# and embedding hanging more than half is left for writing. Unmeasured with real models.
SHARES: dict[Part, float] = {
    "plan": 0.3,  # a plan takes a real model 1-3 s; 7 of 25 s
    "resolve": 0.3,
    "gather": 0.4,  # searches take 0.2 s
    "embed": 0.2,  # a part of gathering: words alone find enough to continue
    "write": 1.0,
    "repair": 0.25,  # of a quotation, while the answer waits; three at most
}

# For the end: the answer is shown (0.05 s locally) and committed (0.06 s); ten times that on a busy machine.
_KEPT_S = 1.5
_KEPT_SHARE = 0.25  # of budgets so short that this would be most of them
_CLOSING_S = 0.25  # between the model's last word and the stored answer: marks, conflicts, one append
_LEAST_S = 0.05  # a limit of 0 would be refused by some clients; nothing answers in less
_HURRY_S = 8.0  # with less nothing optional is begun: search again, put in order; unmeasured
_HURRY_SHARE = 0.3  # of budgets so short that this would be most of them
_SEARCH_LEAST_S = 2.0  # an answer without any search would be a lie: a run that is late searches all the same
_SEARCHES: frozenset[Part] = frozenset({"resolve", "gather"})

# With all of this and no answer a search service is down or hangs; with less, its run was late. A starved
# machine took 2 to 4 s where 0.2 are usual.
_FAIR_S = 5.0
_FAIR_SHARE = 0.2  # of budgets so short that this would be most of them


@dataclass(frozen=True)
class TimeLeft:
    """What is left of a run's time at one moment, in seconds. Below 0 the deadline has passed.

    Attributes:
        remaining_s: until the run's deadline.
        total_s: from its beginning to its deadline.
    """

    remaining_s: float
    total_s: float

    @property
    def usable_s(self) -> float:
        """Without what is kept for the end."""
        return self.remaining_s - min(_KEPT_S, self.total_s * _KEPT_SHARE)

    @property
    def is_short(self) -> bool:
        """Whether nothing optional is to be begun."""
        return self.remaining_s < min(_HURRY_S, self.total_s * _HURRY_SHARE)

    @property
    def fair_search_s(self) -> float:
        """So much is enough for the searches of a step, on a busy machine, too."""
        return min(_FAIR_S, self.total_s * _FAIR_SHARE)

    def allowed_s(self, part: Part, limit_s: float) -> float:
        """How long a part that begins now may take; `limit_s` is its setting."""
        closing_s = _CLOSING_S if part == "write" else 0.0
        share_s = (self.usable_s - closing_s) * SHARES[part]
        least_s = _SEARCH_LEAST_S if part in _SEARCHES else _LEAST_S
        if part == "gather":  # without evidence the time behind it is worth nothing
            least_s = max(least_s, min(self.fair_search_s, self.usable_s))
        return min(limit_s, max(share_s, least_s))

    @property
    def may_write(self) -> bool:
        """Whether there is time to ask a model for anything more."""
        return self.usable_s > _CLOSING_S + _LEAST_S


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

    def without_losses(self, events: Sequence[RunEvent], step: int) -> Self:
        """Move the deadline by what was lost with a worker or a host; return this time.

        Args:
            events: the journal as it is when an attempt at `step` begins; empty if it could not be read.
        """
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
