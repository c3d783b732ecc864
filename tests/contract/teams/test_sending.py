"""How messages reach a channel: refusals, waits, and where nothing is sent; over the Agents SDK."""

import logging
import socket
from typing import Any

import pytest

from shared.platform.errors import (
    AuthenticationError,
    CallerError,
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    PayloadTooLargeError,
    RateLimitError,
)
from shared.platform.telemetry import get_logger
from shared.teams.connector import ChannelConnector
from shared.teams.models import BotReply
from shared.teams.outbox import ChannelOutbox
from tests.contract.teams.connector import Connector, Refusal
from tests.contract.teams.outbox_fixture import connector, no_token, outbox
from tests.contract.teams.signing import bot_settings

pytestmark = pytest.mark.contract
__all__ = ["connector", "outbox"]


async def test_a_channel_that_never_named_us_is_answered(connector: Connector, outbox: ChannelOutbox) -> None:
    await outbox.say(connector.conversation(bot_id="", bot_name=None), BotReply(text="x"))
    assert "from" not in connector.activities[0]


@pytest.mark.parametrize("status", [412, 429, 500, 502])
async def test_a_busy_channel_is_asked_again(
    connector: Connector, outbox: ChannelOutbox, status: int
) -> None:
    connector.refusals = [Refusal(status, headers={"Retry-After": "0.01"})]
    assert await outbox.say(connector.conversation(), BotReply(text="x")) == "m1"
    assert connector.refused == 1


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (Refusal(403, "BotNotInConversationRoster", "a secret of inside"), CallerError),
        (Refusal(404, "ConversationNotFound"), CallerError),
        (Refusal(400, "BadSyntax"), CallerError),
        (Refusal(403, is_json=False), CallerError),
        (Refusal(413, "MessageSizeTooBig"), PayloadTooLargeError),
        (Refusal(401), AuthenticationError),
        (Refusal(429, headers={"Retry-After": "3600"}), RateLimitError),
    ],
)
async def test_a_refusal_is_told_without_internals(
    connector: Connector, outbox: ChannelOutbox, refusal: Refusal, error: type[GroundworkError]
) -> None:
    connector.refusals = [refusal]
    with pytest.raises(error) as raised:
        await outbox.say(connector.conversation(), BotReply(text="x"))
    assert connector.refused == 1
    shown = f"{raised.value.detail} {raised.value.hints} {raised.value.__cause__}"
    assert "secret" not in shown
    assert "127.0.0.1" not in shown
    assert raised.value.__suppress_context__


async def test_a_channel_that_is_gone_is_a_dependency_that_failed(outbox: ChannelOutbox) -> None:
    async with Connector() as gone:
        conversation = gone.conversation()
    with pytest.raises(DependencyError, match="No connection"):
        await outbox.typing(conversation)


async def test_the_log_names_no_conversation_and_holds_no_message(
    connector: Connector, outbox: ChannelOutbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    get_logger()  # as everywhere in the app: the first line sets the levels
    connector.refusals = [Refusal(403)]
    with pytest.raises(CallerError):
        await outbox.say(connector.conversation(conversation_id="the-room"), BotReply(text="the words"))
    await outbox.say(connector.conversation(conversation_id="the-room"), BotReply(text="the words"))
    assert "the-room" not in caplog.text
    assert "the words" not in caplog.text


async def test_what_may_have_arrived_is_not_sent_again(
    connector: Connector, outbox: ChannelOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.teams.connector.TRY_S", 0.1)
    connector.delay_s = 0.3
    with pytest.raises(CallTimeoutError):
        await outbox.say(connector.conversation(), BotReply(text="x"))
    await connector.asked(1)
    assert len(connector.got) == 1


async def test_connections_are_kept_to_a_few_services(connector: Connector, outbox: ChannelOutbox) -> None:
    for number in range(12):
        await outbox.typing(connector.conversation(service_url=f"{connector.service_url}{number}/"))
    assert [got.path.split("/")[2] for got in connector.got] == [str(number) for number in range(12)]
    assert len(outbox._connector._connections) == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"service_url": "https://smba.trafficmanager.net/teams/"},  # not on this machine
        {"service_url": "http://10.0.0.4/"},
        {"service_url": "file:///etc/passwd"},
        {"conversation_id": ".."},
    ],
)
async def test_in_the_local_mode_nothing_leaves_the_machine(
    connector: Connector, outbox: ChannelOutbox, changes: dict[str, Any]
) -> None:
    with pytest.raises(CallerError):
        await outbox.say(connector.conversation(**changes), BotReply(text="x"))
    assert connector.got == []


