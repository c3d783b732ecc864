"""Context of an attempt at a step: its services, its journal, its event log and the remaining time.

Values that a step stores are appended together with its next events. The first stored value counts, so an
attempt continues with the values of an earlier one.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from shared.answering.budget import Budget
from shared.answering.services import AnsweringServices, SubagentServices
from shared.answering.shown_answer import correction
from shared.answering.shown_documents import ShownDocuments
from shared.answering.steps import (
    CommitAnswer,
    Observation,
    StepAction,
    StepInput,
    StepResult,
    SubagentAction,
)
from shared.answering.summary_models import DocumentAction
from shared.platform.errors import GroundworkError
from shared.platform.meters import counter
from shared.platform.models import Stored
from shared.runs.event_log import EventLog, KnownLines, staged_event_log
from shared.runs.events import (
    DiscardedStatus,
    DoneLine,
    ReservedLine,
    RunEvent,
    TodoListStatus,
    UnknownEvent,
)
from shared.runs.evidence import StoredPlan
from shared.runs.journal import Journal
from shared.runs.models import RunAnswer, RunRequest
from shared.runs.step_time import StepTime
from shared.tools.searches import StepSearches

Observed = TypeVar("Observed", bound=Observation)
ServicesT = TypeVar("ServicesT", bound=SubagentServices)


class AttemptContext(Generic[ServicesT]):
    """Base of `StepContext` and `SubagentContext`, with the services, the journal and the event log of an
    attempt.
    """

    def __init__(self, services: ServicesT, journal: Journal) -> None:
        self.services = services
        self.journal = journal
        self.run_id = journal.run_id
        self._event_log: EventLog | None = None

    @property
    def event_log(self) -> EventLog:
        """Event log of this attempt. It exists only after `open` or `begin`."""
        if self._event_log is None:
            raise AssertionError("The attempt has no event log yet; call `open` or `begin` first.")
        return self._event_log

    @property
    def known_lines(self) -> KnownLines:
        """The events of the journal and its length in bytes, as last read."""
        return self.journal.events, self.journal.offset


class StepContext(AttemptContext[AnsweringServices]):
    """Context of an attempt at a step of the run itself.

    Attributes:
        tokens: used by the run before this step.
        budget: what the run has left for this step, and the tokens that the step has used.
        shown: records which documents the run shows.
    """

    def __init__(
        self, services: AnsweringServices, step_input: StepInput, budget: Budget | None = None
    ) -> None:
        super().__init__(services, Journal(services.run_log, services.blobs, step_input.run_id))
        self.searches = StepSearches(services)
        # Actions of a run's children are handled by `subagent_step` and `summary_document`.
        assert not isinstance(step_input.action, SubagentAction | DocumentAction)  # noqa: S101
        self.action: StepAction = step_input.action
        self.tokens = step_input.tokens
        self.budget = budget or Budget()
        self.shown = ShownDocuments(services, self.journal.files)
        self._time: StepTime | None = None

    @property
    def remaining_s(self) -> float | None:
        """Seconds left of the run's time limit, or None before `time_of` was called."""
        return self._time.left.remaining_s if self._time else None

    @property
    def is_repeated(self) -> bool:
        """Whether the journal contains an earlier attempt at this step."""
        return any(event.step == self.action.step for event in self.journal.events)

    async def request(self) -> RunRequest:
        """Return the stored request of the run."""
        return await self.journal.files.request()

    def time_of(self, request: RunRequest, stored: StoredPlan | None = None) -> StepTime:
        """Return the run's time limits. Time spent waiting for the user or lost in crashes doesn't count."""
        time = StepTime(self.services.settings, request, stored)
        self._time = time.without_losses(self.journal.events, self.action.step)
        return self._time

    async def read_journal(self) -> None:
        """Read the journal, which must happen before anything else in the attempt.

        Raises:
            NotFoundError: the run was erased.
            UnknownEventError: a newer version of the app wrote an internal line.
        """
        await self.journal.read()
        self.shown.add_recorded(self.journal.events)
        if unknown := sum(isinstance(event, UnknownEvent) for event in self.journal.events):
            counter("groundwork.runs", "groundwork.run.unknown_events", "{event}", "Unknown events read").add(
                unknown
            )

    async def open(self, *then: RunEvent) -> EventLog:
        """Append the start of this attempt to the journal, with its first events and all staged values.

        Raises:
            RunClosedError: the run has ended.
        """
        event_log = self.begin(*then)
        await event_log.write()
        return event_log

    def begin(self, *then: RunEvent) -> EventLog:
        """Create the event log of this attempt without writing. Its start is appended together with its first
        events.

        Raises:
            RunClosedError: the run has ended.
        """
        first: Sequence[RunEvent] = then
        # `CommitAnswer` sends its final to-do list as part of COMPLETE instead.
        if self.action.todo and not isinstance(self.action, CommitAnswer):
            first = (TodoListStatus(state="progress", todo=self.action.todo), *then)
        self._event_log = staged_event_log(
            self.services.run_log,
            self.run_id,
            self.action.step,
            (*first, *self.journal.take_staged()),
            self.known_lines,
        )
        return self._event_log

    async def open_if_needed(self) -> EventLog:
        """Return the event log of this attempt, and open it first if that hasn't happened."""
        return self._event_log or await self.open()

    async def keep(self, value: Stored, part: str, of: int | None = None) -> Stored:
        """Return the value that an earlier attempt stored, or else stage `value` for the next append and
        return it.

        Args:
            of: the step whose result contains the value; None = the current step.
        """
        step = of or self.action.step
        stored = await self.journal.find(step, type(value), part)
        if stored is not None:
            return stored
        line = await self.journal.stage(step, value, part)
        if self._event_log is not None:
            self._event_log.stage(line)
            self.journal.take_staged()
        return value

    async def reserve(self, tokens: int) -> None:
        """Record the tokens that this attempt may use at most, before its model call is made."""
        await self.event_log.write(ReservedLine(tokens=tokens))

    async def complete(self, observed: Observed, *events: RunEvent) -> Observed:
        """Append the step's last events, its staged values and its completion atomically. Return `observed`.

        Raises:
            StaleAttemptError: another attempt has taken over.
            RunClosedError: the run has ended.
        """
        event_log = await self.open_if_needed()
        result = StepResult(observation=observed, tokens=self.budget.tokens)
        await event_log.write(*events, DoneLine(result=result.model_dump(mode="json")))
        return observed

    async def show(self, answer: RunAnswer) -> None:
        """Stage the events that make the text shown to readers equal the answer. Stage nothing if it already
        does.
        """
        event_log = await self.open_if_needed()
        events_so_far = [*self.journal.events, *event_log.written, *event_log.staged]
        if events := correction(events_so_far, answer, self.action.step):
            await self.shown.record(citation.doc_id for citation in answer.citations)
            event_log.stage(*events)

    async def discard(self, error_type: str) -> None:
        """Append an event that makes readers discard this step's text and citations. Storage failures are
        ignored.
        """
        if self._event_log is not None:
            # If this write fails, the `restarted` event of the next attempt has the same effect.
            with suppress(GroundworkError):
                await self._event_log.write(DiscardedStatus(error_type=error_type))
