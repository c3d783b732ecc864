"""Trying again within a limit."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from shared.platform import calls
from shared.platform.calls import Deadline, call_within
from shared.platform.errors import (
    AuthenticationError,
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    InvalidQueryError,
    RateLimitError,
)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_WAIT_S", 0.001)


def failing(*errors: GroundworkError) -> tuple[Callable[[], Awaitable[str]], list[None]]:
    """A call that fails with these errors and then succeeds; and its tries."""
    tries: list[None] = []
    left = list(errors)

    async def call() -> str:
        tries.append(None)
        if left:
            raise left.pop(0)
        return "done"

    return call, tries


async def test_passing_failures_are_tried_again() -> None:
    call, tries = failing(RateLimitError("slow down"), DependencyError("down"))
    assert await call_within(Deadline(5), 2, call) == "done"
    assert len(tries) == 3


async def test_after_the_last_try_the_last_failure_is_raised() -> None:
    call, tries = failing(RateLimitError("first"), DependencyError("second"), DependencyError("third"))
    with pytest.raises(DependencyError, match="second"):
        await call_within(Deadline(5), 1, call)
    assert len(tries) == 2


@pytest.mark.parametrize(
    "error", [AuthenticationError("no"), CallTimeoutError("late"), InvalidQueryError("what?")]
)
async def test_what_cannot_pass_is_not_tried_again(error: GroundworkError) -> None:
    call, tries = failing(error)
    with pytest.raises(type(error)):
        await call_within(Deadline(5), 3, call)
    assert len(tries) == 1


async def test_a_wait_that_would_end_past_the_deadline_is_not_begun() -> None:
    call, tries = failing(RateLimitError("come back tomorrow", retry_after_s=86_400))
    async with asyncio.timeout(5):
        with pytest.raises(RateLimitError):
            await call_within(Deadline(2), 3, call)
    assert len(tries) == 1


async def test_only_the_named_kind_is_tried_again() -> None:
    call, tries = failing(DependencyError("who knows what happened"))
    with pytest.raises(DependencyError):
        await call_within(Deadline(5), 3, call, retry_on=RateLimitError)
    assert len(tries) == 1
