"""Writing events of one step into the run log, so that a step that runs twice is seen once.

Every event carries its step. A second attempt of a step that already sent something first appends a
`restarted` status: readers drop the tokens and citations of that step that they have. An attempt that finds
such a mark of a later attempt behind its own stops: two attempts never mix. A sub-agent's events carry its
index and profile beside the step that set it to work, and begin no attempt at that step. Nothing follows a
run's last event.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.platform.errors import ConflictError
from shared.runs.events import TERMINAL_EVENTS, EventName, LogSlice, RunEvent
from shared.runs.run_log import RunLog


class StaleAttemptError(ConflictError):
    """A later attempt of the same step has taken over; this one must stop without writing."""

    code = "StaleAttemptError"


class RunClosedError(ConflictError):
    """The run has its last event already; nobody may add to it."""

    code = "RunClosedError"


class Journal:
    """The events of one attempt at a step, or of a sub-agent: from `open_journal`, or `join_journal`."""

    def __init__(
        self, log: RunLog, run_id: str, step: int, offset: int, mark: dict[str, Any] | None = None
    ) -> None:
        """`mark`: what every event carries beside; None = this is an attempt at the step itself."""
        self._log = log
        self._run_id = run_id
        self._step = step
        self._offset = offset
        self._mark = mark
        self.first_token_at: datetime | None = None  # when readers first had text of this attempt
        self.met_others = False  # whether anybody wrote behind what was read when this attempt began

    async def write(self, name: EventName, **data: Any) -> None:
        """Append one event.

        Raises:
            StaleAttemptError: a later attempt of this step has begun.
            RunClosedError: the run has ended.
        """
        await self.write_all([(name, data)])

    async def write_all(self, events: Sequence[tuple[EventName, dict[str, Any]]]) -> None:
        """Append several events at once: readers see all or none."""
        shared = {"step": self._step, **(self._mark or {})}
        batch = [RunEvent(name=name, data={**shared, **data}) for name, data in events]
        await self._append(batch)
        if self.first_token_at is None and any(name == "TOKEN" for name, _ in events):
            self.first_token_at = datetime.now(UTC)

    async def _append(self, batch: Sequence[RunEvent]) -> None:
        while True:
            try:
                self._offset = await self._log.append(self._run_id, batch, at_offset=self._offset)
            except ConflictError:
                if await self._catch_up(batch):
                    return
            else:
                return

    async def _catch_up(self, batch: Sequence[RunEvent]) -> bool:
        """Read what stands where we meant to write; True if that is our own batch.

        A transport that lost the answer to an append sends it again, and the second one conflicts with the
        first. Attempts carry an id, so nobody else can have written the same.
        """
        added = await self._log.read(self._run_id, self._offset)
        self._offset = added.next_offset
        events = [RunEvent.from_kept(line) for line in added.lines]
        is_ours = events[: len(batch)] == list(batch)
        others = events[len(batch) :] if is_ours else events
        self.met_others = self.met_others or bool(others)
        if self._mark is None and any(_begins_attempt(event, self._step) for event in others):
            raise StaleAttemptError("A later attempt of this step has taken over.")
        _refuse_closed(others)
        return is_ours


async def open_journal(
    log: RunLog,
    run_id: str,
    step: int,
    written: LogSlice | None = None,
    then: Sequence[tuple[EventName, dict[str, Any]]] = (),
) -> Journal:
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
    journal = Journal(log, run_id, step, written.next_offset)
    seen = any(event.data.get("step") == step for event in events)
    begun = {"state": "restarted" if seen else "started", "attempt": uuid.uuid4().hex[:8]}
    await journal.write_all([("STATUS", begun), *then])
    return journal


async def join_journal(log: RunLog, run_id: str, step: int, child: int, profile: str) -> Journal:
    """Go on in the log of a run for a sub-agent that one of its steps set to work.

    Raises:
        RunClosedError: the run has ended.
    """
    written = await log.read(run_id)
    _refuse_closed(events_of(written))
    return Journal(log, run_id, step, written.next_offset, {"child": child, "profile": profile})


def is_closed(written: LogSlice) -> bool:
    """Whether a log, read whole, has its run's last event."""
    return any(event.name in TERMINAL_EVENTS for event in events_of(written))


def events_of(written: LogSlice) -> list[RunEvent]:
    """The events of a part of a log."""
    return [RunEvent.from_kept(line) for line in written.lines]


def _refuse_closed(events: Sequence[RunEvent]) -> None:
    if any(event.name in TERMINAL_EVENTS for event in events):
        raise RunClosedError("The run has ended.")


def _begins_attempt(event: RunEvent, step: int) -> bool:
    return (
        event.name == "STATUS"
        and event.data.get("step") == step
        and event.data.get("state") in ("started", "restarted")
    )
