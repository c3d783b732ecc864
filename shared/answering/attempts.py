"""Execution of a step by several attempts, of which the first to complete determines the result.

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
    """An attempt at a step of a run or sub-agent, as executed by `perform_once`."""

    @property
    def journal(self) -> Journal:
        """The run's journal."""

    @property
    def patience_s(self) -> float:
        """Seconds to wait, from now, for the result of a newer attempt."""

    async def read(self) -> None:
        """Load the journal of the run."""

    def completed(self) -> ResultT_co | None:
        """Return the stored result of the step, or None if no attempt has completed it."""

    async def perform(self) -> ResultT_co:
        """Execute the step, store its completion, and return the result."""

    async def stopped(self) -> ResultT_co:
        """Return the result to report when the run has already ended."""

    async def failed(self, error: GroundworkError) -> ResultT_co:
        """Return the result to report after an expected error."""


async def perform_once(attempt: Attempt[Result]) -> Result:
    """Return the stored result of a step, executing the step if there is none. Expected errors become
    results; only defects are raised.
    """
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
    """Poll the journal until another attempt completes the step or the run ends. Fail with `stale` after
    `patience_s`.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + attempt.patience_s
    while clock() < until:
        await asyncio.sleep(POLL_S)
        try:
            await attempt.journal.read()
        except NotFoundError:  # The run was deleted.
            return await attempt.stopped()
        except GroundworkError:
            continue
        if (result := attempt.completed()) is not None:
            return result
        if attempt.journal.is_closed:
            return await attempt.stopped()
    return await attempt.failed(stale)
