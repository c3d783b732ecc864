"""A message that grows in a chat of Teams, against a stand-in of the Bot Service's connector."""

import asyncio

import pytest

from shared.platform.errors import CallerError
from shared.teams.models import BotReply
from shared.teams.outbox import BotStream, ChannelOutbox
from tests.contract.teams.connector import Connector, Refusal
from tests.contract.teams.outbox_fixture import connector, no_token, outbox
from tests.contract.teams.signing import bot_settings

pytestmark = pytest.mark.contract
__all__ = ["connector", "outbox"]

_LAST = BotReply(text="The valve opens at 6.5 bar [1].", is_generated=True, can_be_rated=True)
_LATE = Refusal(403, "ContentStreamNotAllowed", "Content stream finished due to exceeded streaming time.")
_STOPPED = Refusal(403, "ContentStreamNotAllowed", "Content stream was canceled by user.")
_UNKNOWN = Refusal(400, "BadArgument", "Streaming API is not enabled for this bot")
_REMOVED = Refusal(403, "BotNotInConversationRoster")


async def test_steps_then_text_then_the_whole_message_in_its_place(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    stream = await outbox.begin(connector.conversation())
    assert stream.is_live
    await stream.inform("Looking\nfor documents")
    await connector.asked(1)
    await stream.write("The valve ")
    await connector.asked(2)
    await stream.write("opens")
    await connector.asked(3)
    assert await stream.finish(_LAST) == "m1"
    told = [(got.stream["streamType"], got.activity["type"], got.activity["text"]) for got in connector.got]
    assert told == [
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
    outbox = ChannelOutbox(settings, no_token, stream_interval_s=0.2)
    stream = await outbox.begin(connector.conversation())
    started = asyncio.get_running_loop().time()
    for _ in range(40):
        await stream.write("word ")
        await asyncio.sleep(0.01)
    await stream.finish(_LAST)
    took_s = asyncio.get_running_loop().time() - started
    await outbox.close()
    assert 3 <= len(connector.got) <= 2 + took_s / 0.2  # the first, one after each pause, the last
    assert connector.activities[-2]["text"].startswith("word word ")


async def test_what_was_never_shown_is_told_whole(connector: Connector, outbox: ChannelOutbox) -> None:
    stream = await outbox.begin(connector.conversation())
    assert await stream.finish(_LAST) == "m1"
    assert connector.got[0].stream == {}


@pytest.mark.parametrize(
    ("kind", "channel"), [("group", "msteams"), ("channel", "msteams"), ("personal", "webchat")]
)
async def test_elsewhere_the_message_comes_whole(
    connector: Connector, outbox: ChannelOutbox, kind: str, channel: str
) -> None:
    stream = await outbox.begin(connector.conversation(kind=kind, channel=channel), reply_to="u1")
    assert not stream.is_live
    await stream.inform("Looking")
    await stream.write("text")
    await stream.finish(_LAST)
    assert len(connector.got) == 1
    assert connector.got[0].path.endswith("/activities/u1")


async def test_a_stream_that_took_too_long_is_replaced_by_the_whole_message(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.asked(1)
    connector.refusals = [_LATE]
    await stream.write(" opens")
    await connector.asked(2)
    assert await stream.finish(_LAST) == "m1"
    assert not stream.is_live
    assert [got.method for got in connector.got] == ["POST", "PUT"]
    assert connector.got[1].path.endswith("/activities/m1")
    assert connector.activities[1]["text"] == _LAST.text
    assert connector.got[1].stream == {}


async def test_or_comes_anew_where_it_cannot_be_replaced(connector: Connector, outbox: ChannelOutbox) -> None:
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.asked(1)
    connector.refusals = [_LATE, Refusal(404)]
    assert await stream.finish(_LAST) == "m2"
    assert connector.activities[-1]["text"] == _LAST.text


async def known(stream: BotStream) -> None:
    """Wait until the channel's id of the message has come."""
    while not stream.message_id:  # noqa: ASYNC110  # the port has no event for it: nothing else waits
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("is_whole", "methods"), [(False, ["POST", "POST"]), (True, ["POST", "POST", "PUT"])]
)
async def test_a_message_that_a_dead_process_began_becomes_the_whole_one(
    connector: Connector, outbox: ChannelOutbox, *, is_whole: bool, methods: list[str]
) -> None:
    died = await outbox.begin(connector.conversation())
    await died.write("The valve")
    await connector.asked(1)
    await asyncio.wait_for(known(died), 5)
    if is_whole:
        await died.finish(_LAST)
    begun = await outbox.begin(connector.conversation(), message_id=died.message_id)
    assert not begun.is_live
    await begun.write("The valve")
    assert await begun.finish(_LAST) == "m1"
    assert [got.method for got in connector.got] == methods
    assert {got.stream.get("streamId", "m1") for got in connector.got} == {"m1"}
    assert connector.activities[-1]["text"] == _LAST.text


async def test_or_comes_anew_where_that_message_is_gone(connector: Connector, outbox: ChannelOutbox) -> None:
    connector.refusals = [Refusal(403, "ContentStreamNotAllowed", "already completed"), Refusal(404)]
    begun = await outbox.begin(connector.conversation(), message_id="m0")
    assert await begun.finish(_LAST) == "m1"
    assert connector.got[0].method == "POST"


@pytest.mark.parametrize("at_the_end", [False, True])
async def test_a_person_who_stops_the_message_gets_no_more_of_it(
    connector: Connector, outbox: ChannelOutbox, *, at_the_end: bool
) -> None:
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.asked(1)
    connector.refusals = [_STOPPED]
    if not at_the_end:
        await stream.write(" opens")
        await connector.asked(2)
    assert await stream.finish(_LAST) == "m1"
    assert len(connector.got) == 1


async def test_a_channel_that_knows_no_growing_messages_gets_a_whole_one(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    connector.refusals = [_UNKNOWN]
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.asked(1)
    await stream.write(" opens")
    assert await stream.finish(_LAST) == "m1"
    assert [got.stream for got in connector.got] == [{}]


async def test_an_update_that_fails_is_left_out(connector: Connector, outbox: ChannelOutbox) -> None:
    connector.refusals = [Refusal(500), Refusal(429, headers={"Retry-After": "0.01"})]
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.asked(3)
    assert await stream.finish(_LAST) == "m1"
    assert [got.stream["streamType"] for got in connector.got] == ["streaming", "final"]


async def test_a_channel_that_goes_on_failing_is_left_in_peace_until_the_end(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    connector.refusals = [Refusal(500)] * 3
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    await connector.asked(3)
    await asyncio.sleep(0.1)
    await stream.write(" opens")
    assert await stream.finish(_LAST) == "m1"
    assert connector.refused == 3


async def test_a_bot_that_was_removed_says_so_at_the_end(connector: Connector, outbox: ChannelOutbox) -> None:
    connector.refusals = [_REMOVED, _REMOVED]
    stream = await outbox.begin(connector.conversation())
    await stream.write("The valve")
    with pytest.raises(CallerError):
        await stream.finish(_LAST)


async def test_a_text_too_long_for_one_message_ends_in_several(
    connector: Connector, outbox: ChannelOutbox
) -> None:
    text = "\n\n".join("word " * 100 for _ in range(40))
    stream = await outbox.begin(connector.conversation())
    await stream.write(text[:100])
    await connector.asked(1)
    await stream.write(text[100:])
    sent = await stream.finish(_LAST.model_copy(update={"text": text}))
    assert [got.stream.get("streamType") for got in connector.got] == ["streaming", "final", None, None]
    assert sent == "m4"
    assert "channelData" not in connector.activities[1]
