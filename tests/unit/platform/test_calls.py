"""Tests for calls with limits: retries, the Retry-After delay, and errors that suggest a setting to check."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseTimeoutError,
)

from shared.platform import calls
from shared.platform.calls import (
    BLOBS,
    SEARCH,
    Deadline,
    RateGate,
    azure_errors,
    call_within,
    from_azure,
    model_endpoint,
    retry_after_s,
)
from shared.platform.errors import (
    AuthenticationError,
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    InvalidQueryError,
    RateLimitError,
)
from tests.fakes.services import fake_settings

PAUSE_S = 0.2


class BusyService:
    """A service that refuses calls until its pause is over and counts refusals and answers."""

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
    gate.pause(RateLimitError("Tomorrow.", retry_after_s=86_400))
    gate.pause(RateLimitError("Sooner.", retry_after_s=0.001))
    service = BusyService()
    with pytest.raises(RateLimitError, match="rate limiting requests") as error:
        await call_within(Deadline(1), 3, service.call, gate=gate)
    assert (error.value.retry_after_s or 0) > 80_000
    assert service.refused == 0


SIGNED = "https://acc.blob.core.windows.net/c/b?sv=2024&sig=c2VjcmV0"


def test_nothing_of_the_sdks_text_is_printed_with_the_traceback() -> None:
    with pytest.raises(DependencyError) as raised, azure_errors(BLOBS):
        raise ServiceRequestError(f"Cannot connect to {SIGNED}")
    assert raised.value.__suppress_context__
    assert "c2VjcmV0" not in f"{raised.value}{raised.value.hints}"


def test_without_a_token_the_role_to_check_is_named() -> None:
    error = from_azure(ClientAuthenticationError("no token"), SEARCH)
    assert isinstance(error, AuthenticationError)
    assert "Search Index Data Contributor" in error.hints[0]


def test_a_late_answer_is_a_timeout() -> None:
    assert isinstance(from_azure(ServiceResponseTimeoutError("late"), SEARCH), CallTimeoutError)


def test_an_error_without_a_status_is_a_broken_connection() -> None:
    error = from_azure(HttpResponseError("half an answer"), SEARCH)
    assert type(error) is DependencyError
    assert "AZURE_SEARCH_ENDPOINT" in error.hints[0]


def test_our_own_defects_pass_untouched() -> None:
    with pytest.raises(KeyError), azure_errors(SEARCH):
        raise KeyError("a bug")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({}, None),
    ],
)
def test_the_wait_that_a_service_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


def test_the_model_endpoint_is_named_as_it_is_configured() -> None:
    azure = fake_settings(openai_base_url=None, azure_openai_endpoint="https://x.openai.azure.com")
    assert model_endpoint(azure).endpoint_setting == "AZURE_OPENAI_ENDPOINT"
    assert model_endpoint(fake_settings()).endpoint_setting == "OPENAI_BASE_URL"
    both = fake_settings(azure_openai_endpoint="https://x.openai.azure.com")
    assert model_endpoint(both).endpoint_setting == "OPENAI_BASE_URL"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_WAIT_S", 0.001)


def failing(*errors: GroundworkError) -> tuple[Callable[[], Awaitable[str]], list[None]]:
    """Return a call that raises these errors in turn and then succeeds, and a list that grows with each
    try.
    """
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
    async with asyncio.timeout(60):
        with pytest.raises(RateLimitError):
            await call_within(Deadline(2), 3, call)
    assert len(tries) == 1


async def test_only_the_named_kind_is_tried_again() -> None:
    call, tries = failing(DependencyError("who knows what happened"))
    with pytest.raises(DependencyError):
        await call_within(Deadline(5), 3, call, retry_on=RateLimitError)
    assert len(tries) == 1
