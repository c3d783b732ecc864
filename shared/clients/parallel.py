"""Several calls at once, a bounded number at a time; the first failure ends them all."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

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
