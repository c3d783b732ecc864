"""Calls made together: all succeed, or the first failure is raised and the others are ended."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TypeVar

from shared.errors import GroundworkError

Answer = TypeVar("Answer")
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
