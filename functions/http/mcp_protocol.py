"""The Model Context Protocol over HTTP: a POST holds one JSON-RPC message, its answer one. Pure.

Two eras are served, without sessions. Up to 2025-11-25 a client begins with `initialize`. Since 2026-07-28
every request carries its version in `params._meta`, and repeats in headers what proxies route by.
Source: modelcontextprotocol.io/specification.
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
_TTL_MS = {  # tools change with a deployment; pages at any time
    **dict.fromkeys(
        ("server/discover", "tools/list", "resources/list", "resources/templates/list"), 3_600_000
    ),
    "resources/read": 0,
}
_PER_PERSON = frozenset({"tools/list", "resources/read"})  # tools name the agents that a person may ask

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
    """The message cannot be served: a JSON-RPC error. What a tool cannot do is a result."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True)
class Message:
    """A request, or a notification, which has no id and gets no answer."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    id: str | int | None = None
    is_stateless: bool = False

    @property
    def progress_token(self) -> str | int | None:
        """What progress is to be sent under; None = it is not asked for."""
        token = _meta_of(self.params).get("progressToken")
        return token if isinstance(token, str | int) else None

    def result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to this request."""
        wrapped = dict(result)
        if self.is_stateless:
            wrapped["resultType"] = "complete"
            if self.method in _TTL_MS:
                wrapped["ttlMs"] = _TTL_MS[self.method]
                wrapped["cacheScope"] = "private" if self.method in _PER_PERSON else "public"
        return {"jsonrpc": "2.0", "id": self.id, "result": wrapped}


def read_message(body: bytes, headers: Mapping[str, str]) -> Message:
    """The message of a POST. `headers` by names in lower case.

    Raises:
        RpcError: it is none, or of a version that is not served.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "The body is not valid JSON.") from None
    if not isinstance(given, dict):
        raise RpcError(INVALID_REQUEST, "Send one JSON-RPC message; batches are not supported.")
    method, params, number = given.get("method"), given.get("params", {}), given.get("id")
    if given.get("jsonrpc") != "2.0" or not isinstance(method, str) or not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "This is not a JSON-RPC 2.0 request or notification.")
    if "id" in given and (isinstance(number, bool) or not isinstance(number, str | int)):
        raise RpcError(INVALID_REQUEST, "An id is a string or a whole number.")
    version = headers.get("mcp-protocol-version")
    is_stateless = version == STATELESS_VERSION or f"{_META}protocolVersion" in _meta_of(params)
    return Message(method, params, number, is_stateless)


def check_version(message: Message, headers: Mapping[str, str]) -> None:
    """Refuse a version that is not served, and headers that do not say what the body says.

    Raises:
        RpcError: as said.
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
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {', '.join(_META + name for name in missing)}.")
    claimed, named_by = meta[f"{_META}protocolVersion"], _NAMED_BY.get(message.method, "")
    name = message.params.get(named_by)
    if headers.get("mcp-protocol-version") != claimed:
        raise RpcError(HEADER_MISMATCH, "MCP-Protocol-Version is not the version of the body.")
    if headers.get("mcp-method") != message.method:
        raise RpcError(HEADER_MISMATCH, "Mcp-Method is not the method of the body.")
    if name is not None and _decoded(headers.get("mcp-name")) != name:
        raise RpcError(HEADER_MISMATCH, f"Mcp-Name is not the {named_by} of the body.")
    if claimed != STATELESS_VERSION:
        raise _unsupported(claimed)


def error_answer(number: str | int | None, error: RpcError) -> dict[str, Any]:
    """The answer to a message that cannot be served; None = its id is not known."""
    told: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": number, "error": told}


def status_of(error: RpcError, *, is_stateless: bool) -> int:
    """The HTTP status: before 2026-07-28 a request that was understood is answered with 200."""
    known = _STATUSES.get(error.code, 200)
    return known if is_stateless or error.code in (PARSE_ERROR, INVALID_REQUEST) else 200


def negotiated(requested: object) -> str:
    """The version for a client that begins with `initialize`: its own, or the newest of that era."""
    return next((one for one in INITIALIZED_VERSIONS if one == requested), INITIALIZED_VERSIONS[-1])


def _unsupported(version: str) -> RpcError:
    data = {"supported": list(VERSIONS), "requested": version}
    return RpcError(UNSUPPORTED_VERSION, "This protocol version is not supported.", data)


def _meta_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _decoded(value: str | None) -> str | None:
    """A header's value; one that no header can carry comes as `=?base64?...?=`."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
