"""Back-pressure shared by calls: one is refused, all wait."""

import asyncio
import time

import pytest

from shared.platform.calls import Deadline, RateGate, call_within
from shared.platform.errors import RateLimitError

PAUSE_S = 0.2


class BusyService:
    """Refuses until its pause is over; counts what it refused and answered."""

    def __init__(self) -> None:
        self.refused = 0
        self.answered = 0
        self._free_at = 0.0

    async def call(self) -> str:
        if not self.refused:
            self._free_at = time.monotonic() + PAUSE_S
        if time.monotonic() < self._free_at:
            self.refused += 1
            raise RateLimitError("Too many requests.", retry_after_s=PAUSE_S)
        self.answered += 1
        return "done"


async def test_calls_that_come_during_a_pause_are_not_sent() -> None:
    service, gate = BusyService(), RateGate()

    async def one(number: int) -> str:
        await asyncio.sleep(number * 0.01)
        return await call_within(Deadline(10), 2, service.call, gate=gate)

    assert await asyncio.gather(*(one(number) for number in range(8))) == ["done"] * 8
    assert (service.refused, service.answered) == (1, 8)


async def test_without_a_gate_each_finds_out_for_itself() -> None:
    service = BusyService()
    calls = (call_within(Deadline(10), 2, service.call) for _ in range(8))
    await asyncio.gather(*calls)
    assert service.refused >= 8


async def test_a_pause_longer_than_ones_time_is_told_at_once() -> None:
    gate = RateGate()
    gate.shut(RateLimitError("Tomorrow.", retry_after_s=86_400))
    gate.shut(RateLimitError("Sooner.", retry_after_s=0.001))
    service = BusyService()
    with pytest.raises(RateLimitError, match="asked for a pause") as told:
        await call_within(Deadline(1), 3, service.call, gate=gate)
    assert (told.value.retry_after_s or 0) > 80_000
    assert service.refused == 0
