"""Calls made together: all succeed, or the first failure is raised and the others are ended."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TypeVar

from shared.platform.errors import GroundworkError

Item = TypeVar("Item")
Answer = TypeVar("Answer")


async def for_each(
    items: Iterable[Item], call: Callable[[Item], Awaitable[Answer]], *, at_once: int
) -> list[Answer]:
    """The answers in the order of `items`. Raises the first failure itself, not a group of them."""
    gate = asyncio.Semaphore(at_once)

    async def guarded(item: Item) -> Answer:
        async with gate:
            return await call(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(guarded(item)) for item in items]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


Other = TypeVar("Other")


async def together(calls: Iterable[Coroutine[None, None, Answer]]) -> list[Answer]:
    """The answers in the order of `calls`.

    Raises:
        The first failure itself, not a group of them; an expected one rather than a bug that came with it.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        raise _first_of(failures) from None
    return [task.result() for task in tasks]


async def both(
    one: Coroutine[None, None, Answer], other: Coroutine[None, None, Other]
) -> tuple[Answer, Other]:
    """Two calls with answers of different kinds; raises as `together` does."""
    try:
        async with asyncio.TaskGroup() as group:
            first, second = group.create_task(one), group.create_task(other)
    except ExceptionGroup as failures:
        raise _first_of(failures) from None
    return first.result(), second.result()


def _first_of(failures: ExceptionGroup[Exception]) -> Exception:
    expected = (failed for failed in failures.exceptions if isinstance(failed, GroundworkError))
    return next(expected, failures.exceptions[0])
