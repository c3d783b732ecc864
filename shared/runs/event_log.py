"""Writing the lines of one step into the journal, so that a step that runs twice is seen once.

Every line carries its step. A second attempt at a step first appends a `restarted` status: readers drop the
tokens and citations of that step that they have. An attempt that finds the mark of a later attempt, or the
step's completion, behind its own lines stops for good: two attempts never mix, and nothing of a step follows
its completion. A sub-agent's lines carry its index and profile besides the step that started it. Its attempts
are marked by internal lines, and the mark of a later step of the run closes it. Nothing follows a run's last
event.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from shared.platform.errors import ConflictError
from shared.runs.events import (
    AttemptLine,
    DoneLine,
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
    """Internal: a later attempt took over."""

    code = "StaleAttemptError"


class RunClosedError(ConflictError):
    """Internal: the run has its last event."""

    code = "RunClosedError"


KnownLines = tuple[Sequence[RunEvent], int]
"""All lines of a journal that were read, and the offset where they end."""

ChildPlace = tuple[int, int, ProfileName]
"""A sub-agent: the step that started it, its index, and the profile in force."""


class EventLog:
    """The lines of one attempt at a step or a sub-agent's turn, from `open_event_log` or `open_child_log`.

    Attributes:
        attempt: tells the attempt from every other.
        first_token_at: when readers first had text of this attempt.
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
    ) -> None:
        """Write from `offset` on.

        Args:
            child, profile: the sub-agent that writes; None if this is an attempt at the step itself.
        """
        self._log = log
        self._run_id = run_id
        self._step = step
        self._offset = offset
        self._child = child
        self._profile = profile
        self.attempt = uuid.uuid4().hex[:8]
        self.staged: list[RunEvent] = []
        self._stopped: ConflictError | None = None
        self.first_token_at: datetime | None = None
        self.written: list[RunEvent] = []

    def stage(self, *events: RunEvent) -> None:
        """Have events written at the beginning of the next append."""
        self.staged += [self._marked(event) for event in events]
        self._note_tokens(events)

    async def write(self, *events: RunEvent) -> None:
        """Append events, staged ones first: all or none. An event without a step gets this one.

        Raises:
            StaleAttemptError: a later attempt at this step has begun, or the step is complete.
            RunClosedError: the run has ended.
        """
        if self._stopped is not None:
            raise self._stopped
        now = datetime.now(UTC)
        batch: list[RunEvent] = []
        staged, self.staged = self.staged, []
        for event in (*staged, *map(self._marked, events)):
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

    def _marked(self, event: RunEvent) -> RunEvent:
        """Return the event with its step. It may name another step, of which it withdraws what was sent."""
        marks = {"step": event.step or self._step, "child": self._child, "profile": self._profile}
        return event.model_copy(update=marks)

    def _note_tokens(self, events: Sequence[RunEvent]) -> None:
        if self.first_token_at is None and any(isinstance(event, TokenEvent) for event in events):
            self.first_token_at = datetime.now(UTC)

    async def _catch_up(self, batch: Sequence[RunEvent]) -> bool:
        """Read what stands where we meant to write; True if that is our own batch.

        A transport that lost the answer to an append sends it again, and the second one conflicts with the
        first. Attempts carry an id, so nobody else can have written the same.
        """
        added = await self._log.read(self._run_id, self._offset)
        self._offset = added.next_offset
        is_ours = list(added.lines[: len(batch)]) == [event.to_line() for event in batch]
        others = events_of(added)[len(batch) if is_ours else 0 :]
        try:
            _refuse_closed(others, self._step, self._child)
            if any(map(self._is_taken_over, others)):
                raise StaleAttemptError("A later attempt at this step has taken over.")
        except ConflictError as stopped:
            self._stopped = stopped
            raise
        return is_ours

    def _is_taken_over(self, other: RunEvent) -> bool:
        """Whether a line of another writer begins a later attempt at this step, or completes it."""
        if (other.step, other.child) != (self._step, self._child):
            return False
        if isinstance(other, AttemptLine):  # our own, if the reply to its append was lost
            return other.attempt != self.attempt
        return isinstance(other, StepStatus | DoneLine)


async def open_event_log(
    log: RunLog, run_id: str, step: int, then: Sequence[RunEvent] = (), known: KnownLines | None = None
) -> EventLog:
    """Begin an attempt at a step: mark it in the log, as `started` or as `restarted`.

    Args:
        then: the attempt's first events, sent with the mark in one append.
        known: the log as it was read before; what came since is found when writing. None = read it.

    Raises:
        RunClosedError: the run has ended.
    """
    if known is None:
        written = await log.read(run_id)
        known = events_of(written), written.next_offset
    event_log = staged_event_log(log, run_id, step, then, known)
    await event_log.write()
    return event_log


def staged_event_log(
    log: RunLog, run_id: str, step: int, then: Sequence[RunEvent], known: KnownLines
) -> EventLog:
    """Begin an attempt at a step whose mark is sent with its first append.

    Raises:
        RunClosedError: the run has ended.
    """
    events, offset = known
    _refuse_closed(events)
    event_log = EventLog(log, run_id, step, offset)
    is_repeated = any(event.step == step for event in events)
    attempt = event_log.attempt
    state = "restarted" if is_repeated else "started"
    mark = StepStatus.model_validate({"state": state, "attempt": attempt, "at": datetime.now(UTC)})
    event_log.stage(mark, *then)
    return event_log


async def open_child_log(
    log: RunLog, run_id: str, child: ChildPlace, then: Sequence[RunEvent], known: KnownLines
) -> EventLog:
    """Begin an attempt at a sub-agent's turn: mark it in the journal of its run.

    Args:
        then: the attempt's first events, sent with the mark in one append.
        known: the journal as it was read before.

    Raises:
        RunClosedError: the run has ended, or continued without the sub-agent.
        StaleAttemptError: another attempt has begun meanwhile.
    """
    events, offset = known
    step, index, profile = child
    _refuse_closed(events, step, index)
    event_log = EventLog(log, run_id, step, offset, child=index, profile=profile)
    await event_log.write(AttemptLine(attempt=event_log.attempt), *then)
    return event_log


def is_closed(written: LogSlice) -> bool:
    """Whether a log, read whole, has its run's last event."""
    return any(map(is_terminal, events_of(written)))


def _refuse_closed(events: Sequence[RunEvent], step: int = 0, child: int | None = None) -> None:
    """Raise if nothing may follow these lines. The mark of a later step closes a sub-agent of `step`."""
    if any(map(is_terminal, events)):
        raise RunClosedError("The run has ended.")
    if child is not None and any(isinstance(event, StepStatus) and event.step > step for event in events):
        raise RunClosedError("The run has continued without this sub-agent.")
