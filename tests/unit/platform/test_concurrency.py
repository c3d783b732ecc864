"""Tests for running tasks concurrently."""

import asyncio

import pytest

from shared.platform.concurrency import run_together


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

    assert await run_together(*(call(item) for item in range(5)), at_once=2) == (0, 10, 20, 30, 40)
    assert most == 2


async def test_the_first_failure_is_raised_itself_and_cancels_the_others() -> None:
    ended: list[int] = []

    async def call(item: int) -> None:
        if item == 0:
            raise ValueError("first")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(item)

    with pytest.raises(ValueError, match="first"):
        await run_together(*(call(item) for item in range(3)), at_once=2)
    assert 1 in ended
