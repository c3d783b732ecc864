"""A run's remaining time as its steps see it: timeouts of the settings, cut to what is left."""

from datetime import UTC, datetime, timedelta

from shared.platform.language_models.models import CallLimits
from shared.platform.settings import Settings
from shared.runs.deadline import Part, TimeLeft
from shared.runs.models import RunRequest
from shared.runs.working_memory import StoredPlan


class StepTime:
    """Reads the clock; the time that a person took to answer is not the run's."""

    def __init__(self, settings: Settings, request: RunRequest, stored: StoredPlan | None = None) -> None:
        began = (stored.resumed_at if stored else None) or request.created_at
        self._total_s = settings.budgets.max_total_latency_ms / 1000
        self._deadline = began + timedelta(seconds=self._total_s)

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
