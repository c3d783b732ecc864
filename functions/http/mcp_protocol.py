"""The message format of the Model Context Protocol over HTTP, in which each POST contains one JSON-RPC
message. Performs no I/O.

Two generations of the protocol are supported, both without sessions. Up to version 2025-11-25, clients begin
with `initialize`. Since 2026-07-28, each request states its version in `params._meta` and repeats routing
fields in headers. Source: modelcontextprotocol.io/specification.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

INITIALIZED_VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSION = "2026-07-28"
VERSIONS = (*INITIALIZED_VERSIONS, STATELESS_VERSION)
_META = "io.modelcontextprotocol/"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TTL_MS = {  # lifetimes of cached responses: lists change only with a deployment, documents at any time
    **dict.fromkeys(
        ("server/discover", "tools/list", "resources/list", "resources/templates/list"), 3_600_000
    ),
    "resources/read": 0,
}
# Methods whose results differ per user, so that shared caches must not store them. `tools/list` names the
# agents available to the user.
_PER_PERSON = frozenset({"tools/list", "resources/read"})

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
RESOURCE_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION = -32002, -32020, -32022
_STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}


class RpcError(Exception):
    """A JSON-RPC error for a message that cannot be processed. A tool that fails returns a result instead."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True)
class Message:
    """A JSON-RPC request, or a notification, which has no id and gets no response."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    id: str | int | None = None
    is_stateless: bool = False

    @property
    def progress_token(self) -> str | int | None:
        """The token that progress notifications must contain, or None if the client requests no progress
        notifications.
        """
        token = _meta_of(self.params).get("progressToken")
        return token if isinstance(token, str | int) else None

    def result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON-RPC response to this request. Requests of stateless versions also get caching
        hints.
        """
        wrapped = dict(result)
        if self.is_stateless:
            wrapped["resultType"] = "complete"
            if self.method in _TTL_MS:
                wrapped["ttlMs"] = _TTL_MS[self.method]
                wrapped["cacheScope"] = "private" if self.method in _PER_PERSON else "public"
        return {"jsonrpc": "2.0", "id": self.id, "result": wrapped}


def read_message(body: bytes, headers: Mapping[str, str]) -> Message:
    """Parse the JSON-RPC message in the body of a POST. Header names must be in lower case.

    Raises:
        RpcError: the body isn't a message, or has an unsupported version.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "The body is not valid JSON.") from None
    if not isinstance(message, dict):
        raise RpcError(
            INVALID_REQUEST, "The body must be a single JSON-RPC message. Batches are not supported."
        )
    method, params, number = message.get("method"), message.get("params", {}), message.get("id")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "The body must be a JSON-RPC 2.0 request or notification.")
    if "id" in message and (isinstance(number, bool) or not isinstance(number, str | int)):
        raise RpcError(INVALID_REQUEST, "`id` must be a string or an integer.")
    version = headers.get("mcp-protocol-version")
    is_stateless = version == STATELESS_VERSION or f"{_META}protocolVersion" in _meta_of(params)
    return Message(method, params, number, is_stateless)


def check_version(message: Message, headers: Mapping[str, str]) -> None:
    """Check that the server supports the protocol version of a message, and that its routing headers match
    its body.

    Raises:
        RpcError: the version is not supported, or a header doesn't match.
    """
    version = headers.get("mcp-protocol-version")
    if message.is_stateless and message.id is not None:
        _check_envelope(message, headers)
    elif version not in (None, *VERSIONS) and message.method != "initialize":
        raise _unsupported(str(version))


def _check_envelope(message: Message, headers: Mapping[str, str]) -> None:
    meta = _meta_of(message.params)
    missing = [name for name in ("protocolVersion", "clientCapabilities") if f"{_META}{name}" not in meta]
    if missing:
        raise RpcError(
            INVALID_PARAMS, f"params._meta must contain {', '.join(_META + name for name in missing)}."
        )
    claimed, named_by = meta[f"{_META}protocolVersion"], _NAMED_BY.get(message.method, "")
    name = message.params.get(named_by)
    if headers.get("mcp-protocol-version") != claimed:
        raise RpcError(HEADER_MISMATCH, "The MCP-Protocol-Version header doesn't match the body.")
    if headers.get("mcp-method") != message.method:
        raise RpcError(HEADER_MISMATCH, "The Mcp-Method header doesn't match the body.")
    if name is not None and _decode_header(headers.get("mcp-name")) != name:
        raise RpcError(HEADER_MISMATCH, f"The Mcp-Name header doesn't match `{named_by}` in the body.")
    if claimed != STATELESS_VERSION:
        raise _unsupported(claimed)


def error_answer(number: str | int | None, error: RpcError) -> dict[str, Any]:
    """Return the JSON-RPC response for an error. `number` is the id of the request, or None if it is
    unknown.
    """
    error_object: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        error_object["data"] = error.data
    return {"jsonrpc": "2.0", "id": number, "error": error_object}


def status_of(error: RpcError, *, is_stateless: bool) -> int:
    """Return the HTTP status of an error response. Clients of older versions get 200 for most errors."""
    status = _STATUSES.get(error.code, 200)
    return status if is_stateless or error.code in (PARSE_ERROR, INVALID_REQUEST) else 200


def negotiate_version(requested: object) -> str:
    """Return the protocol version for a client that sent `initialize`: the requested version if it supports
    `initialize`, otherwise the newest version that does.
    """
    return next((one for one in INITIALIZED_VERSIONS if one == requested), INITIALIZED_VERSIONS[-1])


def _unsupported(version: str) -> RpcError:
    data = {"supported": list(VERSIONS), "requested": version}
    return RpcError(UNSUPPORTED_VERSION, "This protocol version is not supported.", data)


def _meta_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _decode_header(value: str | None) -> str | None:
    """Return a header value, decoding the form `=?base64?...?=`. Return None if it is missing or
    malformed.
    """
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
