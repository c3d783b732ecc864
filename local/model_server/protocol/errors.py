"""Errors in OpenAI's shape: {"error": {message, type, param, code}}, each with its HTTP status."""

from starlette.responses import JSONResponse

from local.model_server.protocol.replies import Json


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
        raw: Json | None = None,
    ) -> None:
        """`raw`: a body of another shape, as servers have that only resemble OpenAI's."""
        super().__init__(message)
        self.status, self.param, self.headers = status, param, headers
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body: Json = raw or {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status, headers=self.headers)
