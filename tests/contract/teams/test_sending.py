"""Messages to channels: complete, streamed, and through the outbox."""

import asyncio
import json
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
from shared.teams.models import (
    BotReply,
    ButtonCommand,
    ChosenOption,
    ShownButton,
    ShownCitation,
    ShownFigure,
    ShownTable,
)
from shared.teams.outbox import BotOutbox, BotStream
from tests.contract.teams.connector import Connector, Refusal
from tests.contract.teams.outbox_fixture import connector, no_token, outbox
from tests.contract.teams.signing import bot_settings

pytestmark = pytest.mark.contract

__all__ = ["connector", "outbox"]


async def test_a_channel_that_never_named_us_is_answered(connector: Connector, outbox: BotOutbox) -> None:
    await outbox.say(connector.conversation(bot_id="", bot_name=None), BotReply(text="x"))
    assert "from" not in connector.activities[0]


@pytest.mark.parametrize("status", [412, 429, 500, 502])
async def test_a_busy_channel_is_asked_again(connector: Connector, outbox: BotOutbox, status: int) -> None:
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
    connector: Connector, outbox: BotOutbox, refusal: Refusal, error: type[GroundworkError]
) -> None:
    connector.refusals = [refusal]
    with pytest.raises(error) as raised:
        await outbox.say(connector.conversation(), BotReply(text="x"))
    assert connector.refused == 1
    error_text = f"{raised.value.detail} {raised.value.hints} {raised.value.__cause__}"
    assert "secret" not in error_text
    assert "127.0.0.1" not in error_text
    assert raised.value.__suppress_context__


async def test_a_channel_that_is_gone_is_a_dependency_that_failed(outbox: BotOutbox) -> None:
    async with Connector() as closed_connector:
        conversation = closed_connector.conversation()
    with pytest.raises(DependencyError, match="No connection"):
        await outbox.typing(conversation)


