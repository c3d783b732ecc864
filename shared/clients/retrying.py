"""One call, tried again within its limits: the deadline covers all tries and all waits."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.clients.rate_gate import RateGate
from shared.errors import CallTimeoutError, DependencyError, RateLimitError

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
    deadline: Deadline,
    max_retries: int,
    attempt: Callable[[], Awaitable[Answer]],
    *,
    retry_on: type[DependencyError] = DependencyError,
    gate: RateGate | None = None,
) -> Answer:
    """The first success of `attempt`, which must end by `deadline` and raise errors of `shared.errors`.

    Tried again is what is retryable and a `retry_on`, apart from timeouts, at most `max_retries` times. The
    wait is what the service asks for, else 0.5 s doubled each time, with jitter; never past the deadline.
    Calls that share a `gate` share what the service asks for, too.
    """
    for tries in range(max_retries + 1):
        try:
            return await _gated(attempt, gate, deadline)
        except retry_on as failed:
            last = tries == max_retries
            if last or not failed.retryable or isinstance(failed, CallTimeoutError):
                raise
            wait_s = failed.retry_after_s or _wait_s(tries)
            if wait_s >= deadline.remaining_s:
                raise
        await asyncio.sleep(wait_s)
    raise AssertionError("the last try returns or raises")


async def _gated(
    attempt: Callable[[], Awaitable[Answer]], gate: RateGate | None, deadline: Deadline
) -> Answer:
    if gate is None:
        return await attempt()
    await gate.passed(deadline.remaining_s)
    try:
        return await attempt()
    except RateLimitError as refused:
        gate.shut(refused)
        raise


def _wait_s(tries: int) -> float:
    return min(MAX_WAIT_S, FIRST_WAIT_S * 2.0**tries) * random.uniform(0.75, 1.25)
