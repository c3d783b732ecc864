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
    """The caller can mend it (4xx)."""

    code = "InvalidRequestError"
    status = 400


class InvalidQueryError(CallerError):
    """The search or its filter is not well formed."""

    code = "InvalidQueryError"


class PageImportError(CallerError):
    """A page of the web cannot become a document; it says why."""

    code = "PageImportError"


class NotAuthenticatedError(CallerError):
    """No identity, or one that cannot be believed."""

    code = "NotAuthenticatedError"
    status = 401


class AccessDeniedError(CallerError):
    """A role or a user context is missing, or the caller is not let in."""

    code = "AccessDeniedError"
    status = 403


class NotFoundError(CallerError):
    """Nothing there, or nothing that this user may see: the two are indistinguishable."""

    code = "NotFoundError"
    status = 404


class DocumentNotFoundError(NotFoundError):
    """No such document for this user."""

    code = "DocumentNotFoundError"


class MethodNotAllowedError(CallerError):
    """The address is known, but not with this method; `Allow` names those that it takes."""

    code = "MethodNotAllowedError"
    status = 405


class ConflictError(CallerError):
    """The thing changed, or exists, since the caller looked."""

    code = "ConflictError"
    status = 409


class RunCancelledError(ConflictError):
    """The run was cancelled by its owner."""

    code = "RunCancelledError"


class SlowBodyError(CallerError):
    """The body did not arrive in time."""

    code = "SlowBodyError"
    status = 408
    retryable = True


class PreconditionFailedError(CallerError):
    """The thing changed since the caller read it, and the caller said that this matters (If-Match)."""

    code = "PreconditionFailedError"
    status = 412


class PayloadTooLargeError(CallerError):
    """A body, file or field exceeds its limit."""

    failure = "too_large"
    code = "PayloadTooLargeError"
    status = 413


class IdempotencyKeyReusedError(CallerError):
    """The key was used for another request."""

    code = "IdempotencyKeyReusedError"
    status = 422


class TooManyRequestsError(CallerError):
    """This person makes too many calls; `retry_after_s` says how long to wait."""

    code = "TooManyRequestsError"
    status = 429
    retryable = True


class DailyLimitError(TooManyRequestsError):
    """This person has used up what they may use in a day; `retry_after_s` says when the next one begins."""

    code = "DailyLimitError"
    retryable = False


class TooManyRunsError(TooManyRequestsError):
    """Too much is being worked on for this person at the same time."""

    code = "TooManyRunsError"


class RangeError(CallerError):
    """The bytes that are asked for lie behind the end of the file."""

    code = "RangeError"
    status = 416


class BadDocumentError(CallerError):
    """A file that cannot be ingested. `detail` is the reason, `hints` what its owner can do."""

    code = "BadDocumentError"
    status = 422

    def __init__(self, detail: str, *hints: str, failure: FileFailure = "damaged") -> None:
        super().__init__(detail, *hints)
        self.failure = failure


class ModelFixableError(GroundworkError):
    """The model's output does not fit; it may do better when it knows why."""

    code = "ModelOutputError"
    status = 502
    retryable = True


class OutputCutError(ModelFixableError):
    """The model stopped at its length limit; what it wrote before is there."""

    code = "OutputCutError"


class DependencyError(GroundworkError):
    """A service that we call failed or is out of reach."""

    failure = "service_failed"
    code = "NetworkError"
    status = 503
    retryable = True


class AuthenticationError(DependencyError):
    """A service refused our credentials; names the variable or the role to check."""

    code = "AuthenticationError"
    status = 502
    retryable = False


class IndexNotFoundError(DependencyError):
    """The search index does not exist; names it."""

    code = "IndexNotFoundError"
    status = 502
    retryable = False


class RateLimitError(DependencyError):
    """A service asks us to slow down; `retry_after_s` when it said for how long."""

    code = "RateLimitError"


class CallTimeoutError(DependencyError):
    """A call did not finish within its limit."""

    code = "TimeoutError"
    status = 504


class ConfigurationError(GroundworkError, ValueError):
    """A setting is missing or wrong: which one, what it is for, an example."""

    code = "ConfigurationError"


class BudgetExceededError(GroundworkError):
    """A run used up its time, tokens or money. It ends with what it has: no failure."""

    code = "BudgetExceededError"
    status = 200


class DefectError(GroundworkError):
    """A bug of ours. Never caught below the trigger."""

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
