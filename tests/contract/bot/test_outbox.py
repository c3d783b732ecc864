"""What is said in chats, over the Agents SDK against a stand-in of the Bot Service's connector."""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shared.clients.bot_connector import ChannelConnector
from shared.clients.bot_outbox import ChannelOutbox
from shared.errors import (
    AuthenticationError,
    CallerError,
    CallTimeoutError,
    DependencyError,
    GroundworkError,
    PayloadTooLargeError,
    RateLimitError,
)
from shared.models.bot import (
    BotReply,
    ButtonCommand,
    ChosenOption,
    ShownButton,
    ShownCitation,
    ShownFigure,
    ShownTable,
)
from shared.telemetry import get_logger
from tests.contract.bot.connector import Connector, Refusal
from tests.contract.bot.signing import bot_settings

pytestmark = pytest.mark.contract

_ANSWER = BotReply(
    text="At 6.5 bar (Source: pump.pdf, S. 3)[1].",
    citations=(
        ShownCitation(
            n=1, name="pump.pdf, p. 3", abstract="It opens at 6.5 bar.", url="https://app.example/3"
        ),
        ShownCitation(n=2, name="other.pdf", abstract="Not in the text.", url=""),
    ),
    figures=(
        ShownFigure(
            caption="The valve",
            image_url="https://store.example/v.png?sig=s",
            page_url="https://app.example/4",
        ),
    ),
    tables=(ShownTable(header=("Plant", "Bar"), rows=(("Hamburg", "6.5[1]"),)),),
    can_be_rated=True,
    is_generated=True,
)


async def _no_token() -> str:
    raise AssertionError("no token leaves this machine")


@pytest.fixture
async def connector() -> AsyncIterator[Connector]:
    async with Connector() as server:
        yield server


@pytest.fixture
async def outbox() -> AsyncIterator[ChannelOutbox]:
    settings = bot_settings(bot_app_id=None, bot_tenant_id=None, bot_local_anonymous=True)
    made = ChannelOutbox(settings, _no_token, stream_interval_s=0.02)
    yield made
    await made.close()


