"""Sends one activity at a time to a channel, over the client of the Agents SDK.

Addresses come from outside. So only https to the Bot Service's hosts is allowed, and only there our token;
on a developer's machine (BOT_LOCAL_ANONYMOUS) only loopback, without a token. SDK and aiohttp are imported
when something is sent. An error says what to check, and nothing of what was sent.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from pydantic import ValidationError

from shared.platform.calls import BOT_CHANNEL as SERVICE
from shared.platform.calls import Deadline, call_within, failed, rate_limited, refused, timed_out, unreachable
from shared.platform.connections import Connection
from shared.platform.errors import CallerError, GroundworkError, PayloadTooLargeError
from shared.teams.tokens import CLOUDS, address_parts, is_loopback, is_service

# For annotations alone: the start of the app imports neither.
if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientResponseError, ClientSession
    from microsoft_agents.activity import ResourceResponse
    from microsoft_agents.hosting.core.connector.conversations_base import ConversationsBase

    from shared.platform.settings import Settings
    from shared.teams.models import BotConversation

Wire = dict[str, Any]
Token = Callable[[], Awaitable[str]]
Ending = Literal["stopped", "late", "done", "unsupported"]

SEND_S = 30.0  # one message with all its tries and waits; an activity has 10 minutes
TRY_S = 10.0  # unmeasured
MAX_RETRIES = 4
_MAX_SERVICES = 8  # regions of Teams that one process keeps connections to; there are some 5
_MAX_CONVERSATION_ID_CHARS = 4096  # quoted; the SDK cuts at 150 by itself, which would name another place
_RETRIED = (412, 429)  # the Bot Service asks for both to be sent again
_SDK = "microsoft_agents.hosting.core.connector.client.connector_client"


class StreamEndedError(CallerError):
    """The channel takes no more updates of a growing message.

    Attributes:
        how: `stopped` by the person, or too `late`, or it is whole already, or the channel does not know
            growing messages.
    """

    def __init__(self, how: Ending) -> None:
        super().__init__("The channel has ended the message.")
        self.how = how


class ChannelConnector:
    """Sends to the channels of one bot."""

    def __init__(self, settings: Settings, token: Token) -> None:
        """`token`: gives the bot's own for the Bot Service; never asked in the local mode."""
        self._is_local = (
            settings.bot.local_anonymous and not settings.bot.app_id and not settings.host.in_azure
        )
        self._hosts = CLOUDS[settings.bot.cloud].hosts
        self._token = token
        self._connections: dict[str, Connection[ClientSession]] = {}

    async def close(self) -> None:
        """End all connections."""
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
        """Send an activity, tried again for up to SEND_S; its id, empty when the channel gives none.

        Args:
            reply_to: the message that it answers.
            message_id: the message of ours whose place it takes.
        """
        self._check_allowed(conversation.service_url)
        place = _segment(conversation.conversation_id)

        async def attempt() -> str:
            client = await self._client(conversation.service_url)
            from microsoft_agents.activity import Activity  # here: on the event loop it would take long

            body = Activity.model_validate(activity)
            with _channel_errors():
                if message_id is not None:
                    sent = client.update_activity(place, _segment(message_id), body)
                elif reply_to is not None:
                    sent = client.reply_to_activity(place, _segment(reply_to), body)
                else:
                    sent = client.send_to_conversation(place, body)
                return await _id_of(sent)

        return await call_within(Deadline(SEND_S), max_retries, attempt)

    def _check_allowed(self, service_url: str) -> None:
        """
        Raises:
            CallerError: nothing is sent there.
        """
        parts = address_parts(service_url)
        is_allowed = parts is not None and (
            is_loopback(parts) if self._is_local else is_service(parts, self._hosts)
        )
        if not is_allowed:
            raise CallerError("Nothing is sent to the address that this conversation names.")

    async def _client(self, service_url: str) -> ConversationsBase:
        if service_url not in self._connections:
            while len(self._connections) >= _MAX_SERVICES:
                oldest = next(iter(self._connections))
                await self._connections.pop(oldest).close()
            self._connections[service_url] = Connection(lambda: self._open(service_url), ("aiohttp", _SDK))
        session = await self._connections[service_url].opened()
        if not self._is_local:
            session.headers["Authorization"] = f"Bearer {await self._token()}"
        from microsoft_agents.hosting.core.connector.client.connector_client import ConversationsOperations

        return ConversationsOperations(session, max_conversation_id_length=_MAX_CONVERSATION_ID_CHARS)

    def _open(self, service_url: str) -> ClientSession:
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar
        from microsoft_agents.hosting.core.security import OutboundHostValidator

        how: Wire = {
            "base_url": service_url if service_url.endswith("/") else f"{service_url}/",
            "timeout": ClientTimeout(total=TRY_S),
            "cookie_jar": DummyCookieJar(),
        }
        if self._is_local:
            return ClientSession(middlewares=(_loopback_alone,), **how)
        hosts = [host.removeprefix(".") for host in self._hosts]
        validator = OutboundHostValidator(hosts, enabled=True, include_default_microsoft_hosts=False)
        return validator.client(how)


