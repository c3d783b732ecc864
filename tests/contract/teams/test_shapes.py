"""What activities say, and which say nothing that can be taken: hostile, malformed, oversized."""

import json
from typing import Any

import pytest

from functions.http.responses import MAX_BODY_BYTES
from tests.contract.teams.bot_fixture import local_app, teams_app
from tests.contract.teams.signing import TENANT, Messages, signed, teams_message
from tests.unit.functions.http_app import problem_of

__all__ = ["local_app", "teams_app"]

pytestmark = pytest.mark.contract

DEEP = b'{"type":"message","value":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
HOSTILE: dict[str, Any] = {
    "no object": [],
    "a list of activities": [teams_message()],
    "null": b"null",
    "a number": b"1",
    "two documents": b"{}{}",
    "no UTF-8": b'{"type":"\xff\xfe"}',
    "a lone surrogate": b'{"type":"message","id":"\\ud800"}',
    "deep": DEEP,
    "deep objects": b'{"channelData":' * 5000 + b"1" + b"}" * 5000,
    "nothing": {"type": None},
    "no type": teams_message(type=None),
    "type as number": teams_message(type=1),
    "type as object": teams_message(type={"message": 1}),
    "an empty type": teams_message(type=""),
    "no channel": teams_message(channelId=None),
    "no conversation": teams_message(conversation=None),
    "conversation as text": teams_message(conversation="a"),
    "conversation without id": teams_message(conversation={"tenantId": TENANT}),
    "conversation id as object": teams_message(conversation={"id": {}, "tenantId": TENANT}),
    "an empty conversation id": teams_message(conversation={"id": "", "tenantId": TENANT}),
    "a huge conversation id": teams_message(conversation={"id": "x" * 5000, "tenantId": TENANT}),
    "an id of control characters": teams_message(id="a\u0000b"),
    "an id with line breaks": teams_message(id="a\r\nX-Header: b"),
    "no id": teams_message(id=None),
    "a huge id": teams_message(id="9" * 5000),
    "id as number": teams_message(id=17),
    "nobody": {**teams_message(), "from": None},
    "from as list": {**teams_message(), "from": [{"id": "a"}]},
    "from without id": {**teams_message(), "from": {"name": "Ada"}},
    "a huge name": {**teams_message(), "from": {"id": "a", "name": "x" * 100_000}},
    "object id as object": {**teams_message(), "from": {"id": "a", "aadObjectId": {"$ne": None}}},
    "no recipient": teams_message(recipient=None),
    "text as object": teams_message(text={"$gt": ""}),
    "text as list": teams_message(text=["a"]),
    "a broken instant": teams_message(timestamp="yesterday"),
    "entities as object": teams_message(entities={"type": "mention"}),
    "a thousand entities": teams_message(entities=[{"type": "mention"}] * 1000),
    "attachments as object": teams_message(attachments={"contentType": "a"}),
    "attachment without type": teams_message(attachments=[{"contentUrl": "https://a"}]),
    "a hundred attachments": teams_message(attachments=[{"contentType": "a"}] * 100),
    "feedback without reaction": teams_message(
        type="invoke", name="message/submitAction", value={"actionName": "feedback"}, replyToId="1"
    ),
    "feedback of another thumb": teams_message(
        type="invoke",
        name="message/submitAction",
        value={"actionName": "feedback", "actionValue": {"reaction": "laugh"}},
        replyToId="1",
    ),
    "feedback on nothing": teams_message(
        type="invoke",
        name="message/submitAction",
        value={"actionName": "feedback", "actionValue": {"reaction": "like"}},
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_what_is_no_activity_is_refused_and_changes_nothing(teams_app: Messages, case: str) -> None:
    activity = HOSTILE[case]
    answered = await teams_app.post(
        activity if isinstance(activity, bytes) else json.dumps(activity).encode(), signed()
    )
    assert problem_of(answered) == (400, "InvalidRequestError")
    assert teams_app.has_changed_nothing()
    assert "$ne" not in answered.text
    assert "pydantic" not in answered.text


@pytest.mark.parametrize("authorization", [None, signed()], ids=["stranger", "channel"])
async def test_more_than_256_kib_are_not_read(teams_app: Messages, authorization: str | None) -> None:
    for size in (MAX_BODY_BYTES + 1, 20 * MAX_BODY_BYTES):
        answered = await teams_app.post(teams_message(text="x" * size), authorization)
        assert problem_of(answered) == (413, "PayloadTooLargeError")
    assert teams_app.has_changed_nothing()


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
async def test_what_does_not_say_that_it_is_json_is_refused(teams_app: Messages, content_type: str) -> None:
    answered = await teams_app.post(authorization=signed(), headers={"Content-Type": content_type})
    assert problem_of(answered)[0] == 400
    assert teams_app.has_changed_nothing()


IGNORED: dict[str, dict[str, Any]] = {
    "typing": {"type": "typing", "id": None, "text": None},
    "an unknown type": {"type": "constructor"},
    "a reaction": {"type": "messageReaction", "reactionsAdded": [{"type": "like"}]},
    "an edited message": {"type": "messageUpdate"},
    "an installation": {"type": "installationUpdate", "action": "add"},
    "members gone": {"type": "conversationUpdate", "membersRemoved": [{"id": "28:bot"}]},
    "an empty message": {"text": "  "},
    "a card of somebody else": {"text": None, "value": {"kind": "choose", "run_id": ["x"]}},
    "our own message": {"from": {"id": "28:bot"}},
    "a file's consent": {"type": "invoke", "name": "fileConsent/invoke", "value": {"action": "accept"}},
    "an invoke of any value": {"type": "invoke", "name": "task/fetch", "value": "x"},
}


@pytest.mark.parametrize("case", IGNORED)
async def test_what_asks_nothing_of_us_is_acknowledged_and_changes_nothing(
    teams_app: Messages, case: str
) -> None:
    activity = teams_message(**IGNORED[case])
    answered = await teams_app.post(activity, signed())
    assert answered.status_code == (200 if activity["type"] == "invoke" else 202)
    assert teams_app.has_changed_nothing()