async def test_an_answer_in_teams_has_chips_label_thumbs_and_a_card(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    assert await outbox.say(connector.conversation(), _ANSWER) == "m1"
    sent = connector.activities[0]
    (card,) = sent.pop("attachments")
    assert sent == {
        "type": "message",
        "textFormat": "markdown",
        "text": "At 6.5 bar (Source: pump.pdf, S. 3)[1].",
        "channelId": "msteams",
        "serviceUrl": connector.service_url,
        "conversation": {
            "id": "a:1/x",
            "tenantId": "tenant",
            "conversationType": "personal",
            "isGroup": False,
        },
        "from": {"id": "28:bot", "name": "Groundwork"},
        "channelData": {"feedbackLoop": {"type": "default"}},
        "entities": [
            {
                "type": "https://schema.org/Message",
                "@type": "Message",
                "@context": "https://schema.org",
                "additionalType": ["AIGeneratedContent"],
                "citation": [
                    {
                        "@type": "Claim",
                        "position": 1,
                        "appearance": {
                            "@type": "DigitalDocument",
                            "name": "pump.pdf, p. 3",
                            "abstract": "It opens at 6.5 bar.",
                            "url": "https://app.example/3",
                        },
                    }
                ],
            }
        ],
    }
    assert connector.got[0].path == "/teams/v3/conversations/a:1%2Fx/activities"
    figure, table = card["content"]["body"]
    assert [item["type"] for item in figure["items"]] == ["Image", "TextBlock", "ActionSet"]
    assert figure["items"][0]["url"] == "https://store.example/v.png?sig=s"
    assert figure["items"][2]["actions"][0]["url"] == "https://app.example/4"
    assert table["rows"][1]["cells"][1]["items"][0]["text"] == "6.5[1]"


async def test_options_are_buttons_and_numbers(connector: Connector, outbox: ChannelOutbox) -> None:
    buttons = (
        ShownButton(title="pump_[1].pdf", value=ChosenOption(run_id="r", number=1)),
        ShownButton(title="All", value=ButtonCommand(command="/sources")),
    )
    await outbox.say(connector.conversation(), BotReply(text="Which one?", buttons=buttons))
    sent = connector.activities[0]
    assert sent["text"] == "Which one?\n\n1. pump\\_\\[1\\].pdf"
    actions = [set_["actions"][0] for set_ in sent["attachments"][0]["content"]["body"]]
    assert [action["title"] for action in actions] == ["1. pump_[1].pdf", "All"]
    assert [action["data"]["groundwork"] for action in actions] == [
        {"kind": "choose", "run_id": "r", "number": 1},
        {"kind": "command", "command": "/sources"},
    ]
    assert "channelData" not in sent  # nothing to rate


async def test_other_channels_get_everything_in_words(connector: Connector, outbox: ChannelOutbox) -> None:
    option = ShownButton(title="pump.pdf", value=ChosenOption(run_id="r", number=1))
    reply = _ANSWER.model_copy(update={"buttons": (option,)})
    for channel in ("webchat", "sms"):
        await outbox.say(connector.conversation(channel=channel), reply, reply_to="u7")
    web, sms = connector.activities
    assert web["textFormat"] == "markdown"
    assert web["text"] == (
        "At 6.5 bar (Source: pump.pdf, S. 3)[1].\n\n1. pump.pdf\n\n- The valve: https://app.example/4\n\n"
        "**Sources**\n- [1] pump.pdf, p. 3: “It opens at 6.5 bar.” https://app.example/3\n\n*AI-generated.*"
    )
    assert sms["textFormat"] == "plain"
    assert "**" not in sms["text"]
    assert not {"attachments", "entities", "channelData"} & (web.keys() | sms.keys())
    assert "sig=" not in json.dumps(connector.activities)
    assert connector.got[0].path.endswith("/activities/u7")


async def test_a_long_answer_is_told_in_parts_each_with_its_own_sources(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    paragraphs = [f"{'word ' * 60}[{n}]." for n in range(1, 121)]
    cited = tuple(
        ShownCitation(n=n, name="x" * 200, abstract="y" * 480, url=f"https://app.example/{n}")
        for n in range(1, 121)
    )
    reply = _ANSWER.model_copy(update={"text": "\n\n".join(paragraphs), "citations": cited})
    assert await outbox.say(connector.conversation(), reply) == f"m{len(connector.got)}"
    sent = connector.activities
    assert len(sent) > 4
    assert "\n\n".join(part["text"] for part in sent if part["text"]) == reply.text
    told = [claim["position"] for part in sent for claim in part["entities"][0].get("citation", ())]
    assert told == list(range(1, 121))
    assert all(2 * len(json.dumps(part, ensure_ascii=False)) <= 41_000 for part in sent)
    assert ["channelData" in part for part in sent] == [False] * (len(sent) - 1) + [True]
    assert [bool(part.get("attachments")) for part in sent] == [False] * (len(sent) - 1) + [True]


async def test_sources_of_words_that_no_model_wrote_carry_no_label(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    await outbox.say(connector.conversation(), _ANSWER.model_copy(update={"is_generated": False}))
    (entity,) = connector.activities[0]["entities"]
    assert entity["citation"]
    assert "additionalType" not in entity


async def test_more_sources_than_a_message_takes_come_in_several(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    lines = "\n".join(f"- a statement of some length that is proved [{n}]" for n in range(1, 16))
    cited = tuple(ShownCitation(n=n, name="x", abstract="y", url="") for n in range(1, 16))
    await outbox.say(connector.conversation(), BotReply(text=lines, citations=cited))
    told = [[claim["position"] for claim in sent["entities"][0]["citation"]] for sent in connector.activities]
    assert [n for numbers in told for n in numbers] == list(range(1, 16))
    assert all(len(numbers) <= 10 for numbers in told)


async def test_typing_is_shown(connector: Connector, outbox: ChannelOutbox) -> None:
    await outbox.typing(connector.conversation())
    assert connector.activities[0]["type"] == "typing"


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
    monkeypatch.setattr("shared.clients.bot_connector.TRY_S", 0.1)
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
    outbox = ChannelOutbox(bot_settings(), _no_token)
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


async def test_the_sdks_own_guard_stands_behind_ours() -> None:
    connector = ChannelConnector(bot_settings(), _no_token)
    session = connector._open("https://smba.trafficmanager.net/teams")
    try:
        for address in ("https://contoso.sharepoint.com/", "http://127.0.0.1:1/", "https://evil.example/"):
            with pytest.raises(Exception, match="not allowed"):
                await session.get(address)
    finally:
        await session.close()
