"""Helpers that run coroutines concurrently or in the background."""

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import nullcontext
from typing import Any, TypeVar, overload

from shared.platform.errors import GroundworkError

First = TypeVar("First")
Second = TypeVar("Second")
Third = TypeVar("Third")
Answer = TypeVar("Answer")

_BACKGROUND_WAIT_S = 0.25  # most tasks read and write one row, which takes a few milliseconds
_background: set[asyncio.Task[None]] = set()  # strong references, because the event loop keeps only weak ones


@overload
async def run_together(first: Awaitable[First], second: Awaitable[Second], /) -> tuple[First, Second]: ...


@overload
async def run_together(
    first: Awaitable[First],
    second: Awaitable[Second],
    third: Awaitable[Third],
    /,
) -> tuple[First, Second, Third]: ...


@overload
async def run_together(*calls: Awaitable[Answer], at_once: int | None = None) -> tuple[Answer, ...]: ...


async def run_together(*calls: Awaitable[Any], at_once: int | None = None) -> tuple[Any, ...]:
    """Run awaitables concurrently and return their results in the order of the arguments.

    The first failure cancels the others.

    Args:
        calls: coroutines or futures.
        at_once: maximum number of concurrent calls; None = no limit.

    Raises:
        The first exception itself rather than an exception group. If several are raised together, a
        `GroundworkError` takes precedence.
    """
    gate = nullcontext() if at_once is None else asyncio.Semaphore(at_once)

    async def guarded(call: Awaitable[Any]) -> Any:
        async with gate:
            return await call

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(guarded(call)) for call in calls]
    except BaseExceptionGroup as failures:
        expected = (failed for failed in failures.exceptions if isinstance(failed, GroundworkError))
        raise next(expected, failures.exceptions[0]) from None
    finally:
        for call in calls:
            if asyncio.iscoroutine(call):
                # Close it: a coroutine cancelled before its start would warn that it was never awaited.
                call.close()
    return tuple(task.result() for task in tasks)


def run_in_background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that no response waits for, such as bookkeeping. `work` must not raise."""
    task = asyncio.create_task(work)
    _background.add(task)
    task.add_done_callback(_background.discard)
    return task


async def wait_briefly(*tasks: asyncio.Task[None]) -> None:
    """Wait up to 0.25 s for background tasks to finish. Unfinished tasks keep running."""
    await asyncio.wait(tasks, timeout=_BACKGROUND_WAIT_S)
