"""Service calls with time limits, error translation and retries.

SDK retries are disabled because they would sleep for `Retry-After` beyond any time limit. When a model
endpoint throttles a call, all calls of the process wait, because even rejected attempts count against the
quota.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceResponseTimeoutError,
)
from opentelemetry.trace import Span

from shared.platform.connections import Connection, SdkClient
from shared.platform.errors import (
    AuthenticationError,
    CallTimeoutError,
    ConflictError,
    DependencyError,
    GroundworkError,
    NotFoundError,
    PayloadTooLargeError,
    RateLimitError,
)
from shared.platform.settings import Settings
from shared.platform.telemetry import redact
from shared.platform.tracing import Attributes, begin, end, fail_by, set_attributes, span

DEFAULT_PAUSE_S = 1.0  # pause after a throttled call whose response has no Retry-After header


class RateGate:
    """Gate that pauses calls to a service while the service is rate limiting the app. It may be used from any
    event loop.
    """

    def __init__(self) -> None:
        self._paused_until = 0.0

    async def wait(self, at_most_s: float) -> None:
        """Wait until calls are allowed again.

        Raises:
            RateLimitError: the pause lasts longer than `at_most_s`. No request was sent.
        """
        # Check the pause again after sleeping, because another call may have extended it.
        while (wait_s := self._paused_until - time.monotonic()) > 0:
            if wait_s >= at_most_s:
                raise RateLimitError(
                    "The model is rate limiting requests.",
                    f"Try again in {wait_s:.0f} s.",
                    retry_after_s=wait_s,
                )
            at_most_s -= wait_s
            await asyncio.sleep(wait_s)

    def pause(self, refused: RateLimitError) -> None:
        """Pause all calls for the delay that the service requested in `refused`. A longer pause already in
        effect is kept.
        """
        pause_s = refused.retry_after_s or DEFAULT_PAUSE_S
        self._paused_until = max(self._paused_until, time.monotonic() + pause_s)


@dataclass(frozen=True)
class Dependency:
    """A service that the app depends on, as described in error messages. It contains names of settings but
    never their values.

    Attributes:
        name: the name with its article, such as "the search service".
        endpoint_setting: the environment variable that contains the service's address.
        access_hint: advice for operators if access is denied.
    """

    name: str
    endpoint_setting: str
    access_hint: str


SEARCH = Dependency(
    "the search service",
    "AZURE_SEARCH_ENDPOINT",
    "Check AZURE_SEARCH_API_KEY; without a key the app's identity needs the roles "
    "Search Index Data Contributor and Search Service Contributor.",
)

BLOBS = Dependency(
    "the blob storage",
    "DocumentsStorage or DocumentsStorage__blobServiceUri",
    "Check DocumentsStorage; without a connection string the app's identity needs the role "
    "Storage Blob Data Contributor.",
)

BLOB_SIGNING = Dependency(
    "the blob storage's signing key",
    "DocumentsStorage or DocumentsStorage__blobServiceUri",
    "Check DocumentsStorage; without a key the app's identity needs the role Storage Blob Delegator.",
)

QUEUES = Dependency(
    "the queue storage",
    "DocumentsStorage or DocumentsStorage__queueServiceUri",
    "Check DocumentsStorage; without a connection string the app's identity needs the role "
    "Storage Queue Data Contributor.",
)

TABLES = Dependency(
    "the table storage",
    "DocumentsStorage or DocumentsStorage__tableServiceUri, or TABLES_ENDPOINT",
    "Check DocumentsStorage, or TABLES_KEY; without a key the app's identity needs the role "
    "Storage Table Data Contributor, or Cosmos DB Built-in Data Contributor.",
)

DOCUMENT_INTELLIGENCE = Dependency(
    "the Document Intelligence resource",
    "DOCUMENT_INTELLIGENCE_ENDPOINT",
    "Check DOCUMENT_INTELLIGENCE_KEY; without a key the app's identity needs the role "
    "Cognitive Services User.",
)

WEB_SEARCH = Dependency(
    "the web search",
    "WEB_SEARCH_URL",
    "Check WEB_SEARCH_KEY and WEB_SEARCH_KEY_HEADER. For SearXNG, add `json` to search.formats in its "
    "settings.",
)

DATABASE = Dependency(
    "the database",
    "DATABASES",
    "Check the user and password in DATABASES. Without a password, the app's identity needs a role in the "
    "database. The user needs SELECT permission on the views.",
)

WEB_PAGES = Dependency(
    "the web",
    "outbound network access",
    "The app needs outbound access to ports 80 and 443. A firewall may be blocking it.",
)

GRAPH = Dependency(
    "the directory (Microsoft Graph)",
    "GRAPH_ENDPOINT",
    "The app's identity needs the application permissions GroupMember.Read.All and User.Read.All of "
    "Microsoft Graph. Alternatively, set GROUP_OVERAGE to a value that does not require Microsoft Graph.",
)

BOT_KEYS = Dependency(
    "the Bot Service signing keys",
    "outbound network access to login.botframework.com",
    "The keys are public. A proxy may be blocking the request.",
)

BOT_FILES = Dependency(
    "the channel's file store",
    "BOT_ATTACHMENT_HOSTS",
    "Download links for files sent in Teams expire after a few minutes. Send the file again.",
)

BOT_CHANNEL = Dependency(
    "the chat channel",
    "outbound network access to the Bot Service",
    "The bot may have been removed from the chat. Otherwise, check that BOT_APP_ID is the app id of the "
    "Azure Bot resource.",
)

DOCLING = Dependency("the docling service", "DOCLING_ENDPOINT", "Check DOCLING_API_KEY.")


def model_endpoint(settings: Settings) -> Dependency:
    """Return the description of the model endpoint: OPENAI_BASE_URL if set, otherwise Azure OpenAI."""
    if settings.models.in_azure:
        return Dependency(
            "the Azure OpenAI resource",
            "AZURE_OPENAI_ENDPOINT",
            "Check AZURE_OPENAI_API_KEY; without a key the app's identity needs the role "
            "Cognitive Services OpenAI User.",
        )
    return Dependency("the model endpoint", "OPENAI_BASE_URL", "Check OPENAI_API_KEY.")


StatusTranslation = Callable[[int, str], GroundworkError | None]
"""Maps an HTTP status and the redacted message to an error. None selects the default error for the status."""

# Maximum length of a quoted service message. It is enough for one sentence but not for a response body.
_MAX_MESSAGE_CHARS = 300


@contextmanager
def azure_errors(dependency: Dependency, read_status: StatusTranslation | None = None) -> Iterator[None]:
    """Translate azure-core exceptions and timeouts raised in the block into the app's errors."""
    try:
        yield
    except AzureError as error:
        raise from_azure(error, dependency, read_status) from None
    except TimeoutError:
        raise timed_out(dependency) from None


