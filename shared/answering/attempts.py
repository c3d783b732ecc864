"""Attempts at a step: the first completion counts.

A host may perform a step twice, even at once. An attempt that finds the completion returns its result. An
overtaken attempt writes nothing more, and waits for the result of the attempt that took over.
"""

import asyncio
from typing import Protocol, TypeVar

from shared.platform.errors import GroundworkError, NotFoundError
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.journal import Journal

POLL_S = 0.2

Result = TypeVar("Result")
ResultT_co = TypeVar("ResultT_co", covariant=True)


class Attempt(Protocol[ResultT_co]):
    """An attempt at a step of a run or of a sub-agent."""

    @property
    def journal(self) -> Journal:
        """The run's journal."""

    @property
    def patience_s(self) -> float:
        """Seconds for which to wait from now for an attempt that took over."""

    async def read(self) -> None:
        """Read the journal."""

    def completed(self) -> ResultT_co | None:
        """Return the result of the step if the journal contains its completion."""

    async def perform(self) -> ResultT_co:
        """Perform the step, complete it, and return its result."""

    async def stopped(self) -> ResultT_co:
        """Return the result of a step whose run has ended."""

    async def failed(self, error: GroundworkError) -> ResultT_co:
        """Return the result of a step that failed as expected."""


async def perform_once(attempt: Attempt[Result]) -> Result:
    """Perform a step unless it is complete, and return the result that counts. Raise only defects."""
    try:
        await attempt.read()
        if (result := attempt.completed()) is not None:
            return result
        if attempt.journal.is_closed:
            return await attempt.stopped()
        return await attempt.perform()
    except RunClosedError:
        return await attempt.stopped()
    except StaleAttemptError as stale:
        return await _result_of_other(attempt, stale)
    except GroundworkError as failed:
        return await attempt.failed(failed)


async def _result_of_other(attempt: Attempt[Result], stale: StaleAttemptError) -> Result:
    """Wait until another attempt completes the step, the run ends, or patience runs out."""
    clock = asyncio.get_running_loop().time
    until = clock() + attempt.patience_s
    while clock() < until:
        await asyncio.sleep(POLL_S)
        try:
            await attempt.journal.read()
        except NotFoundError:  # the run was erased
            return await attempt.stopped()
        except GroundworkError:
            continue
        if (result := attempt.completed()) is not None:
            return result
        if attempt.journal.is_closed:
            return await attempt.stopped()
    return await attempt.failed(stale)
