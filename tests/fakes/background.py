"""A helper that waits for background tasks, which no response waits for."""

import asyncio

from shared.platform import concurrency


async def background_done() -> None:
    """Wait until the background tasks of this event loop have ended."""
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(task for task in concurrency._background if task.get_loop() is loop))
