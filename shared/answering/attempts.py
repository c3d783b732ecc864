"""Attempts that were overtaken: they write nothing more, and return the result of the one that took over."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from shared.platform.errors import GroundworkError, NotFoundError
from shared.runs.journal import Journal

POLL_S = 0.2

Result = TypeVar("Result")


async def result_of_other(
    journal: Journal, completed: Callable[[], Result | None], closed: Result, left_s: Callable[[], float]
) -> Result | None:
    """Wait until another attempt completes the step, and return its result; None if it takes too long.

    Args:
        completed: returns the result of the step from the journal, or None.
        closed: the result if the run ends first, or is erased.
        left_s: returns the seconds for which to wait.
    """
    while left_s() > 0:
        await asyncio.sleep(POLL_S)
        try:
            await journal.read()
        except NotFoundError:
            return closed
        except GroundworkError:
            continue
        if (result := completed()) is not None:
            return result
        if journal.is_closed:
            return closed
    return None
