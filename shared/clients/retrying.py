"""One call of a model endpoint, tried again within its limits: the timeout covers all tries and all waits."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.errors import CallTimeoutError, DependencyError
from shared.models.prompts import CallLimits

Answer = TypeVar("Answer")

FIRST_WAIT_S = 0.5
MAX_WAIT_S = 8.0


class Deadline:
    """An instant on the event loop's clock."""

    def __init__(self, timeout_s: float) -> None:
        self.at = asyncio.get_running_loop().time() + timeout_s

    @property
    def remaining_s(self) -> float:
        return self.at - asyncio.get_running_loop().time()


async def call_within(
    limits: CallLimits, deadline: Deadline, attempt: Callable[[], Awaitable[Answer]]
) -> Answer:
    """The first success of `attempt`, which must end by `deadline` and raise errors of `shared.errors`.

    Tried again, at most `limits.max_retries` times: what is retryable, apart from timeouts. The wait is what the
    service asks for, else 0.5 s doubled each time, with jitter. A wait past the deadline is not begun.
    """
    for tries in range(limits.max_retries + 1):
        try:
            return await attempt()
        except DependencyError as failed:
            last = tries == limits.max_retries
            if last or not failed.retryable or isinstance(failed, CallTimeoutError):
                raise
            wait_s = failed.retry_after_s or _wait_s(tries)
            if wait_s >= deadline.remaining_s:
                raise
        await asyncio.sleep(wait_s)
    raise AssertionError("the last try returns or raises")


def _wait_s(tries: int) -> float:
    return min(MAX_WAIT_S, FIRST_WAIT_S * 2**tries) * random.uniform(0.75, 1.25)
