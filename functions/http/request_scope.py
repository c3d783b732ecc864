"""Wraps the handling of a request or an event: its trace, and the fields of its log lines."""

import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

from shared.platform import tracing
from shared.platform.telemetry import log_scope, pseudonym
from shared.wiring import start_telemetry

REQUEST_ID = "X-Request-Id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOGGED_PARTS = ("run_id", "thread_id")
Handler = Callable[..., Awaitable[Any]]


def observed(handler: Handler, template: str) -> Handler:
    """Wrap a handler that always returns a response in a span and a log scope.

    The response gets `X-Request-Id`; `template` is the route as registered, such as `/api/runs/{run_id}`.
    """

    @wraps(handler)
    async def scoped(*args: Any, **kwargs: Any) -> Any:
        request = kwargs.get("req") or args[0]
        await start_telemetry()
        with log_scope(**_fields(request)) as fields:
            span = _server_span(request, template, handler.__name__)
            try:
                with tracing.inside(span):
                    answer = await handler(*args, **kwargs)
            except BaseException as error:  # the connection is gone, or the host ends
                span.fail_by(error)
                span.end()
                raise
            answer.headers[REQUEST_ID] = fields["request_id"]
            _describe(span, answer.status_code, fields)
            parts = getattr(answer, "body_iterator", None)
            if parts is None:
                span.end()
            else:
                answer.body_iterator = _until_sent(parts, span, dict(fields))
            return answer

    return scoped


def _fields(request: Any) -> dict[str, str]:
    given = request.headers.get(REQUEST_ID, "")
    request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    parts = {name: str(request.path_params.get(name, ""))[:64] for name in _LOGGED_PARTS}
    return {"request_id": request_id, **parts}


def _server_span(request: Any, template: str, function: str) -> tracing.Span:
    if not tracing.is_on():
        return tracing.NO_SPAN
    attributes: tracing.Attributes = {
        "http.request.method": request.method,
        "http.route": template,
        "url.scheme": request.url.scheme,
        "code.function.name": function,
    }
    parent = request.headers.get("traceparent", "")
    return tracing.begin(f"{request.method} {template}", attributes, "server", parent=parent)


def _describe(span: tracing.Span, status: int, fields: Mapping[str, str]) -> None:
    user_id = fields.get("user_id")
    span.set(
        {
            "http.response.status_code": status,
            "request_id": fields["request_id"],
            "run_id": fields.get("run_id"),
            "thread_id": fields.get("thread_id"),
            "user_id": pseudonym(user_id) if user_id else None,
        }
    )
    if status >= 500:
        span.fail(fields.get("error_type") or str(status))
    elif status >= 400:
        span.set({"error.type": fields.get("error_type") or str(status)})


async def _until_sent(
    parts: AsyncIterator[Any], span: tracing.Span, fields: dict[str, str]
) -> AsyncGenerator[Any, None]:
    try:
        while True:
            with log_scope(**fields):  # not around the loop: readers run in a context of their own
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    return
            yield part
    finally:
        span.end()
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


@asynccontextmanager
async def consumed(name: str, **fields: str) -> AsyncIterator[None]:
    """Handle an event: a trace begins with it, unless one continues. `fields`: contracts.md, section 6."""
    await start_telemetry()
    goes_on = tracing.current().traceparent
    begun = tracing.span(name, fields) if goes_on else tracing.root(name, "consumer", attributes=fields)
    with log_scope(**fields), begun:
        yield
