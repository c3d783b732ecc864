"""One attempt at one step of a run: its services, its working memory, its time, and its part of the log.

A result is stored once: of two attempts the first to store counts, and what readers see follows it.
"""

from collections.abc import Sequence
from contextlib import suppress

from shared.answering.services import AnsweringServices
from shared.answering.shown_answer import show_stored
from shared.answering.shown_documents import ShownDocuments
from shared.answering.steps import CommitAnswer, StepAction, StepInput
from shared.platform.errors import GroundworkError
from shared.platform.meters import counter
from shared.runs.event_log import EventLog, open_event_log
from shared.runs.events import DiscardedStatus, RunEvent, TodoListStatus, UnknownEvent, events_of
from shared.runs.evidence import StoredPlan
from shared.runs.log_lines import LogSlice
from shared.runs.models import RunAnswer, RunRequest
from shared.runs.step_time import StepTime
from shared.runs.working_memory import WorkingMemory
from shared.tools.searches import StepSearches


class StepAttempt:
    """What every step uses.

    Attributes:
        tokens: used by the run before this step.
        written: the log as it was before this attempt; None = it was not read, or could not be.
        shown: records which documents the run shows.
    """

    def __init__(self, services: AnsweringServices, step_input: StepInput) -> None:
        self.services = services
        self.memory = WorkingMemory(services.blobs, step_input.run_id)
        self.searches = StepSearches(services)
        self.run_id = step_input.run_id
        self.action: StepAction = step_input.action
        self.tokens = step_input.tokens
        self.written: LogSlice | None = None
        self.shown = ShownDocuments(services, self.memory)
        self._event_log: EventLog | None = None
        self._time: StepTime | None = None

    @property
    def remaining_s(self) -> float | None:
        """Seconds left of the run's time; None = the step did not get so far as to know."""
        return self._time.left.remaining_s if self._time else None

    @property
    def is_repeated(self) -> bool:
        """Whether an earlier attempt at this step stands in the log, or may: the log could not be read."""
        return self.written is None or any(
            event.step == self.action.step for event in events_of(self.written)
        )

    def time_of(self, request: RunRequest, stored: StoredPlan | None = None) -> StepTime:
        """The run's time. A wait for a person, and what was lost in a crash, do not count."""
        time = StepTime(self.services.settings, request, stored)
        self._time = time.without_losses(self.written, self.action.step)
        return self._time

    async def read_log(self) -> None:
        """Read the log so far, if that is possible: `open` needs it, and will say why if it cannot be.

        Raises:
            UnknownEventError: a newer version of the app wrote an internal line.
        """
        with suppress(GroundworkError):
            self.written = await self.services.run_log.read(self.run_id)
        events = events_of(self.written) if self.written else ()
        self.shown.add_recorded(events)
        if unknown := sum(isinstance(event, UnknownEvent) for event in events):
            counter("groundwork.runs", "groundwork.run.unknown_events", "{event}", "Unknown events read").add(
                unknown
            )

    async def open(self, *then: RunEvent) -> EventLog:
        """Begin this attempt in the log, with its first events.

        Raises:
            RunClosedError: the run has ended.
        """
        first: Sequence[RunEvent] = then
        if self.action.todo and not isinstance(self.action, CommitAnswer):  # COMPLETE carries that one
            first = (TodoListStatus(state="progress", todo=self.action.todo), *then)
        self._event_log = await open_event_log(
            self.services.run_log, self.run_id, self.action.step, self.written, first
        )
        return self._event_log

    async def show_stored(self, answer: RunAnswer, step: int) -> None:
        """Make what readers have of the answer equal the stored one, as `shown_answer.show_stored`."""
        await show_stored(self.services.run_log, answer, step, self.shown.record)

    async def discard(self, error_type: str) -> None:
        """Have readers drop what this step sent."""
        if self._event_log is not None:
            # When the log itself is out of reach, the next attempt's `restarted` says the same.
            with suppress(GroundworkError):
                await self._event_log.write(DiscardedStatus(error_type=error_type))
