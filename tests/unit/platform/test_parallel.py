"""Several calls at once."""

import asyncio

import pytest

from shared.platform.concurrency import for_each


async def test_answers_keep_the_order_of_the_items_and_no_more_run_than_allowed() -> None:
    running = 0
    most = 0

    async def call(item: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001 * (5 - item))
        running -= 1
        return item * 10

    assert await for_each(range(5), call, at_once=2) == [0, 10, 20, 30, 40]
    assert most == 2


async def test_the_first_failure_is_raised_itself_and_ends_the_others() -> None:
    ended: list[int] = []

    async def call(item: int) -> None:
        if item == 0:
            raise ValueError("first")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(item)

    with pytest.raises(ValueError, match="first"):
        await for_each(range(3), call, at_once=3)
    assert sorted(ended) == [1, 2]
