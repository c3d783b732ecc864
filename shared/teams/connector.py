"""Client that sends activities to a channel through the Agents SDK.

Service URLs come from outside, so requests go only to Bot Service hosts over https, and only those hosts
receive the bot's token. On a developer's machine (BOT_LOCAL_ANONYMOUS) only loopback is allowed, without a
token. The SDK and aiohttp are imported on first use. Errors say what to check and never quote the activity.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from aiohttp import (
    ClientError,
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
)
from pydantic import ValidationError

from shared.platform.calls import BOT_CHANNEL as SERVICE
from shared.platform.calls import Deadline, call_within, failed, rate_limited, refused, timed_out, unreachable
from shared.platform.connections import Connection
from shared.platform.errors import CallerError, GroundworkError, PayloadTooLargeError
from shared.platform.loading import load
from shared.platform.settings import Settings
from shared.teams.models import BotConversation
from shared.teams.tokens import CLOUDS, address_parts, is_loopback, is_service

# Imported for type checking only, because importing the SDK would slow down startup.
if TYPE_CHECKING:
    from microsoft_agents.activity import ResourceResponse
    from microsoft_agents.hosting.core.connector.conversations_base import ConversationsBase

Wire = dict[str, Any]
Token = Callable[[], Awaitable[str]]
Ending = Literal["stopped", "late", "done", "unsupported"]

# Time limit of one message with its retries. An activity function has 10 minutes.
SEND_S = 30.0
# Time limit of one request. Not measured.
TRY_S = 10.0
MAX_RETRIES = 4
_MAX_SERVICES = 8  # open connections per process; Teams has about 5 regions, each with its own URL
_MAX_CONVERSATION_ID_CHARS = (
    4096  # after encoding; the SDK would truncate to 150, the id of another conversation
)
_RETRIED = (412, 429)  # The Bot Service asks clients to retry requests that failed with either status.
_SDK = "microsoft_agents.hosting.core.connector.client.connector_client"


class StreamEndedError(CallerError):
    """The error raised when the channel accepts no further updates of a streamed message.

    Attributes:
        how: `stopped` by the user, too `late`, already complete (`done`), or streaming `unsupported`.
    """

    def __init__(self, how: Ending) -> None:
        super().__init__("The channel has ended the message.")
        self.how = how


class ChannelConnector:
    """Client that sends one bot's activities to its channels."""

    def __init__(self, settings: Settings, token: Token) -> None:
        """Create a client without connecting. `token` returns an access token for the Bot Service; it is not
        called in local mode.
        """
        self._is_local = (
            settings.bot.local_anonymous and not settings.bot.app_id and not settings.host.in_azure
        )
        self._hosts = CLOUDS[settings.bot.cloud].hosts
        self._token = token
        self._connections: dict[str, Connection[ClientSession]] = {}

    async def close(self) -> None:
        """Close the HTTP sessions of all channels."""
        while self._connections:
            await self._connections.popitem()[1].close()

    async def send(
        self,
        conversation: BotConversation,
        activity: Wire,
        *,
        reply_to: str | None = None,
        message_id: str | None = None,
        max_retries: int = MAX_RETRIES,
    ) -> str:
        """Send an activity, retrying for up to SEND_S seconds. Return the message id that the channel
        assigned, or "" if it assigned none.

        Args:
            reply_to: id of the message being answered.
            message_id: id of our earlier message to replace.
        """
        self._check_allowed(conversation.service_url)
        place = _segment(conversation.conversation_id)

        async def attempt() -> str:
            client = await self._client(conversation.service_url)
            body = load("microsoft_agents.activity", "Activity").model_validate(activity)
            with _channel_errors():
                if message_id is not None:
                    request = client.update_activity(place, _segment(message_id), body)
                elif reply_to is not None:
                    request = client.reply_to_activity(place, _segment(reply_to), body)
                else:
                    request = client.send_to_conversation(place, body)
                return await _id_of(request)

        return await call_within(Deadline(SEND_S), max_retries, attempt)

    def _check_allowed(self, service_url: str) -> None:
        """Raise an error unless activities may be sent to this service URL.

        Raises:
            CallerError: the host isn't allowed.
        """
        parts = address_parts(service_url)
        is_allowed = parts is not None and (
            is_loopback(parts) if self._is_local else is_service(parts, self._hosts)
        )
        if not is_allowed:
            raise CallerError("serviceUrl is not an allowed Bot Framework host.")

    async def _client(self, service_url: str) -> ConversationsBase:
        if service_url not in self._connections:
            while len(self._connections) >= _MAX_SERVICES:
                oldest = next(iter(self._connections))
                await self._connections.pop(oldest).close()
            self._connections[service_url] = Connection(lambda: self._open(service_url), (_SDK,))
        session = await self._connections[service_url].opened()
        if not self._is_local:
            session.headers["Authorization"] = f"Bearer {await self._token()}"
        client: ConversationsBase = load(_SDK, "ConversationsOperations")(
            session, max_conversation_id_length=_MAX_CONVERSATION_ID_CHARS
        )
        return client

    def _open(self, service_url: str) -> ClientSession:
        how: Wire = {
            "base_url": service_url if service_url.endswith("/") else f"{service_url}/",
            "timeout": ClientTimeout(total=TRY_S),
            "cookie_jar": DummyCookieJar(),
        }
        if self._is_local:
            return ClientSession(middlewares=(_loopback_alone,), **how)
        hosts = [host.removeprefix(".") for host in self._hosts]
        validator = load("microsoft_agents.hosting.core.security", "OutboundHostValidator")(
            hosts, enabled=True, include_default_microsoft_hosts=False
        )
        session: ClientSession = validator.client(how)
        return session


