"""The only place where the exceptions of the SDKs become errors of ours.

Messages name the service, and the setting or role to check. They are raised `from None`: the SDK's own text
can hold addresses with signatures, which a printed traceback would show.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shared.clients.dependency import Dependency
from shared.errors import (
    AuthenticationError,
    CallTimeoutError,
    ConflictError,
    DependencyError,
    GroundworkError,
    NotFoundError,
    PayloadTooLargeError,
    RateLimitError,
)
from shared.telemetry import redact

if TYPE_CHECKING:
    from azure.core.exceptions import AzureError, HttpResponseError

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
        "Try again; if it goes on, check its load.",
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
    return DependencyError(f"HTTP {status} from {dependency.name}.", "Try again; it may be passing.")


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
    if status in (401, 403):
        return refused(dependency)
    if status == 404:
        return NotFoundError(f"Not found in {dependency.name}.")
    if status in (409, 412):
        return ConflictError(f"It changed, or exists already, in {dependency.name}.")
    if status == 413:
        return PayloadTooLargeError(f"Too large for {dependency.name}.")
    # A storage account sheds load with this code and status 503; nothing was done. Of a row that could not be
    # added the tables' SDK does not read the code.
    code = getattr(error, "error_code", None) or headers.get("x-ms-error-code")
    if status == 429 or code == "ServerBusy":
        return rate_limited(dependency, headers)
    return failed(dependency, status) if status >= 400 else unreachable(dependency)