def from_azure(
    error: AzureError, dependency: Dependency, read_status: StatusTranslation | None = None
) -> GroundworkError:
    """Return the app's error for an azure-core exception. `read_status` may override the default for a
    status.
    """
    # A timeout while connecting raises a different exception. It counts as unreachable, because no request
    # was sent.
    if isinstance(error, ServiceResponseTimeoutError):
        return timed_out(dependency)
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        own = read_status(error.status_code, service_message(error)) if read_status else None
        return own or _from_status(error, dependency)
    # The SDK could not obtain a token, so there is no response.
    if isinstance(error, ClientAuthenticationError):
        return refused(dependency)
    return unreachable(dependency)


def service_message(error: HttpResponseError) -> str:
    """Return the service's error message as one line, redacted and truncated."""
    message = error.error.message if error.error and error.error.message else error.message
    line = " ".join(redact(message or "").split())
    return line[:_MAX_MESSAGE_CHARS]


def refused(dependency: Dependency) -> AuthenticationError:
    """Return the error for rejected credentials or missing permissions."""
    return AuthenticationError(f"Access to {dependency.name} was refused.", dependency.access_hint)


def timed_out(dependency: Dependency) -> CallTimeoutError:
    """Return the error for a call that exceeded its timeout."""
    return CallTimeoutError(
        f"No response from {dependency.name} within the time limit.",
        "Try again. If the problem persists, check the load on the service.",
    )


