"""Calls of services within limits: what errors say of each service, and retries up to a deadline.

Retries are ours and not the SDKs': those sleep as long as a busy service asks for, past any limit. A model
that asks for a pause is left alone by all calls of the process, because each try counts against its quota.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

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

if TYPE_CHECKING:
    from azure.core.exceptions import AzureError, HttpResponseError


DEFAULT_PAUSE_S = 1.0  # when the service names none


class RateGate:
    """Shut for as long as the service asked for. Any event loop may use it."""

    def __init__(self) -> None:
        self._shut_until = 0.0

    async def passed(self, at_most_s: float) -> None:
        """Return once the gate is open.

        Raises:
            RateLimitError: it stays shut for longer than `at_most_s`; nothing was asked of the service.
        """
        # Again after the wait: another call may have been refused meanwhile.
        while (wait_s := self._shut_until - time.monotonic()) > 0:
            if wait_s >= at_most_s:
                raise RateLimitError(
                    "The model asked for a pause.", f"Try again in {wait_s:.0f} s.", retry_after_s=wait_s
                )
            at_most_s -= wait_s
            await asyncio.sleep(wait_s)

    def shut(self, refused: RateLimitError) -> None:
        """Nobody passes for as long as the refusal says; a longer pause stays."""
        pause_s = refused.retry_after_s or DEFAULT_PAUSE_S
        self._shut_until = max(self._shut_until, time.monotonic() + pause_s)


@dataclass(frozen=True)
class Dependency:
    """What an error says of a service; no values of settings, only their names.

    Attributes:
        name: with its article: "the search service".
        endpoint_setting: the variable that says where it is.
        access_hint: one sentence for the operator who can grant access.
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
    "Check WEB_SEARCH_KEY and WEB_SEARCH_KEY_HEADER; SearXNG itself refuses until `json` is among its "
    "search.formats.",
)

DATABASE = Dependency(
    "the database",
    "DATABASES",
    "Check user and password in DATABASES; without a password the app's identity needs a role in the "
    "database. The user needs SELECT on the views.",
)

WEB_PAGES = Dependency(
    "the web",
    "the way out of the network",
    "The app reads public pages over the ports 80 and 443; a firewall on the way may refuse that.",
)

GRAPH = Dependency(
    "the directory (Microsoft Graph)",
    "GRAPH_ENDPOINT",
    "The app's identity needs the application permissions GroupMember.Read.All and User.Read.All of "
    "Microsoft Graph; or set GROUP_OVERAGE to what shall happen without.",
)

BOT_KEYS = Dependency(
    "the Bot Service's list of keys",
    "the way out of the network to login.botframework.com",
    "It is open to everybody; a proxy on the way may not be.",
)

BOT_FILES = Dependency(
    "the channel's file store",
    "BOT_ATTACHMENT_HOSTS",
    "Files of Teams come with their own permission, which ends after some minutes: drop the file again.",
)

BOT_CHANNEL = Dependency(
    "the chat channel",
    "the way out of the network to the Bot Service",
    "The bot may have been removed there; its identity (BOT_APP_ID) must be the Azure Bot's own.",
)

DOCLING = Dependency("the docling service", "DOCLING_ENDPOINT", "Check DOCLING_API_KEY.")


def model_endpoint(settings: Settings) -> Dependency:
    """The model endpoint in use: OPENAI_BASE_URL if it is set, else the Azure OpenAI resource."""
    if settings.models.in_azure:
        return Dependency(
            "the Azure OpenAI resource",
            "AZURE_OPENAI_ENDPOINT",
            "Check AZURE_OPENAI_API_KEY; without a key the app's identity needs the role "
            "Cognitive Services OpenAI User.",
        )
    return Dependency("the model endpoint", "OPENAI_BASE_URL", "Check OPENAI_API_KEY.")


StatusTranslation = Callable[[int, str], GroundworkError | None]
"""A caller's own reading of a status and the service's (redacted) message; None = the usual one."""

_MAX_MESSAGE_CHARS = 300  # enough for a service's sentence; no room for its whole answer


@contextmanager
def azure_errors(dependency: Dependency, read_status: StatusTranslation | None = None) -> Iterator[None]:
    """Translate what azure-core raises in the block."""
    from azure.core.exceptions import AzureError

    try:
        yield
    except AzureError as error:
        raise from_azure(error, dependency, read_status) from None
    except TimeoutError:
        raise timed_out(dependency) from None


def from_azure(
    error: "AzureError", dependency: Dependency, read_status: StatusTranslation | None = None
) -> GroundworkError:
    """Our error for one of azure-core's."""
    from azure.core.exceptions import (
        ClientAuthenticationError,
        HttpResponseError,
        ServiceResponseTimeoutError,
    )

    # A connection that could not be made in time is none: its request was never sent.
    if isinstance(error, ServiceResponseTimeoutError):
        return timed_out(dependency)
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        own = read_status(error.status_code, service_message(error)) if read_status else None
        return own or _from_status(error, dependency)
    if isinstance(error, ClientAuthenticationError):  # no token could be had: no response either
        return refused(dependency)
    return unreachable(dependency)


def service_message(error: "HttpResponseError") -> str:
    """What the service said, in one short line that is safe to show."""
    said = error.error.message if error.error and error.error.message else error.message
    line = " ".join(redact(said or "").split())
    return line[:_MAX_MESSAGE_CHARS]


def refused(dependency: Dependency) -> AuthenticationError:
    """The service does not take our credentials."""
    return AuthenticationError(f"Access to {dependency.name} was refused.", dependency.access_hint)