async def test_the_log_names_no_conversation_and_holds_no_message(
    connector: Connector, outbox: BotOutbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    get_logger()  # the first log line sets the levels, as in the app
    connector.refusals = [Refusal(403)]
    with pytest.raises(CallerError):
        await outbox.say(connector.conversation(conversation_id="the-room"), BotReply(text="the words"))
    await outbox.say(connector.conversation(conversation_id="the-room"), BotReply(text="the words"))
    assert "the-room" not in caplog.text
    assert "the words" not in caplog.text


async def test_what_may_have_arrived_is_not_sent_again(
    connector: Connector, outbox: BotOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.teams.connector.TRY_S", 0.1)
    connector.delay_s = 0.3
    with pytest.raises(CallTimeoutError):
        await outbox.say(connector.conversation(), BotReply(text="x"))
    await connector.wait_for_requests(1)
    assert len(connector.got) == 1


async def test_connections_are_kept_to_a_few_services(connector: Connector, outbox: BotOutbox) -> None:
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
    connector: Connector, outbox: BotOutbox, changes: dict[str, Any]
) -> None:
    with pytest.raises(CallerError):
        await outbox.say(connector.conversation(**changes), BotReply(text="x"))
    assert connector.got == []


async def test_nor_by_a_redirect(connector: Connector, outbox: BotOutbox) -> None:
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
    outbox = BotOutbox(bot_settings(), no_token)
    with pytest.raises(CallerError, match="not an allowed Bot Framework host"):
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
    outbox = BotOutbox(bot_settings(), token)
    conversation = connector.conversation(service_url="https://smba.trafficmanager.net/teams/")
    await outbox.typing(conversation)
    await outbox.typing(conversation)
    await outbox.close()
    assert [got.headers["Authorization"] for got in connector.got] == ["Bearer first", "Bearer second"]


async def test_a_message_with_an_answer_that_nobody_understands_is_not_sent_again(
    connector: Connector, outbox: BotOutbox
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
    outbox = BotOutbox(bot_settings(), token)
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
    outbox = BotOutbox(bot_settings(bot_cloud=cloud), no_token)
    with pytest.raises(CallerError, match="not an allowed Bot Framework host"):
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


_LAST = BotReply(text="The valve opens at 6.5 bar [1].", is_generated=True, can_be_rated=True)

_LATE = Refusal(403, "ContentStreamNotAllowed", "Content stream finished due to exceeded streaming time.")

_STOPPED = Refusal(403, "ContentStreamNotAllowed", "Content stream was canceled by user.")

_UNKNOWN = Refusal(400, "BadArgument", "Streaming API is not enabled for this bot")

_REMOVED = Refusal(403, "BotNotInConversationRoster")


async def test_steps_then_text_then_the_whole_message_in_its_place(
    connector: Connector, outbox: BotOutbox
) -> None:
    stream = await outbox.begin(connector.conversation())
    assert stream.is_live
    await stream.inform("Looking\nfor documents")
    await connector.wait_for_requests(1)
    await stream.write("The valve ")
    await connector.wait_for_requests(2)
    await stream.write("opens")
    await connector.wait_for_requests(3)
    assert await stream.finish(_LAST) == "m1"
    updates = [
        (got.stream["streamType"], got.activity["type"], got.activity["text"]) for got in connector.got
    ]
    assert updates == [
        ("informative", "typing", "Looking for documents"),
        ("streaming", "typing", "The valve "),
        ("streaming", "typing", "The valve opens"),
        ("final", "message", _LAST.text),
    ]
    assert [got.stream.get("streamSequence") for got in connector.got] == [1, 2, 3, None]
    assert [got.stream.get("streamId") for got in connector.got] == [None, "m1", "m1", "m1"]
    assert connector.activities[-1]["channelData"] == {"feedbackLoop": {"type": "default"}}
    assert connector.activities[-1]["id"] == "m1"


async def test_updates_come_no_faster_than_the_channel_takes_them(connector: Connector) -> None:
    settings = bot_settings(bot_app_id=None, bot_tenant_id=None, bot_local_anonymous=True)
    outbox = BotOutbox(settings, no_token, stream_interval_s=0.2)
    stream = await outbox.begin(connector.conversation())
    started = asyncio.get_running_loop().time()
    while len(connector.got) < 3:
        await stream.write("word ")
        await asyncio.sleep(0.01)
    await stream.finish(_LAST)
    took_s = asyncio.get_running_loop().time() - started
    await outbox.close()
    assert len(connector.got) <= 2 + took_s / 0.2  # the first update, one after each pause, and the last
    assert connector.activities[-2]["text"].startswith("word word ")


async def test_what_was_never_shown_is_told_whole(connector: Connector, outbox: BotOutbox) -> None:
    stream = await outbox.begin(connector.conversation())
    assert await stream.finish(_LAST) == "m1"
    assert connector.got[0].stream == {}


@pytest.mark.parametrize(
    ("kind", "channel"), [("group", "msteams"), ("channel", "msteams"), ("personal", "webchat")]
)
async def test_elsewhere_the_message_comes_whole(
    connector: Connector, outbox: BotOutbox, kind: str, channel: str
) -> None:
    stream = await outbox.begin(connector.conversation(kind=kind, channel=channel), reply_to="u1")
    assert not stream.is_live
    await stream.inform("Looking")
    await stream.write("text")
    await stream.finish(_LAST)
    assert len(connector.got) == 1
    assert connector.got[0].path.endswith("/activities/u1")


async def test_a_stream_that_took_too_long_is_replaced_by_the_whole_message(
    connector: Connector, outbox: BotOutbox
) -> None:
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.wait_for_requests(1)
    connector.refusals = [_LATE]
    await stream.write(" opens")
    await connector.wait_for_requests(2)
    assert await stream.finish(_LAST) == "m1"
    assert not stream.is_live
    assert [got.method for got in connector.got] == ["POST", "PUT"]
    assert connector.got[1].path.endswith("/activities/m1")
    assert connector.activities[1]["text"] == _LAST.text
    assert connector.got[1].stream == {}


async def test_or_comes_anew_where_it_cannot_be_replaced(connector: Connector, outbox: BotOutbox) -> None:
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.wait_for_requests(1)
    connector.refusals = [_LATE, Refusal(404)]
    assert await stream.finish(_LAST) == "m2"
    assert connector.activities[-1]["text"] == _LAST.text


async def wait_for_message_id(stream: BotStream) -> None:
    """Wait until the channel has assigned the message's id."""
    while not stream.message_id:  # noqa: ASYNC110  # the port has no event for it: nothing else waits
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("is_whole", "methods"), [(False, ["POST", "POST"]), (True, ["POST", "POST", "PUT"])]
)
async def test_a_message_that_a_dead_process_began_becomes_the_whole_one(
    connector: Connector, outbox: BotOutbox, *, is_whole: bool, methods: list[str]
) -> None:
    died = await outbox.begin(connector.conversation())
    await died.write("The valve")
    await connector.wait_for_requests(1)
    await asyncio.wait_for(wait_for_message_id(died), 60)
    if is_whole:
        await died.finish(_LAST)
    stream = await outbox.begin(connector.conversation(), message_id=died.message_id)
    assert not stream.is_live
    await stream.write("The valve")
    assert await stream.finish(_LAST) == "m1"
    assert [got.method for got in connector.got] == methods
    assert {got.stream.get("streamId", "m1") for got in connector.got} == {"m1"}
    assert connector.activities[-1]["text"] == _LAST.text


async def test_or_comes_anew_where_that_message_is_gone(connector: Connector, outbox: BotOutbox) -> None:
    connector.refusals = [Refusal(403, "ContentStreamNotAllowed", "already completed"), Refusal(404)]
    stream = await outbox.begin(connector.conversation(), message_id="m0")
    assert await stream.finish(_LAST) == "m1"
    assert connector.got[0].method == "POST"


@pytest.mark.parametrize("at_the_end", [False, True])
async def test_a_person_who_stops_the_message_gets_no_more_of_it(
    connector: Connector, outbox: BotOutbox, *, at_the_end: bool
) -> None:
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.wait_for_requests(1)
    connector.refusals = [_STOPPED]
    if not at_the_end:
        await stream.write(" opens")
        await connector.wait_for_requests(2)
    assert await stream.finish(_LAST) == "m1"
    assert len(connector.got) == 1


async def test_a_channel_that_knows_no_growing_messages_gets_a_whole_one(
    connector: Connector, outbox: BotOutbox
) -> None:
    connector.refusals = [_UNKNOWN]
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.wait_for_requests(1)
    await stream.write(" opens")
    assert await stream.finish(_LAST) == "m1"
    assert [got.stream for got in connector.got] == [{}]


async def test_an_update_that_fails_is_left_out(connector: Connector, outbox: BotOutbox) -> None:
    connector.refusals = [Refusal(500), Refusal(429, headers={"Retry-After": "0.01"})]
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.wait_for_requests(3)
    assert await stream.finish(_LAST) == "m1"
    assert [got.stream["streamType"] for got in connector.got] == ["streaming", "final"]


async def test_a_channel_that_goes_on_failing_is_left_in_peace_until_the_end(
    connector: Connector, outbox: BotOutbox
) -> None:
    connector.refusals = [Refusal(500)] * 3
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.wait_for_requests(3)
    await asyncio.sleep(0.1)
    await stream.write(" opens")
    assert await stream.finish(_LAST) == "m1"
    assert connector.refused == 3


async def test_updates_that_fail_now_and_then_do_not_end_the_stream(
    connector: Connector, outbox: BotOutbox
) -> None:
    stream = await outbox.begin(connector.conversation())
    for turn in range(4):  # more failures than a stream tolerates in a row
        connector.refusals = [Refusal(500)]
        await stream.write(f"word {turn} ")
        await connector.wait_for_requests(2 * turn + 2)
    assert await stream.finish(_LAST) == "m1"
    assert connector.refused == 4
    assert [got.stream["streamType"] for got in connector.got] == ["streaming"] * 4 + ["final"]


async def test_a_channel_that_asks_for_an_hour_does_not_hold_back_the_answer(
    connector: Connector, outbox: BotOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.teams.outbox.MAX_PAUSE_S", 0.05)
    connector.refusals = [Refusal(429, headers={"Retry-After": "3600"})]
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.wait_for_requests(1)
    async with asyncio.timeout(30):
        assert await stream.finish(_LAST) == "m1"


async def test_a_bot_that_was_removed_says_so_at_the_end(connector: Connector, outbox: BotOutbox) -> None:
    connector.refusals = [_REMOVED, _REMOVED]
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    with pytest.raises(CallerError):
        await stream.finish(_LAST)


async def test_a_text_too_long_for_one_message_ends_in_several(
    connector: Connector, outbox: BotOutbox
) -> None:
    text = "\n\n".join("word " * 100 for _ in range(40))
    stream = await outbox.begin(connector.conversation())
    await stream.write(text[:100])
    await connector.wait_for_requests(1)
    await stream.write(text[100:])
    message_id = await stream.finish(_LAST.model_copy(update={"text": text}))
    assert [got.stream.get("streamType") for got in connector.got] == ["streaming", "final", None, None]
    assert message_id == "m4"
    assert "channelData" not in connector.activities[1]


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

_MESSAGE: dict[str, Any] = {
    "type": "message",
    "textFormat": "markdown",
    "text": "At 6.5 bar (Source: pump.pdf, S. 3)[1].",
    "channelId": "msteams",
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


async def test_an_answer_in_teams_has_chips_label_thumbs_and_a_card(
    connector: Connector, outbox: BotOutbox
) -> None:
    assert await outbox.say(connector.conversation(), _ANSWER) == "m1"
    activity = connector.activities[0]
    (card,) = activity.pop("attachments")
    assert activity == _MESSAGE | {"serviceUrl": connector.service_url}
    assert connector.got[0].path == "/teams/v3/conversations/a:1%2Fx/activities"
    figure, table = card["content"]["body"]
    assert [item["type"] for item in figure["items"]] == ["Image", "TextBlock", "ActionSet"]
    assert figure["items"][0]["url"] == "https://store.example/v.png?sig=s"
    assert figure["items"][2]["actions"][0]["url"] == "https://app.example/4"
    assert table["rows"][1]["cells"][1]["items"][0]["text"] == "6.5[1]"


async def test_options_are_buttons_and_numbers(connector: Connector, outbox: BotOutbox) -> None:
    buttons = (
        ShownButton(title="pump_[1].pdf", value=ChosenOption(run_id="r", number=1)),
        ShownButton(title="All", value=ButtonCommand(command="/sources")),
    )
    await outbox.say(connector.conversation(), BotReply(text="Which one?", buttons=buttons))
    activity = connector.activities[0]
    assert activity["text"] == "Which one?\n\n1. pump\\_\\[1\\].pdf"
    actions = [set_["actions"][0] for set_ in activity["attachments"][0]["content"]["body"]]
    assert [action["title"] for action in actions] == ["1. pump_[1].pdf", "All"]
    assert [action["data"]["groundwork"] for action in actions] == [
        {"kind": "choose", "run_id": "r", "number": 1},
        {"kind": "command", "command": "/sources"},
    ]
    assert "channelData" not in activity  # the message can't be rated


async def test_other_channels_get_everything_in_words(connector: Connector, outbox: BotOutbox) -> None:
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
    connector: Connector, outbox: BotOutbox
) -> None:
    paragraphs = [f"{'word ' * 60}[{n}]." for n in range(1, 121)]
    cited = tuple(
        ShownCitation(n=n, name="x" * 200, abstract="y" * 480, url=f"https://app.example/{n}")
        for n in range(1, 121)
    )
    reply = _ANSWER.model_copy(update={"text": "\n\n".join(paragraphs), "citations": cited})
    assert await outbox.say(connector.conversation(), reply) == f"m{len(connector.got)}"
    activities = connector.activities
    assert len(activities) > 4
    assert "\n\n".join(part["text"] for part in activities if part["text"]) == reply.text
    numbers = [claim["position"] for part in activities for claim in part["entities"][0].get("citation", ())]
    assert numbers == list(range(1, 121))
    assert all(2 * len(json.dumps(part, ensure_ascii=False)) <= 41_000 for part in activities)
    assert ["channelData" in part for part in activities] == [False] * (len(activities) - 1) + [True]
    assert [bool(part.get("attachments")) for part in activities] == [False] * (len(activities) - 1) + [True]


async def test_sources_of_words_that_no_model_wrote_carry_no_label(
    connector: Connector, outbox: BotOutbox
) -> None:
    await outbox.say(connector.conversation(), _ANSWER.model_copy(update={"is_generated": False}))
    (entity,) = connector.activities[0]["entities"]
    assert entity["citation"]
    assert "additionalType" not in entity


async def test_more_sources_than_a_message_takes_are_in_its_card(
    connector: Connector, outbox: BotOutbox
) -> None:
    lines = "\n".join(f"- a statement of some length that is proved [{n}]" for n in range(1, 16))
    cited = tuple(
        ShownCitation(n=n, name="x", abstract="y", url="https://app.example/(n)") for n in range(1, 16)
    )
    await outbox.say(connector.conversation(), BotReply(text=lines, citations=cited))
    (activity,) = connector.activities
    numbers = [claim["position"] for claim in activity["entities"][0]["citation"]]
    _, folded = activity["attachments"][0]["content"]["body"]
    sources = [item["text"] for item in folded["items"] if item["text"].startswith("[")]
    assert len(numbers) + len(sources) == 15
    assert sources[-1] == "[15](https://app.example/%28n%29) x"


async def test_a_text_that_is_too_long_is_unfolded_by_a_button(
    connector: Connector, outbox: BotOutbox
) -> None:
    paragraphs = [f"{number}. {'word ' * 60}" for number in range(1, 40)]
    paragraphs[-1] = "{{DATE(2026)}} and [a link](https://elsewhere.example)"
    reply = _ANSWER.model_copy(update={"text": "\n\n".join(paragraphs), "badge": "Deep analysis"})
    await outbox.say(connector.conversation(), reply)
    (activity,) = connector.activities
    assert activity["text"].endswith("**Deep analysis**\n\n…")
    assert activity["channelData"] == {"feedbackLoop": {"type": "default"}}
    action, folded, *_ = activity["attachments"][0]["content"]["body"]
    assert action["actions"][0]["title"] == "Show all"
    assert action["actions"][0]["targetElements"] == [folded["id"]]
    assert folded["isVisible"] is False
    texts = [item["text"] for item in folded["items"]]
    assert texts[-1] == "{ {DATE(2026)}} and [a link] (https://elsewhere.example)"
    visible_paragraphs = [*activity["text"].split("\n\n")[:-2], *texts[:-1]]
    assert [one.strip() for one in visible_paragraphs] == [one.strip() for one in paragraphs[:-1]]


async def test_typing_is_shown(connector: Connector, outbox: BotOutbox) -> None:
    await outbox.typing(connector.conversation())
    assert connector.activities[0]["type"] == "typing"
