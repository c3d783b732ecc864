"""Exception types, classified by who can resolve the error, and their HTTP representation. Pure."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from shared.platform.models import Model

# Reason codes for files that cannot be ingested. Clients translate them.
FileFailure = Literal[
    "damaged",
    "empty",
    "encrypted",
    "encrypted_or_old",
    "image_too_large",
    "internal",
    "needs_memory",
    "no_cues",
    "service_failed",
    "too_large",
    "unsupported",
    "wrong_suffix",
]


class GroundworkError(Exception):
    """Base class of all expected errors.

    Attributes:
        code: stable name, also used as the `type` of a failed tool result (docs/events-and-errors.md).
        status: HTTP status of the response.
        retryable: whether repeating the same call may succeed.
        hints: advice on how to resolve the error, one sentence each.
        failure: reason code if the error prevents a file from being ingested.
    """

    failure: FileFailure = "internal"
    code = "ToolError"
    status = 500
    retryable = False

    def __init__(
        self,
        detail: str,
        *hints: str,
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Create an error. Users see `detail` and `hints`, so they must not contain secrets, document text or
        internals.

        `headers` are added to the HTTP response.
        """
        super().__init__(detail)
        self.detail = detail
        self.hints = hints
        self.retry_after_s = retry_after_s
        self.headers = dict(headers or {})


class CallerError(GroundworkError):
    """The request is malformed; `detail` names the first invalid field."""

    code = "InvalidRequestError"
    status = 400


class InvalidQueryError(CallerError):
    """A search query or filter is malformed."""

    code = "InvalidQueryError"


class PageImportError(CallerError):
    """A web page cannot be imported."""

    code = "PageImportError"


class NotAuthenticatedError(CallerError):
    """The request has no valid credentials."""

    code = "NotAuthenticatedError"
    status = 401


class AccessDeniedError(CallerError):
    """The user lacks a required role or may not use the app."""

    code = "AccessDeniedError"
    status = 403


class NotFoundError(CallerError):
    """The resource doesn't exist or isn't visible to this user."""

    code = "NotFoundError"
    status = 404


class DocumentNotFoundError(NotFoundError):
    """The document doesn't exist or isn't visible to this user."""

    code = "DocumentNotFoundError"


class MethodNotAllowedError(CallerError):
    """The path doesn't support this method; the `Allow` header lists the supported ones."""

    code = "MethodNotAllowedError"
    status = 405


class ConflictError(CallerError):
    """The resource has changed or already exists."""

    code = "ConflictError"
    status = 409


class DocumentExistsError(ConflictError):
    """The caller already has a document of this name; `Location` leads to it."""

    code = "DocumentExistsError"


class RunCancelledError(ConflictError):
    """The owner cancelled the run."""

    code = "RunCancelledError"


class SlowBodyError(CallerError):
    """The request body did not arrive in time."""

    code = "SlowBodyError"
    status = 408
    retryable = True


class PreconditionFailedError(CallerError):
    """The resource has changed since it was read (`If-Match`)."""

    code = "PreconditionFailedError"
    status = 412


class PayloadTooLargeError(CallerError):
    """A body, file or field exceeds its size limit (`X-Max-Body-Bytes`)."""

    failure = "too_large"
    code = "PayloadTooLargeError"
    status = 413


class IdempotencyKeyReusedError(CallerError):
    """The idempotency key was already used for a different request."""

    code = "IdempotencyKeyReusedError"
    status = 422


class TooManyRequestsError(CallerError):
    """The user has sent too many requests."""

    code = "TooManyRequestsError"
    status = 429
    retryable = True


class DailyLimitError(TooManyRequestsError):
    """The user has reached a daily limit."""

    code = "DailyLimitError"
    retryable = False


class TooManyRunsError(TooManyRequestsError):
    """The user has too many active questions."""

    code = "TooManyRunsError"


class RangeError(CallerError):
    """The requested byte range starts after the end of the file."""

    code = "RangeError"
    status = 416


class BadDocumentError(CallerError):
    """The file cannot be ingested; `failure` is the reason code and the hints give advice."""

    code = "BadDocumentError"
    status = 422

    def __init__(self, detail: str, *hints: str, failure: FileFailure = "damaged") -> None:
        super().__init__(detail, *hints)
        self.failure = failure


class ModelFixableError(GroundworkError):
    """The model's output is invalid."""

    code = "ModelOutputError"
    status = 502
    retryable = True


class OutputCutError(ModelFixableError):
    """The model output was truncated at its token limit. Handled internally, never sent to a caller."""

    code = "OutputCutError"


class DependencyError(GroundworkError):
    """A service failed or could not be reached."""

    failure = "service_failed"
    code = "NetworkError"
    status = 503
    retryable = True


class AuthenticationError(DependencyError):
    """A service rejected the app's credentials; the hint names the setting or role to check."""

    code = "AuthenticationError"
    status = 502
    retryable = False


class IndexNotFoundError(DependencyError):
    """The search index does not exist."""

    code = "IndexNotFoundError"
    status = 502
    retryable = False


class RateLimitError(DependencyError):
    """A service throttled the request."""

    code = "RateLimitError"


class CallTimeoutError(DependencyError):
    """A service did not respond in time."""

    code = "TimeoutError"
    status = 504


class ConfigurationError(GroundworkError, ValueError):
    """A setting is missing or invalid."""

    code = "ConfigurationError"


class BudgetExceededError(GroundworkError):
    """A run exhausted its time, token or cost budget, and answers with the evidence collected so far."""

    code = "BudgetExceededError"
    status = 200


class DefectError(GroundworkError):
    """The app has a defect; see the log for details.

    It is caught only in the outermost handler of a function.
    """

    code = "InternalError"


def status_of(code: str | None) -> int:
    """Return the HTTP status for an error code. Unknown codes map to 500."""
    return _STATUSES.get(code or "", DefectError.status)


def _statuses(kind: type[GroundworkError]) -> dict[str, int]:
    statuses = {kind.code: kind.status}
    for narrower in kind.__subclasses__():
        statuses |= _statuses(narrower)
    return statuses


_STATUSES = _statuses(GroundworkError)


class Problem(Model):
    """Error response (RFC 9457) extended by hints. docs/events-and-errors.md lists all codes."""

    type: str = Field(
        description="The error code, prefixed with `urn:groundwork:error:`.",
        examples=["urn:groundwork:error:NotFoundError"],
    )
    title: str = Field(description="The error code.", examples=["NotFoundError"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(
        description="Explanation for users. It contains no secrets, document text or internals."
    )
    hints: tuple[str, ...] = Field(description="Advice on how to resolve the error, one sentence each.")
    failure: FileFailure | None = Field(
        default=None,
        exclude_if=lambda failure: failure is None,
        description="Reason code if a file was rejected, otherwise absent.",
    )
