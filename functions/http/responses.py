"""The HTTP dialect: bodies become models, models become responses, errors RFC 9457 problem details."""

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

_ADDED = "groundwork.headers"  # in a request's scope, which is its own alone
_RECORD_REFUSAL = "groundwork.record_refusal"  # likewise

Body = TypeVar("Body", bound=BaseModel)


_FIRST_BYTE_S = 0.1


def address_of(request: Request) -> str:
    """The app's address in a browser, without a trailing slash; if none is set, as this request came."""
    host = get_settings().host
    known = host.public_address if host.public_url or host.in_azure else None  # locally the name has no https
    return known or str(request.base_url).rstrip("/")


def added_headers(request: Request) -> Mapping[str, str]:
    """Return the headers that `add_headers` collected for the response to a request."""
    headers: Mapping[str, str] = request.scope.get(_ADDED, {})
    return headers


def record_refusals(request: Request, record: Callable[[str], Awaitable[None]]) -> None:
    """Have `record` called with the method and route if this request is refused. It must not raise."""
    request.scope[_RECORD_REFUSAL] = record


async def record_refusal(request: Request, route: str, error: GroundworkError) -> None:
    """Call what `record_refusals` was given, if the error is a refusal."""
    record = request.scope.get(_RECORD_REFUSAL)
    if record is not None and isinstance(error, AccessDeniedError | NotFoundError):
        await record(f"{request.method} {route}")


def add_headers(request: Request, headers: Mapping[str, str]) -> None:
    """Have the answer to this request carry these, also if it will be a problem."""
    request.scope.setdefault(_ADDED, {}).update(headers)


def validated(model: type[Body], validate: Callable[[], Body]) -> Body:
    """What `validate` makes; CallerError naming the first field at fault if it cannot."""
    try:
        return validate()
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        raise CallerError(*explain(first, model.model_fields)) from None


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; models are dumped."""
    dumped = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
    return JSONResponse(dumped, status_code=status, headers=dict(headers or {}))


def tagged_response(
    request: Request, view: BaseModel, leaving_out: Collection[str] = (), status: int = 200
) -> Response:
    """The view with its ETag; 304 when the caller has this very state."""
    etag = etag_of(view, leaving_out)
    headers = {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache"}
    if request.method == "GET" and is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return json_response(view, status, headers)


async def file_response(
    parts: AsyncIterator[bytes], blob: BlobProperties, span: ByteSpan | None = None
) -> Response:
    """A file, streamed: all of it, or the bytes of `span` (206).

    It is never rendered in our origin unless it is a PDF: an HTML document could carry script.
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
    # The first piece is waited for: until it is there, what goes wrong can still be answered with an error.
    started = await _begun(parts)
    return StreamingResponse(
        started, status_code=200 if span is None else 206, media_type=media_type, headers=headers
    )


async def picture_response(
    request: Request, parts: AsyncIterator[bytes], blob: BlobProperties, media_type: str = "image/png"
) -> Response:
    """A picture that we made, shown inline; 304 when the caller has it already.

    A browser may keep it, and asks each time whether it may show it.
    """
    headers = {"ETag": f'"{blob.etag}"', "Cache-Control": "private, no-cache"}
    if is_known(request.headers.get("if-none-match"), blob.etag):
        return Response(status_code=304, headers=headers)
    headers |= {
        "Content-Disposition": "inline",
        "Content-Security-Policy": "default-src 'none'",
        "Content-Length": str(blob.size_bytes),
    }
    return StreamingResponse(await _begun(parts), media_type=media_type, headers=headers)


async def _begun(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    first = await anext(parts, b"")

    async def all_parts() -> AsyncIterator[bytes]:
        yield first
        async for part in parts:
            yield part

    return all_parts()


def event_stream(frames: AsyncIterator[bytes], place: OpenStream, run_id: str | None = None) -> Response:
    """Server-sent events. Proxies must not buffer them, and a reader that stalls is disconnected.

    `place` is closed with the stream.
    """
    headers = {"X-Accel-Buffering": "no", **({"X-Run-Id": run_id} if run_id else {})}
    return PatientResponse(_opened(frames, place), media_type="text/event-stream", headers=headers)


async def _opened(frames: AsyncIterator[bytes], place: OpenStream) -> AsyncIterator[bytes]:
    """The frames; a comment first, if there is none yet: the host sends headers with the first byte."""
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
    """Problem details (RFC 9457): type, title, status, detail, hints, and of a file its failure."""
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
    """Return an error in the shape of OpenAI's protocol; its clients show `message`, with the hints in it."""
    note_fields(error_type=error.code)
    told = {"message": " ".join((error.detail, *error.hints)), "type": error.code, "code": error.code}
    return JSONResponse(
        {"error": {**told, "param": None}}, status_code=error.status, headers=_headers_of(error)
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
    """What changes only with the app; 304 when the caller has it. It is asked for again each time."""
    etag = hashlib.sha256(content).hexdigest()[:32]
    kept = {"ETag": f'"{etag}"', "Cache-Control": "no-cache"}
    if is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=kept)
    return Response(content, media_type=media_type, headers={**kept, **headers})


def explain(error: Mapping[str, Any], fields: Iterable[str]) -> tuple[str, str]:
    """Return detail and hint for one of pydantic's errors about a model with these fields."""
    if error["type"] == "json_invalid":
        return "The body is not valid JSON.", "Send a JSON object with Content-Type: application/json."
    place = ".".join(str(part) for part in error["loc"]) or "body"
    message = error["msg"].removeprefix("Value error, ")  # pydantic's words around those of our validators
    return f"{place}: {message}.", f"Fields: {', '.join(fields)}."


STUCK_AFTER_S = 60.0
"""For one piece. uvicorn takes up again when 48 KiB of its buffer have left: at 1 KB/s that takes 48 s."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _ReaderStuckError(Exception):
    """One piece has not left in STUCK_AFTER_S."""


class PatientResponse(StreamingResponse):
    """Pieces as they come; ends without its last one when the reader is stuck."""

    async def stream_response(self, send: Send) -> None:
        """Send all pieces. Whatever ends it, what makes the pieces is closed at once."""

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
