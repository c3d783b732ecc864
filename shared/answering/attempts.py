"""Performs a step by attempts that may run concurrently. The first attempt to complete determines the result.

A host may perform a step twice, even at once. An attempt that finds the completion returns its result. An
overtaken attempt writes nothing more, and waits for the result of the attempt that took over.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from shared.platform.errors import GroundworkError, NotFoundError
from shared.runs.event_log import RunClosedError, StaleAttemptError
from shared.runs.journal import Journal

POLL_S = 0.2

Result = TypeVar("Result")


class Attempt(ABC, Generic[Result]):
    """Base of all attempts at a step of a run, of a sub-agent or of a summary's child. Callers only use
    `result`.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    @property
    def patience_s(self) -> float:
        """Seconds to wait for the result of a newer attempt, counted from now. The default is longer than any
        model call.
        """
        return 120.0

    async def read(self) -> None:
        """Load the journal, and everything else that `stored_result` and `perform` need."""
        await self.journal.read()

    @abstractmethod
    def stored_result(self) -> Result | None:
        """Return the stored result of the step, or None if no attempt has completed it."""

    @abstractmethod
    async def perform(self) -> Result:
        """Execute the step, store its completion, and return the result."""

    @abstractmethod
    async def result_after_end(self) -> Result:
        """Return the result to report if the run has already ended."""

    @abstractmethod
    async def result_after_error(self, error: GroundworkError) -> Result:
        """Return the result to report if the step failed with an expected error."""

    async def result(self) -> Result:
        """Return the stored result of the step, or perform the step if there is none. Expected errors become
        results; only defects are raised.
        """
        try:
            await self.read()
            if (stored := self.stored_result()) is not None:
                return stored
            if self.journal.is_closed:
                return await self.result_after_end()
            return await self.perform()
        except RunClosedError:
            return await self.result_after_end()
        except StaleAttemptError as stale:
            return await self._result_of_newer(stale)
        except GroundworkError as failed:
            return await self.result_after_error(failed)

    async def _result_of_newer(self, stale: StaleAttemptError) -> Result:
        """Poll the journal until a newer attempt completes the step or the run ends, and return that result.
        After `patience_s`, return the result for the error `stale`.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + self.patience_s
        while clock() < until:
            await asyncio.sleep(POLL_S)
            try:
                await self.journal.read()
            except NotFoundError:  # The run was deleted.
                return await self.result_after_end()
            except GroundworkError:
                continue
            if (stored := self.stored_result()) is not None:
                return stored
            if self.journal.is_closed:
                return await self.result_after_end()
        return await self.result_after_error(stale)
