"""Errors in OpenAI's shape: {"error": {message, type, param, code}}, each with its HTTP status."""

from pydantic import JsonValue
from starlette.responses import JSONResponse

_TYPES = {401: "invalid_request_error", 404: "invalid_request_error", 400: "invalid_request_error"}
_TYPES |= {403: "permission_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """A refusal that the caller sees. `param` names the field of the body at fault."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: dict[str, str] | None = None,
        raw: dict[str, JsonValue] | None = None,
    ) -> None:
        """`raw`: a body of another shape, as servers have that only resemble OpenAI's."""
        super().__init__(message)
        self.status, self.message, self.param, self.headers = status, message, param, headers
        kind = _TYPES.get(status, "server_error")
        self.body = raw or {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status, headers=self.headers)
