"""The context of an attempt at a step: services, journal, event log and remaining time.

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
    """Base of the contexts of run steps and sub-agent turns: holds the services, the journal and the event
    log.
    """

    def __init__(self, services: ServicesT, journal: Journal) -> None:
        self.services = services
        self.journal = journal
        self.run_id = journal.run_id
        self._event_log: EventLog | None = None

    @property
    def event_log(self) -> EventLog:
        """Event log of this attempt; available after `open` or `begin`."""
        if self._event_log is None:
            raise AssertionError("the attempt was not opened")
        return self._event_log

    @property
    def known_lines(self) -> KnownLines:
        """The journal's events and byte offset as last read."""
        return self.journal.events, self.journal.offset


class StepContext(AttemptContext[AnsweringServices]):
    """Context of the run's own steps.

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
        # Actions of children are performed by `subagent_step` and `summary_document`.
        assert not isinstance(step_input.action, SubagentAction | DocumentAction)  # noqa: S101
        self.action: StepAction = step_input.action
        self.tokens = step_input.tokens
        self.budget = budget or Budget()
        self.shown = ShownDocuments(services, self.journal.files)
        self._time: StepTime | None = None

    @property
    def remaining_s(self) -> float | None:
        """Seconds left of the run's time limit; None if the attempt failed before calculating it."""
        return self._time.left.remaining_s if self._time else None

    @property
    def is_repeated(self) -> bool:
        """Whether the journal contains an earlier attempt at this step."""
        return any(event.step == self.action.step for event in self.journal.events)

    async def request(self) -> RunRequest:
        """Return the run's request."""
        return await self.journal.files.request()

    def time_of(self, request: RunRequest, stored: StoredPlan | None = None) -> StepTime:
        """Return the run's time limits, which exclude waits for the user and time lost in crashes."""
        time = StepTime(self.services.settings, request, stored)
        self._time = time.without_losses(self.journal.events, self.action.step)
        return self._time

    async def read_journal(self) -> None:
        """Read the journal at the beginning of the attempt.

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
        """Append this attempt's mark to the journal, with its first events and all staged values.

        Raises:
            RunClosedError: the run has ended.
        """
        event_log = self.begin(*then)
        await event_log.write()
        return event_log

    def begin(self, *then: RunEvent) -> EventLog:
        """Create the event log without writing. The attempt's mark is appended together with its next events.

        Raises:
            RunClosedError: the run has ended.
        """
        first: Sequence[RunEvent] = then
        # The final todo list of `CommitAnswer` is part of COMPLETE.
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
        """Return this attempt's event log, opening it if necessary."""
        return self._event_log or await self.open()

    async def keep(self, value: Stored, part: str, of: int | None = None) -> Stored:
        """Return the value stored by an earlier attempt, or stage `value` for the next append and return it.

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
        """Record an upper limit for the tokens of this attempt's model calls before they are made."""
        await self.event_log.write(ReservedLine(tokens=tokens))

    async def complete(self, observed: Observed, *events: RunEvent) -> Observed:
        """Append the step's last events, staged values and completion atomically; return its result.

        Raises:
            StaleAttemptError: another attempt has taken over.
            RunClosedError: the run has ended.
        """
        event_log = await self.open_if_needed()
        result = StepResult(observation=observed, tokens=self.budget.tokens)
        await event_log.write(*events, DoneLine(result=result.model_dump(mode="json")))
        return observed

    async def show(self, answer: RunAnswer) -> None:
        """Stage the events that correct the readers' text to match the answer. Nothing is staged if it
        matches.
        """
        event_log = await self.open_if_needed()
        events_so_far = [*self.journal.events, *event_log.written, *event_log.staged]
        if events := correction(events_so_far, answer, self.action.step):
            await self.shown.record(citation.doc_id for citation in answer.citations)
            event_log.stage(*events)

    async def discard(self, error_type: str) -> None:
        """Append an event that makes readers drop this step's text and citations. Ignore storage failures."""
        if self._event_log is not None:
            # If the log is unavailable, the next attempt's `restarted` has the same effect.
            with suppress(GroundworkError):
                await self._event_log.write(DiscardedStatus(error_type=error_type))
