"""Writing of one step's events to the run journal. If a step is repeated, readers still see its events only
once.

Every line carries its step. A second attempt first appends a `restarted` status, on which readers drop the
step's earlier tokens and citations. An attempt stops when it finds a later attempt's mark or the step's
completion after its own lines. So two attempts never interleave, and no line of a step follows its
completion. A sub-agent's lines also carry its index and profile. Its attempts are marked by internal lines,
and the mark of a later step closes it. A child that takes several turns at once numbers the lines of its
attempts, which then exclude each other only within a turn. No line follows a run's last event.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from shared.platform.errors import ConflictError
from shared.runs.events import (
    AttemptLine,
    DoneLine,
    ReservedLine,
    RunEvent,
    StepStatus,
    TimedEvent,
    TokenEvent,
    events_of,
    is_terminal,
)
from shared.runs.log_lines import LogSlice
from shared.runs.models import ProfileName
from shared.runs.run_log import RunLog


class StaleAttemptError(ConflictError):
    """Internal error: a later attempt at the step has taken over."""

    code = "StaleAttemptError"


class RunClosedError(ConflictError):
    """Internal error: the run has ended, or the step that started the sub-agent has ended."""

    code = "RunClosedError"


KnownLines = tuple[Sequence[RunEvent], int]
"""All lines read from a journal, and the offset of their end."""

ChildPlace = tuple[int, int, ProfileName | None]
"""A child: the step that started it, its index, and a sub-agent's profile in force."""


class EventLog:
    """Writer of the events of one attempt, at a step or at a sub-agent's turn. Create it with
    `open_event_log` or `open_child_log`.

    Attributes:
        attempt: unique id of the attempt.
        first_token_at: time of the attempt's first token.
    """

    def __init__(
        self,
        log: RunLog,
        run_id: str,
        step: int,
        offset: int,
        *,
        child: int | None = None,
        profile: ProfileName | None = None,
        turn: int | None = None,
    ) -> None:
        """Create a writer that appends after the byte `offset` of the journal.

        Args:
            child, profile: the child that writes; None for an attempt at the step itself.
            turn: the child's turn, if it takes several at once.
        """
        self._log = log
        self._run_id = run_id
        self._step = step
        self._offset = offset
        self._child = child
        self._profile = profile
        self._turn = turn
        self.attempt = uuid.uuid4().hex[:8]
        self.staged: list[RunEvent] = []
        self._stopped: ConflictError | None = None
        self.first_token_at: datetime | None = None
        self.written: list[RunEvent] = []

    def stage(self, *events: RunEvent) -> None:
        """Queue events for the next append, which writes them before its own events."""
        self.staged += [self._with_step(event) for event in events]
        self._note_tokens(events)

    async def write(self, *events: RunEvent) -> None:
        """Append the staged events and then `events` in one atomic write. Events without a step get this
        attempt's step.

        Raises:
            StaleAttemptError: a later attempt at this step has begun, or the step is complete.
            RunClosedError: the run has ended.
        """
        if self._stopped is not None:
            raise self._stopped
        now = datetime.now(UTC)
        batch: list[RunEvent] = []
        staged, self.staged = self.staged, []
        for event in (*staged, *map(self._with_step, events)):
            is_undated = isinstance(event, TimedEvent) and event.at is None
            batch.append(event.model_copy(update={"at": now}) if is_undated else event)
        if not batch:
            return
        while True:
            try:
                self._offset = await self._log.append(self._run_id, batch, at_offset=self._offset)
            except ConflictError:
                if await self._catch_up(batch):
                    break
            else:
                break
        self.written += batch
        self._note_tokens(batch)

    def _with_step(self, event: RunEvent) -> RunEvent:
        """Return the event with this attempt's step and sub-agent. A step that is already set is kept.

        A withdrawal of another step's events keeps that step's number.
        """
        marks: dict[str, object] = {
            "step": event.step or self._step,
            "child": self._child,
            "profile": self._profile,
        }
        if self._turn is not None and isinstance(event, AttemptLine | ReservedLine | DoneLine):
            marks["turn"] = self._turn
        return event.model_copy(update=marks)

    def _note_tokens(self, events: Sequence[RunEvent]) -> None:
        if self.first_token_at is None and any(isinstance(event, TokenEvent) for event in events):
            self.first_token_at = datetime.now(UTC)

    async def _catch_up(self, batch: Sequence[RunEvent]) -> bool:
        """Read the lines that storage contains after the expected offset. Return whether they begin with this
        batch, which means that it was already written.

        A transport that lost the response repeats the append, which then conflicts with itself. Attempts have
        unique ids, so no other writer can have appended the same lines.
        """
        new_lines = await self._log.read(self._run_id, self._offset)
        self._offset = new_lines.next_offset
        is_ours = list(new_lines.lines[: len(batch)]) == [event.to_line() for event in batch]
        others = events_of(new_lines)[len(batch) if is_ours else 0 :]
        try:
            _require_open(others, self._step, self._child)
            if any(map(self._is_taken_over, others)):
                raise StaleAttemptError("A later attempt at this step has taken over.")
        except ConflictError as stopped:
            self._stopped = stopped
            raise
        return is_ours

    def _is_taken_over(self, other: RunEvent) -> bool:
        """Return whether a line by another writer begins a later attempt at this step, or completes the
        step.
        """
        if (other.step, other.child) != (self._step, self._child):
            return False
        if self._turn is not None and isinstance(other, AttemptLine | DoneLine) and other.turn != self._turn:
            return False
        # The line may be this attempt's own, if the response to its append was lost.
        if isinstance(other, AttemptLine):
            return other.attempt != self.attempt
        return isinstance(other, StepStatus | DoneLine)