async def test_nor_by_a_redirect(connector: Connector, outbox: ChannelOutbox) -> None:
    connector.moved_to = "http://169.254.169.254/metadata"
    with pytest.raises(DependencyError):
        await outbox.typing(connector.conversation())


@pytest.mark.parametrize(
    "service_url",
    [
        "http://127.0.0.1:1/",
        "http://smba.trafficmanager.net/teams/",
        "https://smba.trafficmanager.net.evil.example/",
        "https://smba.trafficmanager.net@evil.example/",
        "https://evil.example/",
        "https://contoso.sharepoint.com/",
    ],
)
async def test_a_bot_with_an_identity_shows_its_token_to_the_bot_service_alone(
    connector: Connector, service_url: str
) -> None:
    outbox = ChannelOutbox(bot_settings(), no_token)
    with pytest.raises(CallerError, match="Nothing is sent"):
        await outbox.typing(connector.conversation(service_url=service_url))


async def test_the_bot_service_gets_the_token_of_the_moment(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aiohttp import ClientSession

    tokens = iter(("first", "second"))

    async def token() -> str:
        return next(tokens)

    def to_the_stand_in(_: ChannelConnector, __: str) -> ClientSession:
        return ClientSession(base_url=connector.service_url)

    monkeypatch.setattr(ChannelConnector, "_open", to_the_stand_in)
    outbox = ChannelOutbox(bot_settings(), token)
    conversation = connector.conversation(service_url="https://smba.trafficmanager.net/teams/")
    await outbox.typing(conversation)
    await outbox.typing(conversation)
    await outbox.close()
    assert [got.headers["Authorization"] for got in connector.got] == ["Bearer first", "Bearer second"]


async def test_a_message_with_an_answer_that_nobody_understands_is_not_sent_again(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    connector.refusals = [Refusal(200, is_json=False)]
    assert await outbox.say(connector.conversation(), BotReply(text="x")) == ""
    assert (connector.refused, connector.got) == (1, [])


async def test_a_name_of_the_bot_service_that_leads_into_a_private_network_is_not_followed(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def private(*_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.4", 443))]

    async def token() -> str:
        return "secret"

    monkeypatch.setattr(socket, "getaddrinfo", private)
    outbox = ChannelOutbox(bot_settings(), token)
    with pytest.raises(DependencyError, match="No connection") as raised:
        await outbox.typing(connector.conversation(service_url="https://smba.trafficmanager.net/teams/"))
    await outbox.close()
    assert "SSRF" in type(raised.value.__context__).__name__


@pytest.mark.parametrize(
    ("cloud", "service_url"),
    [
        ("usgov", "https://smba.trafficmanager.net/teams/"),
        ("public", "https://smba.infra.gov.teams.microsoft.us/teams/"),
    ],
)
async def test_a_bot_of_one_cloud_sends_into_no_other(
    connector: Connector, cloud: str, service_url: str
) -> None:
    outbox = ChannelOutbox(bot_settings(bot_cloud=cloud), no_token)
    with pytest.raises(CallerError, match="Nothing is sent"):
        await outbox.typing(connector.conversation(service_url=service_url))


async def test_the_sdks_own_guard_stands_behind_ours() -> None:
    connector = ChannelConnector(bot_settings(), no_token)
    session = connector._open("https://smba.trafficmanager.net/teams")
    try:
        for address in ("https://contoso.sharepoint.com/", "http://127.0.0.1:1/", "https://evil.example/"):
            with pytest.raises(Exception, match="not allowed"):
                await session.get(address)
    finally:
        await session.close()