def unreachable(dependency: Dependency) -> DependencyError:
    """Return the error for a network failure or an unintelligible response."""
    return DependencyError(
        f"No connection to {dependency.name}.",
        f"Check {dependency.endpoint_setting}, and that the service is running and reachable.",
    )


def rate_limited(dependency: Dependency, headers: Mapping[str, str]) -> RateLimitError:
    """Return the error for a throttled call."""
    wait_s = retry_after_s(headers)
    advice = f"Try again in {wait_s:.0f} s." if wait_s else "Try again in a moment."
    return RateLimitError(f"Too many requests for {dependency.name}.", advice, retry_after_s=wait_s)


def failed(dependency: Dependency, status: int) -> DependencyError:
    """Return the error for a server error or an unexpected status."""
    return DependencyError(
        f"HTTP {status} from {dependency.name}.", "Try again; the problem may be temporary."
    )


def error_of_status(dependency: Dependency, status: int, headers: Mapping[str, str]) -> DependencyError:
    """Return the default error for an HTTP status that reports a failure."""
    if status in (401, 403):
        return refused(dependency)
    return rate_limited(dependency, headers) if status == 429 else failed(dependency, status)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the delay in seconds from a response's `Retry-After` header. Return None if the header is
    missing or contains a date.
    """
    for name, scale in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    return None


def _from_status(error: HttpResponseError, dependency: Dependency) -> GroundworkError:
    status = error.status_code or 0
    headers: Mapping[str, str] = getattr(error.response, "headers", {})
    if status == 404:
        return NotFoundError(f"The item does not exist in {dependency.name}.")
    if status in (409, 412):
        return ConflictError(f"The item changed or already exists in {dependency.name}.")
    if status == 413:
        return PayloadTooLargeError(f"The request is too large for {dependency.name}.")
    # An overloaded storage account responds with 503 and this code before doing any work. The tables SDK
    # doesn't parse the code when an insert fails, so the header is read too.
    code = getattr(error, "error_code", None) or headers.get("x-ms-error-code")
    if code == "ServerBusy":
        return rate_limited(dependency, headers)
    return error_of_status(dependency, status, headers) if status >= 400 else unreachable(dependency)


Item = TypeVar("Item")


@dataclass(frozen=True)
class StorageLimits:
    """Timeouts for calls to the storage account.

    Attributes:
        call_s: limit for a small call, including retries; such calls usually take a few milliseconds.
        piece_s: limit for one piece of a stream; enough for 4 MiB at 1.1 Mbit/s.
    """

    call_s: float = 15.0
    piece_s: float = 30.0


STORAGE_LIMITS = StorageLimits()


@asynccontextmanager
async def calling(
    connection: Connection[SdkClient],
    dependency: Dependency,
    read_status: StatusTranslation | None = None,
    *,
    timeout_s: float,
    operation: str = "call",
) -> AsyncIterator[SdkClient]:
    """Yield the SDK client to a block that must finish within `timeout_s`. The block runs in a tracing span
    named after `operation`.
    """
    client = await connection.opened()
    with call_span(dependency, operation), azure_errors(dependency, read_status):
        async with asyncio.timeout(timeout_s):
            yield client


def call_span(dependency: Dependency, operation: str) -> AbstractContextManager[Span]:
    """Return a tracing span for one service call. It omits URLs, which may contain file and user names."""
    name, attributes = _span_fields(dependency, operation)
    return span(name, attributes, "client")


def _span_fields(dependency: Dependency, operation: str) -> tuple[str, Attributes]:
    attributes = {"azure_operation": operation, "groundwork.dependency": dependency.name}
    return f"{dependency.name.removeprefix('the ')} {operation}", attributes


async def each_within(
    timeout_s: float,
    items: AsyncIterator[Item],
    dependency: Dependency,
    read_status: StatusTranslation | None = None,
) -> AsyncIterator[Item]:
    """Yield `items`, allowing `timeout_s` for each."""
    while True:
        # Limit each item instead of the loop: a timeout that spans a yield would cancel the consumer.
        with azure_errors(dependency, read_status):
            async with asyncio.timeout(timeout_s):
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
        yield item


async def listed(items: AsyncIterator[Item], dependency: Dependency, operation: str) -> AsyncIterator[Item]:
    """Yield `items` within one tracing span, which ends when the consumer stops or the items are
    exhausted.
    """
    name, attributes = _span_fields(dependency, operation)
    span = begin(name, attributes, "client")
    count = 0
    try:
        async for item in items:
            count += 1
            yield item
    except GroundworkError as failed:
        fail_by(span, failed)
        raise
    finally:
        set_attributes(span, {"result_count": count})
        end(span)


class PieceClock:
    """A timeout that restarts whenever a piece has been uploaded, because a single SDK call uploads all
    pieces.
    """

    def __init__(self, limit: asyncio.Timeout, piece_s: float) -> None:
        self._limit = limit
        self._piece_s = piece_s

    async def on_progress(self, *_: object) -> None:
        """Restart the timeout. The SDK calls this progress hook after each piece."""
        self._restart()

    async def waiting_for(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield `parts`, suspending the timeout while waiting for the source."""
        while True:
            self._limit.reschedule(None)
            try:
                part = await anext(parts)
            except StopAsyncIteration:
                return
            finally:
                self._restart()
            yield part

    def _restart(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time() + self._piece_s)


