"""Errors caused by invalid requests, with the status and code that the protocol defines. Defects use other
exceptions.
"""


class RequestError(Exception):
    """An invalid request, answered with `status` and the body `{"error": {"code", "message"}}`."""

    def __init__(self, message: str, *, status: int = 400, code: str = "InvalidRequestParameter") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code


def not_found(message: str) -> RequestError:
    return RequestError(message, status=404, code="ResourceNotFound")


def conflict(message: str) -> RequestError:
    return RequestError(message, status=409, code="ResourceNameAlreadyInUse")


def precondition_failed() -> RequestError:
    return RequestError(
        "The precondition in the request headers was not met: the resource has a different etag.",
        status=412,
        code="PreconditionFailed",
    )


def too_large(message: str) -> RequestError:
    return RequestError(message, status=413, code="RequestEntityTooLarge")
