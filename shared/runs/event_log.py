"""Writing events of one step into the run log, so that a step that runs twice is seen once.

Every event carries its step. A second attempt of a step that already sent something first appends a
`restarted` status: readers drop the tokens and citations of that step that they have. An attempt that finds
such a mark of a later attempt behind its own stops: two attempts never mix. A sub-agent's events carry its
index and profile besides the step that started it, and begin no attempt at that step. Nothing follows a
run's last event.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from shared.platform.errors import ConflictError
from shared.runs.events import RunEvent, StepStatus, TimedEvent, TokenEvent, events_of, is_terminal
from shared.runs.log_lines import LogSlice
from shared.runs.models import ProfileName
from shared.runs.run_log import RunLog


class StaleAttemptError(ConflictError):
    """Internal: a later attempt took over."""

    code = "StaleAttemptError"


class RunClosedError(ConflictError):
    """Internal: the run has its last event."""

    code = "RunClosedError"


class EventLog:
    """The events of one attempt at a step, or of a sub-agent: from `open_event_log`, or `join_event_log`."""

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
        """`child`, `profile`: the sub-agent that writes; None = this is an attempt at the step itself."""
        self._log = log
        self._run_id = run_id
        self._step = step
        self._offset = offset
        self._child = child
        self._profile = profile
        self.first_token_at: datetime | None = None  # when readers first had text of this attempt
        self.met_others = False  # whether another writer wrote after this attempt began

    async def write(self, *events: RunEvent) -> None:
        """Append events at once: readers see all or none. An event without a step gets this one.

        Raises:
            StaleAttemptError: a later attempt of this step has begun.
            RunClosedError: the run has ended.
        """
        now = datetime.now(UTC)
        batch: list[RunEvent] = []
        for event in events:
            # An event may name another step, of which it withdraws what was sent.
            marks = {"step": event.step or self._step, "child": self._child, "profile": self._profile}
            is_undated = isinstance(event, TimedEvent) and event.at is None
            batch.append(event.model_copy(update={**marks, "at": now} if is_undated else marks))
        while True:
            try:
                self._offset = await self._log.append(self._run_id, batch, at_offset=self._offset)
            except ConflictError:
                if await self._catch_up(batch):
                    break
            else:
                break
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
        self.met_others = self.met_others or bool(others)
        if self._child is None and any(
            isinstance(event, StepStatus) and event.step == self._step for event in others
        ):
            raise StaleAttemptError("A later attempt of this step has taken over.")
        _refuse_closed(others)
        return is_ours


async def open_event_log(
    log: RunLog, run_id: str, step: int, written: LogSlice | None = None, then: Sequence[RunEvent] = ()
) -> EventLog:
    """Begin an attempt at a step: mark it in the log, as `started` or as `restarted`.

    Args:
        written: the whole log as it was read before; what came since is found when writing. None = read it.
        then: the attempt's first events, sent with the mark in one append.

    Raises:
        RunClosedError: the run has ended.
    """
    written = written or await log.read(run_id)
    events = events_of(written)
    _refuse_closed(events)
    event_log = EventLog(log, run_id, step, written.next_offset)
    is_repeated = any(event.step == step for event in events)
    attempt = uuid.uuid4().hex[:8]
    state = "restarted" if is_repeated else "started"
    mark = StepStatus.model_validate({"state": state, "attempt": attempt, "at": datetime.now(UTC)})
    await event_log.write(mark, *then)
    return event_log


async def join_event_log(
    log: RunLog, run_id: str, step: int, child: int, profile: ProfileName
) -> tuple[EventLog, tuple[RunEvent, ...]]:
    """Go on in the log of a run for a sub-agent that one of its steps set to work; what it holds so far.

    Raises:
        RunClosedError: the run has ended.
    """
    written = await log.read(run_id)
    events = events_of(written)
    _refuse_closed(events)
    return EventLog(log, run_id, step, written.next_offset, child=child, profile=profile), tuple(events)


def is_closed(written: LogSlice) -> bool:
    """Whether a log, read whole, has its run's last event."""
    return any(map(is_terminal, events_of(written)))


def _refuse_closed(events: Sequence[RunEvent]) -> None:
    if any(map(is_terminal, events)):
        raise RunClosedError("The run has ended.")
