"""Errors by who can fix them, and the problem details that callers see. Pure."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from shared.platform.models import Model

# Why a file cannot be ingested, for clients that say it in another language than English.
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
        code: stable name, the `type` of a failed tool result (contracts.md, section 2).
        status: HTTP status when the error reaches a caller.
        retryable: whether the same call may succeed later without change.
        hints: what the reader can do, one sentence each.
        failure: what it means for a file that was to be ingested.
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
        """`detail` and `hints` are shown to people: no secrets, no document text, no internals.

        `headers`: further headers of an HTTP response.
        """
        super().__init__(detail)
        self.detail = detail
        self.hints = hints
        self.retry_after_s = retry_after_s
        self.headers = dict(headers or {})


class CallerError(GroundworkError):
    """The request is malformed; names the first wrong field."""

    code = "InvalidRequestError"
    status = 400


class InvalidQueryError(CallerError):
    """A search or filter is malformed."""

    code = "InvalidQueryError"


class PageImportError(CallerError):
    """A web page cannot be imported."""

    code = "PageImportError"


class NotAuthenticatedError(CallerError):
    """No valid identity."""

    code = "NotAuthenticatedError"
    status = 401


class AccessDeniedError(CallerError):
    """The caller lacks a role, or is not admitted."""

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
    """The path doesn't support this method; `Allow` lists those it does."""

    code = "MethodNotAllowedError"
    status = 405


class ConflictError(CallerError):
    """The resource changed, or exists already."""

    code = "ConflictError"
    status = 409


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
    """Too many calls by this person."""

    code = "TooManyRequestsError"
    status = 429
    retryable = True


class DailyLimitError(TooManyRequestsError):
    """This person has used up a daily limit."""

    code = "DailyLimitError"
    retryable = False


class TooManyRunsError(TooManyRequestsError):
    """This person has too many running questions."""

    code = "TooManyRunsError"


class RangeError(CallerError):
    """The requested range starts after the end of the file."""

    code = "RangeError"
    status = 416


class BadDocumentError(CallerError):
    """The file cannot be ingested; says why, as a code in `failure`, and what to do."""

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
    """Internal: the model reached its length limit."""

    code = "OutputCutError"


class DependencyError(GroundworkError):
    """A service failed or cannot be reached."""

    failure = "service_failed"
    code = "NetworkError"
    status = 503
    retryable = True


class AuthenticationError(DependencyError):
    """A service refused the app's credentials; names the setting or role."""

    code = "AuthenticationError"
    status = 502
    retryable = False


class IndexNotFoundError(DependencyError):
    """The search index does not exist."""

    code = "IndexNotFoundError"
    status = 502
    retryable = False


class RateLimitError(DependencyError):
    """A service asks to slow down."""

    code = "RateLimitError"


class CallTimeoutError(DependencyError):
    """A call did not finish in time."""

    code = "TimeoutError"
    status = 504


class ConfigurationError(GroundworkError, ValueError):
    """A setting is missing or wrong."""

    code = "ConfigurationError"


class BudgetExceededError(GroundworkError):
    """A run used up its time, tokens or money, and ends with what it has."""

    code = "BudgetExceededError"
    status = 200


class DefectError(GroundworkError):
    """A defect in the app; the log has the details.

    Never caught below the trigger.
    """

    code = "InternalError"


def status_of(code: str | None) -> int:
    """The HTTP status that belongs to an error's code; 500 for one that is not known."""
    return _STATUSES.get(code or "", DefectError.status)


def _statuses(kind: type[GroundworkError]) -> dict[str, int]:
    known = {kind.code: kind.status}
    for narrower in kind.__subclasses__():
        known |= _statuses(narrower)
    return known


_STATUSES = _statuses(GroundworkError)


class Problem(Model):
    """Problem details (RFC 9457) with hints. All codes: docs/events-and-errors.md."""

    type: str = Field(
        description="`urn:groundwork:error:` and the code.", examples=["urn:groundwork:error:NotFoundError"]
    )
    title: str = Field(description="The code.", examples=["NotFoundError"])
    status: int = Field(description="The status of the answer.", examples=[404])
    detail: str = Field(description="What is wrong, for people: no secrets, no document text, no internals.")
    hints: tuple[str, ...] = Field(description="What the reader can do, a sentence each.")
    failure: FileFailure | None = Field(
        default=None,
        exclude_if=lambda failure: failure is None,
        description="What is wrong with a file that was sent; absent from other errors.",
    )