async def _loopback_alone(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Raise an error for requests to any host but this machine. Redirects are checked too, because aiohttp
    calls the middleware for each one.
    """
    parts = address_parts(str(request.url))
    if parts is None or not is_loopback(parts):
        raise OSError("The request is not addressed to this machine.")
    return await handler(request)


async def _id_of(sending: Awaitable[ResourceResponse]) -> str:
    """Return the message id from the channel's response. A malformed response yields "" rather than an error,
    because the message was delivered.
    """
    try:
        return (await sending).id or ""
    except ValidationError:
        return ""


def _segment(name: str) -> str:
    """Percent-encode an id for use as a single URL path segment.

    Raises:
        CallerError: the id would change the path.
    """
    if not name or set(name) == {"."}:
        raise CallerError("The id of the conversation or message is empty or consists only of dots.")
    return quote(name, safe="")


@contextmanager
def _channel_errors() -> Iterator[None]:
    try:
        yield
    except ClientResponseError as error:
        raise _as_ours(error) from None
    except TimeoutError:
        raise timed_out(SERVICE) from None
    except (
        ClientError,
        OSError,
        ValueError,  # raised by the SDK validator if the host resolves to a forbidden address
    ):
        raise unreachable(SERVICE) from None


def _as_ours(error: ClientResponseError) -> GroundworkError:
    code, message = _error_of(error.message)
    if (ending := _ending(error.status, code, message)) is not None:
        return StreamEndedError(ending)
    headers: Mapping[str, str] = error.headers or {}
    if error.status in _RETRIED:
        return rate_limited(SERVICE, headers)
    if error.status == 413 or code == "messagesizetoobig":
        return PayloadTooLargeError(f"The message is too large for {SERVICE.name}.")
    if error.status == 401:
        return refused(SERVICE)
    if error.status in (400, 403, 404, 405, 410):
        return CallerError(
            f"{SERVICE.name.capitalize()} does not accept this message in this conversation.",
            SERVICE.access_hint,
        )
    return failed(SERVICE, error.status)


def _ending(status: int, code: str, message: str) -> Ending | None:
    """Return the reason why the channel ended a streamed message, or None if the error has another cause.
    `code` and `message` must be in lower case.
    """
    if status == 403 and code == "contentstreamnotallowed":
        if "exceeded streaming time" in message:
            return "late"
        if "already completed" in message:
            return "done"
        return "stopped" if "cancel" in message else "unsupported"
    is_unknown = status in (400, 405) and "streaming api is not enabled" in message
    return "unsupported" if is_unknown else None


def _error_of(body: str) -> tuple[str, str]:
    """Return the error code and message from a Bot Service response in lower case, or two empty strings if it
    has none.
    """
    try:
        error = json.loads(body)["error"]
        return str(error["code"]).casefold(), str(error["message"]).casefold()
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ""
