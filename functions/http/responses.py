"""Builders of HTTP responses: JSON, files, event streams, and errors as problem details (RFC 9457)."""

import asyncio
import hashlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ValidationError

from functions.http.conditions import etag_of, is_known
from shared.access.user_limit_store import OpenStream
from shared.platform.blobs import BlobProperties, ByteSpan
from shared.platform.errors import (
    AccessDeniedError,
    BadDocumentError,
    CallerError,
    GroundworkError,
    NotAuthenticatedError,
    NotFoundError,
    Problem,
)
from shared.platform.settings import get_settings
from shared.platform.telemetry import get_logger, note_fields

# Key in the ASGI scope for headers that are added to the response.
_ADDED = "groundwork.headers"
# Key in the ASGI scope for the callback that records denied requests.
_RECORD_REFUSAL = "groundwork.record_refusal"

Body = TypeVar("Body", bound=BaseModel)


_FIRST_BYTE_S = 0.1


def address_of(request: Request) -> str:
    """Return the base URL under which browsers reach the app. If none is configured, use the base URL of the
    request.
    """
    host = get_settings().host
    # A local host is addressed as requested, because it doesn't serve https.
    address = host.public_address if host.public_url or host.in_azure else None
    return address or str(request.base_url).rstrip("/")


def added_headers(request: Request) -> Mapping[str, str]:
    """Return the response headers that `add_headers` has collected during a request."""
    headers: Mapping[str, str] = request.scope.get(_ADDED, {})
    return headers


def record_refusals(request: Request, record: Callable[[str], Awaitable[None]]) -> None:
    """Register a callback that is called with the method and route if this request is denied. It must not
    raise.
    """
    request.scope[_RECORD_REFUSAL] = record


async def record_refusal(request: Request, route: str, error: GroundworkError) -> None:
    """Call the callback of `record_refusals` if the error denies access or hides a resource as not found."""
    record = request.scope.get(_RECORD_REFUSAL)
    if record is not None and isinstance(error, AccessDeniedError | NotFoundError):
        await record(f"{request.method} {route}")


def add_headers(request: Request, headers: Mapping[str, str]) -> None:
    """Add headers to the response of a request, even if it becomes an error response."""
    request.scope.setdefault(_ADDED, {}).update(headers)


