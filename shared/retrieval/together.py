"""Calls made together: all succeed, or the first failure is raised and the others are ended."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TypeVar

from shared.errors import GroundworkError

Answer = TypeVar("Answer")


async def together(calls: Iterable[Coroutine[None, None, Answer]]) -> list[Answer]:
    """The answers in the order of `calls`.

    Raises:
        The first failure itself, not a group of them; an expected one rather than a bug that came with it.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        expected = (failed for failed in failures.exceptions if isinstance(failed, GroundworkError))
        raise next(expected, failures.exceptions[0]) from None
    return [task.result() for task in tasks]