Answer = TypeVar("Answer")
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 8.0


class Deadline:
    """Deadline on the running event loop's clock."""

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
    """Call `attempt` until it succeeds and return its result. `attempt` must respect `deadline` itself and
    raise only the app's errors.

    Retryable errors of type `retry_on`, except timeouts, are retried up to `max_retries` times. The delay is
    the service's `Retry-After`, or an exponential backoff from 0.5 s with jitter. If the delay would exceed
    the deadline, the error is raised at once. Calls with the same `gate` share the service's rate limit
    pauses.
    """
    for tries in range(max_retries + 1):
        try:
            return await _call_through_gate(attempt, gate, deadline)
        except retry_on as failed:
            last = tries == max_retries
            if last or not failed.retryable or isinstance(failed, CallTimeoutError):
                raise
            wait_s = failed.retry_after_s or _wait_s(tries)
            if wait_s >= deadline.remaining_s:
                raise
        await asyncio.sleep(wait_s)
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _call_through_gate(
    attempt: Callable[[], Awaitable[Answer]], gate: RateGate | None, deadline: Deadline
) -> Answer:
    if gate is None:
        return await attempt()
    await gate.wait(deadline.remaining_s)
    try:
        return await attempt()
    except RateLimitError as refused:
        gate.pause(refused)
        raise


def _wait_s(tries: int) -> float:
    return min(MAX_WAIT_S, FIRST_WAIT_S * 2.0**tries) * random.uniform(0.75, 1.25)


TRIES = 3  # The waits between attempts are about 0.5 and 1 s, so three attempts fit into a limit of 30 s.


async def ask(
    connection: Connection[SdkClient],
    call: Callable[[SdkClient], Awaitable[Answer]],
    read_status: StatusTranslation,
    *,
    timeout_s: float,
) -> Answer:
    """Call the search service and return the result. `timeout_s` covers all attempts.

    Writes are retried even if a response was lost: rows have keys, so writing one again has no effect.
    """
    client = await connection.opened()
    deadline = Deadline(timeout_s)

    async def attempt() -> Answer:
        with azure_errors(SEARCH, read_status):
            async with asyncio.timeout_at(deadline.at):
                return await call(client)

    return await call_within(deadline, TRIES - 1, attempt)
