"""Errors classified by who can fix them, and the problem details that callers see. Pure."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from shared.platform.models import Model

# Reasons why a file cannot be ingested, for clients that translate them.
FileFailure = Literal[
    "damaged",
    "empty",
    "encrypted",
    "encrypted_or_old",
    "image_too_large",
    "internal",
    "no_cues",
    "service_failed",
    "too_large",
    "unsupported",
    "wrong_suffix",
]


class GroundworkError(Exception):
    """Base of all expected errors.

    Attributes:
        code: stable name, used as the `type` of a failed tool result (docs/events-and-errors.md).
        status: HTTP status when the error reaches a caller.
        retryable: whether the same call may succeed later without change.
        hints: what the reader can do, one sentence each.
        failure: reason code if the error makes a file impossible to ingest.
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
        """Create an error. `detail` and `hints` are shown to users: no secrets, document text or internals.

        `headers` are added to the HTTP response.
        """
        super().__init__(detail)
        self.detail = detail
        self.hints = hints
        self.retry_after_s = retry_after_s
        self.headers = dict(headers or {})


class CallerError(GroundworkError):
    """The request is malformed; the detail names the first wrong field."""

    code = "InvalidRequestError"
    status = 400


class InvalidQueryError(CallerError):
    """A search or filter is malformed."""

    code = "InvalidQueryError"


class PageImportError(CallerError):
    """A web page cannot be imported."""

    code = "PageImportError"


class NotAuthenticatedError(CallerError):
    """The request has no valid identity."""

    code = "NotAuthenticatedError"
    status = 401


class AccessDeniedError(CallerError):
    """The caller lacks a role or may not use the app."""

    code = "AccessDeniedError"
    status = 403


class NotFoundError(CallerError):
    """The resource doesn't exist, or this user can't see it."""

    code = "NotFoundError"
    status = 404


class DocumentNotFoundError(NotFoundError):
    """The document doesn't exist, or this user can't see it."""

    code = "DocumentNotFoundError"


class MethodNotAllowedError(CallerError):
    """The path doesn't support this method; `Allow` lists the supported ones."""

    code = "MethodNotAllowedError"
    status = 405


class ConflictError(CallerError):
    """The resource changed or already exists."""

    code = "ConflictError"
    status = 409


class DocumentExistsError(ConflictError):
    """The caller already has a document of this name; `Location` leads to it."""

    code = "DocumentExistsError"


class RunCancelledError(ConflictError):
    """The owner cancelled the run."""

    code = "RunCancelledError"


class SlowBodyError(CallerError):
    """The body did not arrive in time."""

    code = "SlowBodyError"
    status = 408
    retryable = True


class PreconditionFailedError(CallerError):
    """The resource changed since it was read (`If-Match`)."""

    code = "PreconditionFailedError"
    status = 412


class PayloadTooLargeError(CallerError):
    """A body, file or field exceeds its limit (`X-Max-Body-Bytes`)."""

    failure = "too_large"
    code = "PayloadTooLargeError"
    status = 413


class IdempotencyKeyReusedError(CallerError):
    """The idempotency key was used for another request."""

    code = "IdempotencyKeyReusedError"
    status = 422


class TooManyRequestsError(CallerError):
    """The user sent too many requests."""

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
    """The requested range starts after the end of the file."""

    code = "RangeError"
    status = 416


class BadDocumentError(CallerError):
    """The file cannot be ingested; `failure` is the reason code, and the hints say what to do."""

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
    """Internal: the model reached its output limit."""

    code = "OutputCutError"


class DependencyError(GroundworkError):
    """A service failed or is unreachable."""

    failure = "service_failed"
    code = "NetworkError"
    status = 503
    retryable = True


class AuthenticationError(DependencyError):
    """A service rejected the app's credentials; the hint names the setting or role."""

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
    """A call did not finish in time."""

    code = "TimeoutError"
    status = 504


class ConfigurationError(GroundworkError, ValueError):
    """A setting is missing or wrong."""

    code = "ConfigurationError"


class BudgetExceededError(GroundworkError):
    """A run has exhausted its time, tokens or money; it answers with the evidence it has."""

    code = "BudgetExceededError"
    status = 200


class DefectError(GroundworkError):
    """A defect in the app; the log has the details.

    Never caught below the trigger.
    """

    code = "InternalError"


def status_of(code: str | None) -> int:
    """Return the HTTP status of an error code; 500 if the code is unknown."""
    return _STATUSES.get(code or "", DefectError.status)


def _statuses(kind: type[GroundworkError]) -> dict[str, int]:
    statuses = {kind.code: kind.status}
    for narrower in kind.__subclasses__():
        statuses |= _statuses(narrower)
    return statuses


_STATUSES = _statuses(GroundworkError)


class Problem(Model):
    """Problem details (RFC 9457) with hints. All codes: docs/events-and-errors.md."""

    type: str = Field(
        description="`urn:groundwork:error:` and the code.", examples=["urn:groundwork:error:NotFoundError"]
    )
    title: str = Field(description="The code.", examples=["NotFoundError"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(description="Explanation for users, without secrets, document text or internals.")
    hints: tuple[str, ...] = Field(description="What the reader can do, one sentence each.")
    failure: FileFailure | None = Field(
        default=None,
        exclude_if=lambda failure: failure is None,
        description="Reason code of a rejected file; absent otherwise.",
    )
