"""What is said in chats, over the Agents SDK against a stand-in of the Bot Service's connector."""

import json
from typing import Any

import pytest

from shared.teams.models import (
    BotReply,
    ButtonCommand,
    ChosenOption,
    ShownButton,
    ShownCitation,
    ShownFigure,
    ShownTable,
)
from shared.teams.outbox import ChannelOutbox
from tests.contract.teams.connector import Connector
from tests.contract.teams.outbox_fixture import connector, outbox

pytestmark = pytest.mark.contract
__all__ = ["connector", "outbox"]

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
    connector: Connector, outbox: ChannelOutbox
) -> None:
    assert await outbox.say(connector.conversation(), _ANSWER) == "m1"
    sent = connector.activities[0]
    (card,) = sent.pop("attachments")
    assert sent == _MESSAGE | {"serviceUrl": connector.service_url}
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