async def _loopback_alone(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Also where an answer redirects to: what the SDK's validator does for the Bot Service's hosts."""
    parts = address_parts(str(request.url))
    if parts is None or not is_loopback(parts):
        raise OSError("not on this machine")
    return await handler(request)


async def _id_of(sent: Awaitable[ResourceResponse]) -> str:
    """The id that the channel gives; empty for an answer that is not understood: the message is there."""
    try:
        return (await sent).id or ""
    except ValidationError:
        return ""


def _segment(name: str) -> str:
    """An id as one part of a path.

    Raises:
        CallerError: it would lead elsewhere.
    """
    if not name or set(name) == {"."}:
        raise CallerError("The conversation has no id that could be answered.")
    return quote(name, safe="")


@contextmanager
def _channel_errors() -> Iterator[None]:
    from aiohttp import ClientError, ClientResponseError

    try:
        yield
    except ClientResponseError as error:
        raise _as_ours(error) from None
    except TimeoutError:
        raise timed_out(SERVICE) from None
    except (
        ClientError,
        OSError,
        ValueError,
    ):  # the last: the SDK's guard, of addresses that names resolve to
        raise unreachable(SERVICE) from None


def _as_ours(error: ClientResponseError) -> GroundworkError:
    code, said = _told(error.message)
    if (ending := _ending(error.status, code, said)) is not None:
        return StreamEndedError(ending)
    headers: Mapping[str, str] = error.headers or {}
    if error.status in _RETRIED:
        return rate_limited(SERVICE, headers)
    if error.status == 413 or code == "messagesizetoobig":
        return PayloadTooLargeError(f"Too large for {SERVICE.name}.")
    if error.status == 401:
        return refused(SERVICE)
    if error.status in (400, 403, 404, 405, 410):
        return CallerError(f"{SERVICE.name.capitalize()} takes no such message there.", SERVICE.access_hint)
    return failed(SERVICE, error.status)


def _ending(status: int, code: str, said: str) -> Ending | None:
    """How a growing message has ended; None for another error. `code` and `said` in lower case."""
    if status == 403 and code == "contentstreamnotallowed":
        if "exceeded streaming time" in said:
            return "late"
        if "already completed" in said:
            return "done"
        return "stopped" if "cancel" in said else "unsupported"
    is_unknown = status in (400, 405) and "streaming api is not enabled" in said
    return "unsupported" if is_unknown else None


def _told(body: str) -> tuple[str, str]:
    """Code and words of an error of the Bot Service, in lower case; empty for anything else."""
    try:
        error = json.loads(body)["error"]
        return str(error["code"]).casefold(), str(error["message"]).casefold()
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ""