def timed_out(dependency: Dependency) -> CallTimeoutError:
    """Nothing came back within the limit."""
    return CallTimeoutError(
        f"No answer from {dependency.name} within the time limit.",
        "Try again; if it continues, check its load.",
    )


def unreachable(dependency: Dependency) -> DependencyError:
    """The network failed, or something other than the service answered."""
    return DependencyError(
        f"No connection to {dependency.name}.",
        f"Check {dependency.endpoint_setting}, and that the service runs and can be reached from here.",
    )


def rate_limited(dependency: Dependency, headers: Mapping[str, str]) -> RateLimitError:
    """The service asks us to slow down."""
    wait_s = retry_after_s(headers)
    advice = f"Try again in {wait_s:.0f} s." if wait_s else "Try again in a moment."
    return RateLimitError(f"Too many requests for {dependency.name}.", advice, retry_after_s=wait_s)


def failed(dependency: Dependency, status: int) -> DependencyError:
    """The service answered with a status that says it is its fault, or that nobody expected."""
    return DependencyError(
        f"HTTP {status} from {dependency.name}.", "Try again; the problem may be temporary."
    )


def error_of_status(dependency: Dependency, status: int, headers: Mapping[str, str]) -> DependencyError:
    """The error for a status that has no special meaning for the service."""
    if status in (401, 403):
        return refused(dependency)
    return rate_limited(dependency, headers) if status == 429 else failed(dependency, status)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that the service asks us to wait; None when it does not say, or says a date."""
    for name, scale in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    return None


def _from_status(error: "HttpResponseError", dependency: Dependency) -> GroundworkError:
    status = error.status_code or 0
    headers: Mapping[str, str] = getattr(error.response, "headers", {})
    if status == 404:
        return NotFoundError(f"Not found in {dependency.name}.")
    if status in (409, 412):
        return ConflictError(f"It changed, or exists already, in {dependency.name}.")
    if status == 413:
        return PayloadTooLargeError(f"Too large for {dependency.name}.")
    # A storage account sheds load with this code and status 503; nothing was done. Of a row that could not be
    # added the tables' SDK does not read the code.
    code = getattr(error, "error_code", None) or headers.get("x-ms-error-code")
    if code == "ServerBusy":
        return rate_limited(dependency, headers)
    return error_of_status(dependency, status, headers) if status >= 400 else unreachable(dependency)


Item = TypeVar("Item")


@dataclass(frozen=True)
class StorageLimits:
    """How long the storage account may take.

    Attributes:
        call_s: for a call that moves little, all its tries together; some milliseconds are usual.
        piece_s: for one piece of a stream: 4 MiB at 1.1 Mbit/s.
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
    """The client, for a block that must end within the limit. `operation` names it in a trace."""
    client = await connection.opened()
    with call_span(dependency, operation), azure_errors(dependency, read_status):
        async with asyncio.timeout(timeout_s):
            yield client


def call_span(dependency: Dependency, operation: str) -> AbstractContextManager[Span]:
    """The span of one call of a service. Without addresses: they hold names of files and people."""
    name, attributes = _described(dependency, operation)
    return span(name, attributes, "client")


def _described(dependency: Dependency, operation: str) -> tuple[str, Attributes]:
    attributes = {"azure_operation": operation, "groundwork.dependency": dependency.name}
    return f"{dependency.name.removeprefix('the ')} {operation}", attributes


async def each_within(
    timeout_s: float,
    items: AsyncIterator[Item],
    dependency: Dependency,
    read_status: StatusTranslation | None = None,
) -> AsyncIterator[Item]:
    """`items`, each within the limit."""
    while True:
        # Around each item and not around the loop: a timeout that spans a yield would strike the reader.
        with azure_errors(dependency, read_status):
            async with asyncio.timeout(timeout_s):
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
        yield item


async def listed(items: AsyncIterator[Item], dependency: Dependency, operation: str) -> AsyncIterator[Item]:
    """`items` as one span, from the first that is asked for until the last, or until nobody asks any more."""
    name, attributes = _described(dependency, operation)
    begun = begin(name, attributes, "client")
    count = 0
    try:
        async for item in items:
            count += 1
            yield item
    except GroundworkError as failed:
        fail_by(begun, failed)
        raise
    finally:
        set_attributes(begun, {"result_count": count})
        end(begun)


class PieceClock:
    """Limits each piece of an upload. The SDK sends all of them in one call, so the limit moves along."""

    def __init__(self, limit: asyncio.Timeout, piece_s: float) -> None:
        self._limit = limit
        self._piece_s = piece_s

    async def sent(self, *_: object) -> None:
        """A piece is stored (the SDK's progress hook)."""
        self._restart()

    async def waiting_for(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """`parts`; while the sender makes one, the clock stands still: that is not the storage's time."""
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
    """The first success of `attempt`, which must end by `deadline` and raise our own errors.

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


TRIES = 3  # with waits of 0.5 and 1 s: they fit well into 30 s


async def ask(
    connection: Connection[SdkClient],
    call: Callable[[SdkClient], Awaitable[Answer]],
    read_status: StatusTranslation,
    *,
    timeout_s: float,
) -> Answer:
    """One call of the service, all its tries within the limit.

    Also what writes may be tried again after a lost answer: writes are by key, and give the same rows twice.
    """
    client = await connection.opened()
    deadline = Deadline(timeout_s)

    async def attempt() -> Answer:
        with azure_errors(SEARCH, read_status):
            async with asyncio.timeout_at(deadline.at):
                return await call(client)

    return await call_within(deadline, TRIES - 1, attempt)