def validate_as(model: type[Body], validate: Callable[[], Body]) -> Body:
    """Call `validate` and return its result. A validation error is converted to a `CallerError` about the
    first invalid field of `model`.
    """
    try:
        return validate()
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        raise CallerError(*explain(first, model.model_fields)) from None


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response. A pydantic model is serialised first."""
    dumped = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
    return JSONResponse(dumped, status_code=status, headers=dict(headers or {}))


def tagged_response(
    request: Request, view: BaseModel, leaving_out: Collection[str] = (), status: int = 200
) -> Response:
    """Return a view as JSON with its ETag, or 304 if the caller already has this version."""
    etag = etag_of(view, leaving_out)
    headers = {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache"}
    if request.method == "GET" and is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return json_response(view, status, headers)


async def file_response(
    parts: AsyncIterator[bytes], blob: BlobProperties, span: ByteSpan | None = None
) -> Response:
    """Stream a file as a response. With `span`, send only these bytes, with status 206.

    Only PDFs may be displayed in the app's origin, because HTML documents could contain scripts.
    """
    filename = blob.name.rpartition("/")[2]
    is_pdf = filename.lower().endswith(".pdf")
    headers = {
        "Content-Disposition": f"{'inline' if is_pdf else 'attachment'}; filename*=UTF-8''{quote(filename)}",
        "Accept-Ranges": "bytes",
        "ETag": f'"{blob.etag}"',
        "Content-Length": str(blob.size_bytes if span is None else span.length),
    }
    if span is not None:
        headers["Content-Range"] = f"bytes {span.first}-{span.first + span.length - 1}/{blob.size_bytes}"
    media_type = "application/pdf" if is_pdf else "application/octet-stream"
    # The first piece of the file is read before the response starts, because a failure can't change the
    # status after that.
    started = await _after_first_part(parts)
    return StreamingResponse(
        started, status_code=200 if span is None else 206, media_type=media_type, headers=headers
    )


async def picture_response(
    request: Request, parts: AsyncIterator[bytes], blob: BlobProperties, media_type: str = "image/png"
) -> Response:
    """Return a generated picture for inline display, or 304 if the caller already has this version.

    Browsers may cache the picture but must revalidate it, so that access is checked again.
    """
    headers = {"ETag": f'"{blob.etag}"', "Cache-Control": "private, no-cache"}
    if is_known(request.headers.get("if-none-match"), blob.etag):
        return Response(status_code=304, headers=headers)
    headers |= {
        "Content-Disposition": "inline",
        "Content-Security-Policy": "default-src 'none'",
        "Content-Length": str(blob.size_bytes),
    }
    return StreamingResponse(await _after_first_part(parts), media_type=media_type, headers=headers)


async def _after_first_part(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    first = await anext(parts, b"")

    async def all_parts() -> AsyncIterator[bytes]:
        yield first
        async for part in parts:
            yield part

    return all_parts()


def event_stream(frames: AsyncIterator[bytes], place: OpenStream, run_id: str | None = None) -> Response:
    """Return a streaming response of server-sent events that proxies don't buffer. Clients that stop reading
    are disconnected.

    `place` is released when the stream ends.
    """
    headers = {"X-Accel-Buffering": "no", **({"X-Run-Id": run_id} if run_id else {})}
    return PatientResponse(_open_frames(frames, place), media_type="text/event-stream", headers=headers)


async def _open_frames(frames: AsyncIterator[bytes], place: OpenStream) -> AsyncIterator[bytes]:
    """Yield the frames of a stream, preceded by a comment if the first frame takes long. The host sends the
    response headers only with the first byte.
    """
    first = asyncio.ensure_future(anext(frames, b""))
    try:
        await asyncio.wait({first}, timeout=_FIRST_BYTE_S)
        if not first.done():
            yield b": open\n\n"
        yield await first
        async for frame in frames:
            yield frame
    finally:
        place.close()
        first.cancel()
        await asyncio.wait({first})  # a generator that is running can't be closed
        await frames.aclose()  # type: ignore[attr-defined]  # all that come here are generators


def problem(error: GroundworkError) -> Response:
    """Return the response for an error, as problem details (RFC 9457)."""
    note_fields(error_type=error.code)
    content = Problem(
        type=f"urn:groundwork:error:{error.code}",
        title=error.code,
        status=error.status,
        detail=error.detail,
        hints=error.hints,
        failure=error.failure if isinstance(error, BadDocumentError) else None,
    ).model_dump(mode="json")
    return JSONResponse(
        content,
        status_code=error.status,
        headers=_headers_of(error),
        media_type="application/problem+json",
    )


def openai_error(error: GroundworkError) -> Response:
    """Return the response for an error in the format of OpenAI's protocol. Its clients show only `message`,
    which therefore includes the hints.
    """
    note_fields(error_type=error.code)
    error_object = {"message": " ".join((error.detail, *error.hints)), "type": error.code, "code": error.code}
    return JSONResponse(
        {"error": {**error_object, "param": None}}, status_code=error.status, headers=_headers_of(error)
    )


def _headers_of(error: GroundworkError) -> dict[str, str]:
    headers = dict(error.headers)
    if isinstance(error, NotAuthenticatedError):
        headers["WWW-Authenticate"] = 'Bearer realm="groundwork"'
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    return headers


def cached_response(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str]
) -> Response:
    """Return content that changes only when a new version of the app is deployed, or 304 if the caller
    already has it. Browsers revalidate it before each use.
    """
    etag = hashlib.sha256(content).hexdigest()[:32]
    cache_headers = {"ETag": f'"{etag}"', "Cache-Control": "no-cache"}
    if is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=cache_headers)
    return Response(content, media_type=media_type, headers={**cache_headers, **headers})


def explain(error: Mapping[str, Any], fields: Iterable[str]) -> tuple[str, str]:
    """Convert a pydantic error to the detail and hint of a `CallerError`. The hint lists `fields`, the fields
    that the model allows.
    """
    if error["type"] == "json_invalid":
        return "The body is not valid JSON.", "Send a JSON object with Content-Type: application/json."
    place = ".".join(str(part) for part in error["loc"]) or "body"
    # Pydantic adds this prefix to messages of custom validators.
    message = error["msg"].removeprefix("Value error, ")
    return f"{place}: {message}.", f"Fields: {', '.join(fields)}."


STUCK_AFTER_S = 60.0
"""For one piece. uvicorn takes up again when 48 KiB of its buffer have left: at 1 KB/s that takes 48 s."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _ReaderStuckError(Exception):
    """Raised if the client does not accept a piece of the response within STUCK_AFTER_S seconds."""


class PatientResponse(StreamingResponse):
    """A streaming response that ends early if the client stops reading."""

    async def stream_response(self, send: Send) -> None:
        """Send the response piece by piece. The body iterator is closed as soon as the response ends, even
        after an error.
        """

        async def send_in_time(message: MutableMapping[str, Any]) -> None:
            try:
                async with asyncio.timeout(STUCK_AFTER_S):
                    await send(message)
            except TimeoutError:
                raise _ReaderStuckError from None

        try:
            await super().stream_response(send_in_time)
        except _ReaderStuckError:
            get_logger().warning("stream.reader_stalled", error_type="TimeoutError")
        finally:
            await self.body_iterator.aclose()  # type: ignore[attr-defined]  # all that come here are generators