async def open_event_log(
    log: RunLog, run_id: str, step: int, then: Sequence[RunEvent] = (), known_lines: KnownLines | None = None
) -> EventLog:
    """Begin an attempt at a step: append a `started` event, or `restarted` if there was an earlier attempt.

    Args:
        then: the attempt's first events, sent with the mark in one append.
        known_lines: the log as last read, possibly outdated; None = read it.

    Raises:
        RunClosedError: the run has ended.
    """
    if known_lines is None:
        log_slice = await log.read(run_id)
        known_lines = events_of(log_slice), log_slice.next_offset
    event_log = staged_event_log(log, run_id, step, then, known_lines)
    await event_log.write()
    return event_log


def staged_event_log(
    log: RunLog, run_id: str, step: int, then: Sequence[RunEvent], known_lines: KnownLines
) -> EventLog:
    """Begin an attempt at a step without writing yet: its start event is sent with the first append.

    Raises:
        RunClosedError: the run has ended.
    """
    events, offset = known_lines
    _require_open(events)
    event_log = EventLog(log, run_id, step, offset)
    is_repeated = any(event.step == step for event in events)
    attempt = event_log.attempt
    state = "restarted" if is_repeated else "started"
    mark = StepStatus.model_validate({"state": state, "attempt": attempt, "at": datetime.now(UTC)})
    event_log.stage(mark, *then)
    return event_log


async def open_child_log(
    log: RunLog, run_id: str, child: ChildPlace, then: Sequence[RunEvent], known_lines: KnownLines
) -> EventLog:
    """Begin an attempt at a sub-agent's turn by appending its start to the run journal.

    Args:
        then: the attempt's first events, sent with the mark in one append.
        known_lines: the journal as already read.

    Raises:
        RunClosedError: the run has ended, or continued without the sub-agent.
        StaleAttemptError: another attempt has begun meanwhile.
    """
    event_log = staged_child_log(log, run_id, child, known_lines)
    await event_log.write(*then)
    return event_log


def staged_child_log(
    log: RunLog, run_id: str, child: ChildPlace, known_lines: KnownLines, turn: int | None = None
) -> EventLog:
    """Begin an attempt at a sub-agent's turn without writing yet: its start is sent with the first append.

    Args:
        turn: the turn, if the child takes several at once.

    Raises:
        RunClosedError: the run has ended, or continued without the child.
    """
    events, offset = known_lines
    step, index, profile = child
    _require_open(events, step, index)
    event_log = EventLog(log, run_id, step, offset, child=index, profile=profile, turn=turn)
    event_log.stage(AttemptLine(attempt=event_log.attempt))
    return event_log


def is_closed(log_slice: LogSlice) -> bool:
    """Return whether the log contains the run's last event. `log_slice` must extend to the end of the log."""
    return any(map(is_terminal, events_of(log_slice)))


def _require_open(events: Sequence[RunEvent], step: int = 0, child: int | None = None) -> None:
    """Raise `RunClosedError` if the events show that the run, or this sub-agent, has ended.

    A later step's mark ends a sub-agent of `step`.
    """
    if any(map(is_terminal, events)):
        raise RunClosedError("The run has ended.")
    if child is not None and any(isinstance(event, StepStatus) and event.step > step for event in events):
        raise RunClosedError("The run has continued without this sub-agent.")
