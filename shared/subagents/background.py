"""Bookkeeping that an answer does not wait for: it goes on beside what comes next, and never raises."""

import asyncio
from collections.abc import Coroutine
from typing import Any

_MOMENT_S = 0.25  # reading and writing a row takes some milliseconds
_at_work: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly


def begin_beside(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start it."""
    task = asyncio.create_task(work)
    _at_work.add(task)
    task.add_done_callback(_at_work.discard)
    return task


async def for_a_moment(*tasks: asyncio.Task[None]) -> None:
    """Wait until they are done, which is usual, but not for what is slow."""
    await asyncio.wait(tasks, timeout=_MOMENT_S)
