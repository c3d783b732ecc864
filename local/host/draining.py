"""Ends open requests when the host stops: event streams at once and cleanly, others after a grace period."""

import asyncio
import contextlib

from starlette.types import ASGIApp, Message, Receive, Scope, Send

GRACE_S = 5.0


class DrainingApp:
    """Wraps an ASGI app; `stop()` is called once, when the host begins to stop."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = _ObservedResponse(send)
        request = asyncio.ensure_future(self._app(scope, receive, response.send))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({request, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not request.done() and not response.is_event_stream:
                await asyncio.wait({request}, timeout=GRACE_S)
            if request.done():
                await request
            else:
                await self._end(request, response)
        finally:
            stopping.cancel()
            request.cancel()

    async def _end(self, request: "asyncio.Future[None]", response: "_ObservedResponse") -> None:
        request.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await request
        await response.finish()


class _ObservedResponse:
    """Remembers how far a response has come, so that it can be ended in a way that the client understands."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._has_length = False
        self._complete = False
        self.is_event_stream = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = {name.lower(): value for name, value in message.get("headers", ())}
            self._started = True
            self._has_length = b"content-length" in headers
            self.is_event_stream = headers.get(b"content-type", b"").startswith(b"text/event-stream")
        elif message["type"] == "http.response.body":
            self._complete = not message.get("more_body", False)
        await self._send(message)

    async def finish(self) -> None:
        """End the response: an unstarted one as 503, a stream by its last chunk."""
        if not self._started:
            await self.send(
                {"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"5")]}
            )
        if not self._complete and not self._has_length:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
