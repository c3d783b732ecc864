"""One attempt at one step of a run: its services, the run's journal, its time.

Values that a step keeps are written with its next events, in one append. The first value kept counts, so an
attempt works on with what an earlier one has kept.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from shared.answering.services import AnsweringServices
from shared.answering.shown_answer import correction
from shared.answering.shown_documents import ShownDocuments
from shared.answering.steps import CommitAnswer, Observation, StepAction, StepInput, StepResult
from shared.platform.errors import GroundworkError
from shared.platform.meters import counter
from shared.platform.models import Stored
from shared.runs.event_log import EventLog, staged_event_log
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
from shared.runs.metering import TokenMeter
from shared.runs.models import RunAnswer, RunRequest
from shared.runs.step_time import StepTime
from shared.tools.searches import StepSearches

Observed = TypeVar("Observed", bound=Observation)


class StepContext:
    """What every step uses.

    Attributes:
        tokens: used by the run before this step.
        meter: counts the tokens of this step.
        shown: records which documents the run shows.
    """

    def __init__(
        self, services: AnsweringServices, step_input: StepInput, meter: TokenMeter | None = None
    ) -> None:
        self.services = services
        self.journal = Journal(services.run_log, services.blobs, step_input.run_id)
        self.searches = StepSearches(services)
        self.run_id = step_input.run_id
        self.action: StepAction = step_input.action
        self.tokens = step_input.tokens
        self.meter = meter or TokenMeter()
        self.shown = ShownDocuments(services, self.journal.files)
        self._event_log: EventLog | None = None
        self._time: StepTime | None = None

    @property
    def remaining_s(self) -> float | None:
        """Seconds left of the run's time; None if the step failed before it was known."""
        return self._time.left.remaining_s if self._time else None

    @property
    def is_repeated(self) -> bool:
        """Whether there was an earlier attempt at this step."""
        return any(event.step == self.action.step for event in self.journal.events)

    async def request(self) -> RunRequest:
        """Return the question."""
        return await self.journal.files.request()

    def time_of(self, request: RunRequest, stored: StoredPlan | None = None) -> StepTime:
        """Return the run's time. A wait for a person and losses in a crash don't count."""
        time = StepTime(self.services.settings, request, stored)
        self._time = time.without_losses(self.journal.events, self.action.step)
        return self._time

    async def read_journal(self) -> None:
        """Read the journal as it is when the attempt begins.

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
        """Begin this attempt in the journal, with its first events and the values kept so far.

        Raises:
            RunClosedError: the run has ended.
        """
        event_log = self.begin(*then)
        await event_log.write()
        return event_log

    def begin(self, *then: RunEvent) -> EventLog:
        """Begin this attempt like `open`, with the mark in the same append as its next events.

        Raises:
            RunClosedError: the run has ended.
        """
        first: Sequence[RunEvent] = then
        if self.action.todo and not isinstance(self.action, CommitAnswer):  # COMPLETE carries that one
            first = (TodoListStatus(state="progress", todo=self.action.todo), *then)
        self._event_log = staged_event_log(
            self.services.run_log,
            self.run_id,
            self.action.step,
            (*first, *self.journal.take_staged()),
            (self.journal.events, self.journal.offset),
        )
        return self._event_log

    async def opened(self) -> EventLog:
        """Return this attempt's writer. Its mark is written first, if it isn't yet."""
        return self._event_log or await self.open()

    async def keep(self, value: Stored, part: str, of: int | None = None) -> Stored:
        """Keep a value with the step's next events; return the one that counts, the first.

        Args:
            of: the step whose result it is part of; None = this one.
        """
        step = of or self.action.step
        kept = await self.journal.find(step, type(value), part)
        if kept is not None:
            return kept
        line = await self.journal.stage(step, value, part)
        if self._event_log is not None:
            self._event_log.stage(line)
            self.journal.take_staged()
        return value

    async def reserve(self, tokens: int) -> None:
        """Record the tokens that the calls of this attempt may have used."""
        line = ReservedLine(tokens=tokens)
        if self._event_log is None:
            raise AssertionError("a model is called before the attempt has begun")
        await self._event_log.write(line)

    async def complete(self, observed: Observed, *events: RunEvent) -> Observed:
        """Complete the step, in one append with its last events and all values kept; return its result.

        Raises:
            StaleAttemptError: another attempt has taken over.
            RunClosedError: the run has ended.
        """
        event_log = await self.opened()
        result = StepResult(observation=observed, tokens=self.meter.used)
        await event_log.write(*events, DoneLine(result=result.model_dump(mode="json")))
        return observed

    async def show(self, answer: RunAnswer) -> None:
        """Have readers get exactly an answer's text with the next events, if they have anything else."""
        event_log = await self.opened()
        known = [*self.journal.events, *event_log.written, *event_log.staged]
        if events := correction(known, answer, self.action.step):
            await self.shown.record(citation.doc_id for citation in answer.citations)
            event_log.stage(*events)

    async def discard(self, error_type: str) -> None:
        """Have readers drop what this step sent."""
        if self._event_log is not None:
            # When the log itself is out of reach, the next attempt's `restarted` says the same.
            with suppress(GroundworkError):
                await self._event_log.write(DiscardedStatus(error_type=error_type))
