"""Responses: models as JSON, files, event streams, and errors as problem details (RFC 9457)."""

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

_ADDED = "groundwork.headers"  # key in a request's scope
_RECORD_REFUSAL = "groundwork.record_refusal"  # key in a request's scope

Body = TypeVar("Body", bound=BaseModel)


_FIRST_BYTE_S = 0.1


def address_of(request: Request) -> str:
    """Return the app's base URL in a browser; if it isn't configured, the request's base URL."""
    host = get_settings().host
    address = host.public_address if host.public_url or host.in_azure else None  # no https locally
    return address or str(request.base_url).rstrip("/")


def added_headers(request: Request) -> Mapping[str, str]:
    """Return the headers that `add_headers` collected for the response to a request."""
    headers: Mapping[str, str] = request.scope.get(_ADDED, {})
    return headers


def record_refusals(request: Request, record: Callable[[str], Awaitable[None]]) -> None:
    """Register a callback that gets the method and route if this request is refused. It must not raise."""
    request.scope[_RECORD_REFUSAL] = record


async def record_refusal(request: Request, route: str, error: GroundworkError) -> None:
    """Call the callback of `record_refusals` if the error is a refusal."""
    record = request.scope.get(_RECORD_REFUSAL)
    if record is not None and isinstance(error, AccessDeniedError | NotFoundError):
        await record(f"{request.method} {route}")


def add_headers(request: Request, headers: Mapping[str, str]) -> None:
    """Add headers to the response, even if it becomes an error."""
    request.scope.setdefault(_ADDED, {}).update(headers)


def validated(model: type[Body], validate: Callable[[], Body]) -> Body:
    """Return the result of `validate`. Raises `CallerError` about the first invalid field."""
    try:
        return validate()
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        raise CallerError(*explain(first, model.model_fields)) from None


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response. Models are serialized."""
    dumped = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
    return JSONResponse(dumped, status_code=status, headers=dict(headers or {}))


def tagged_response(
    request: Request, view: BaseModel, leaving_out: Collection[str] = (), status: int = 200
) -> Response:
    """Return a view with its ETag; 304 if the caller has this version."""
    etag = etag_of(view, leaving_out)
    headers = {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache"}
    if request.method == "GET" and is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return json_response(view, status, headers)


async def file_response(
    parts: AsyncIterator[bytes], blob: BlobProperties, span: ByteSpan | None = None
) -> Response:
    """Stream a file, or the bytes of `span` (206).

    Only PDFs are rendered in our origin: an HTML document could contain scripts.
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
    # Wait for the first piece: until it arrives, a failure can still become an error response.
    started = await _after_first_part(parts)
    return StreamingResponse(
        started, status_code=200 if span is None else 206, media_type=media_type, headers=headers
    )


async def picture_response(
    request: Request, parts: AsyncIterator[bytes], blob: BlobProperties, media_type: str = "image/png"
) -> Response:
    """Return a generated picture for inline display; 304 if the ETag matches.

    Browsers may cache it, but must revalidate, which checks access again.
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
    """Return a response of server-sent events, unbuffered by proxies. Readers that stall are disconnected.

    `place` is closed with the stream.
    """
    headers = {"X-Accel-Buffering": "no", **({"X-Run-Id": run_id} if run_id else {})}
    return PatientResponse(_opened(frames, place), media_type="text/event-stream", headers=headers)


async def _opened(frames: AsyncIterator[bytes], place: OpenStream) -> AsyncIterator[bytes]:
    """Yield the frames, preceded by a comment if none is ready: the host sends headers
    with the first byte.
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
        await frames.aclose()  # type: ignore[attr-defined]  # all that come here are generators


def problem(error: GroundworkError) -> Response:
    """Render an error as problem details (RFC 9457)."""
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
    """Render an error in the format of OpenAI's protocol. Its clients show only `message`, so it includes the
    hints.
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
    """Return content that changes only with the app; 304 if the ETag matches. Browsers
    revalidate each time.
    """
    etag = hashlib.sha256(content).hexdigest()[:32]
    cache_headers = {"ETag": f'"{etag}"', "Cache-Control": "no-cache"}
    if is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=cache_headers)
    return Response(content, media_type=media_type, headers={**cache_headers, **headers})


def explain(error: Mapping[str, Any], fields: Iterable[str]) -> tuple[str, str]:
    """Return detail and hint for one of pydantic's errors about a model with these fields."""
    if error["type"] == "json_invalid":
        return "The body is not valid JSON.", "Send a JSON object with Content-Type: application/json."
    place = ".".join(str(part) for part in error["loc"]) or "body"
    message = error["msg"].removeprefix("Value error, ")  # added by pydantic to our messages
    return f"{place}: {message}.", f"Fields: {', '.join(fields)}."


STUCK_AFTER_S = 60.0
"""For one piece. uvicorn takes up again when 48 KiB of its buffer have left: at 1 KB/s that takes 48 s."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _ReaderStuckError(Exception):
    """A piece of the response wasn't sent within STUCK_AFTER_S."""


class PatientResponse(StreamingResponse):
    """A streaming response that ends early if its reader stalls."""

    async def stream_response(self, send: Send) -> None:
        """Send all pieces. The iterator is closed at once, however the response ends."""

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
