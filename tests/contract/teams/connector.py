"""A stand-in for the connector of the Bot Service, which stores activities, or rejects them on request.

It checks streamed messages as Teams does: the first update creates the id of the message, each further update
must contain this id and the next number, and the final update must be the last.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from shared.teams.models import BotConversation


@dataclass(frozen=True)
class Refusal:
    """A response that replaces the regular one once."""

    status: int
    code: str = "x"
    message: str = "x"
    headers: Mapping[str, str] = field(default_factory=dict)
    # If False and the status is below 300, the request is accepted but the response can't be parsed.
    is_json: bool = True


@dataclass(frozen=True)
class Got:
    """A request that the connector accepted."""

    method: str
    path: str
    headers: Mapping[str, str]
    activity: dict[str, Any]

    @property
    def stream(self) -> dict[str, Any]:
        """Return the fields of a streamed message, or an empty dictionary for other messages."""
        entities = self.activity.get("entities", [])
        return next((entity for entity in entities if entity["type"] == "streaminfo"), {})


class Connector:
    """The stand-in server. It is an async context manager; `refusals` are returned first, in order."""

    def __init__(self, *refusals: Refusal) -> None:
        self.got: list[Got] = []
        self.refused = 0
        self.refusals = list(refusals)
        self.moved_to: str | None = None
        self.delay_s = 0.0
        self._request_received = asyncio.Condition()
        # The last number by stream id, or None after the end of the stream.
        self._streams: dict[str, int | None] = {}
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        self._site: web.TCPSite | None = None
        self.port = 0

    @property
    def service_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/teams/"

    def conversation(self, **changes: Any) -> BotConversation:
        """Return a personal chat in Teams that this server serves."""
        usual: dict[str, Any] = {
            "channel": "msteams",
            "service_url": self.service_url,
            "conversation_id": "a:1/x",
            "tenant_id": "tenant",
            "bot_id": "28:bot",
            "bot_name": "Groundwork",
            "locale": "en-GB",
        }
        return BotConversation(**(usual | changes))

    @property
    def activities(self) -> list[dict[str, Any]]:
        return [got.activity for got in self.got]

    async def wait_for_requests(self, times: int) -> None:
        """Wait until this many requests were received, including rejected ones."""
        async with asyncio.timeout(60), self._request_received:
            await self._request_received.wait_for(lambda: len(self.got) + self.refused >= times)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await self._site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        activity = await request.json()
        if self.moved_to:
            raise web.HTTPTemporaryRedirect(self.moved_to)
        await asyncio.sleep(self.delay_s)
        answer = self._respond(request, activity)
        async with self._request_received:
            self._request_received.notify_all()
        return answer

    def _respond(self, request: web.Request, activity: dict[str, Any]) -> web.Response:
        refusal = self.refusals.pop(0) if self.refusals else None
        got = Got(request.method, request.raw_path, dict(request.headers), activity)
        refusal = refusal or self._stream_refusal(got)
        if refusal is not None:
            self.refused += 1
            return _error(refusal)
        self.got.append(got)
        message_id = got.stream.get("streamId") or f"m{len(self.got)}"
        if got.stream:
            is_final = got.stream["streamType"] == "final"
            self._streams[message_id] = None if is_final else got.stream["streamSequence"]
        if "streamId" in got.stream:
            # As in Teams, only the response to the first update contains the id.
            return web.Response(status=202)
        return web.json_response({"id": message_id}, status=201)

    def _stream_refusal(self, got: Got) -> Refusal | None:
        stream = got.stream
        if not stream:
            return None
        if got.activity["conversation"].get("conversationType") != "personal":
            return Refusal(405, "x", "Streaming API is not enabled for non personal scope")
        last = self._streams.get(stream["streamId"]) if "streamId" in stream else 0
        if last is None:
            return Refusal(403, "ContentStreamNotAllowed", "Not on an already completed streamed message")
        if stream["streamType"] != "final" and stream["streamSequence"] != last + 1:
            return Refusal(412, "ContentStreamSequenceOrderPreConditionFailed", "Out of order")
        return None


def _error(refusal: Refusal) -> web.Response:
    body = json.dumps({"error": {"code": refusal.code, "message": refusal.message}})
    if not refusal.is_json:
        return web.Response(status=refusal.status, text="<html>a secret of a proxy</html>")
    return web.Response(
        status=refusal.status, text=body, content_type="application/json", headers=dict(refusal.headers)
    )
