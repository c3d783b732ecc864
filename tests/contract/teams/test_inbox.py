"""Activities of any shape: which are refused, and how the others are parsed."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from microsoft_agents.activity import Activity

from functions.http.bodies import MAX_BODY_BYTES
from shared.platform.errors import AuthenticationError, CallerError
from shared.platform.search import IndexRow
from shared.teams.activities import read_activity
from shared.teams.inbox import as_activity
from shared.teams.models import BotActivity, BotMessage, ButtonCommand, ChosenOption
from shared.teams.tokens import CLOUDS, address_parts, is_service
from tests.contract.teams.bot_fixture import keys_from, local_app, teams_app
from tests.contract.teams.signing import (
    PERSON,
    SERVICE,
    TENANT,
    Messages,
    bot_services,
    bot_settings,
    key_answer,
    messages,
    signed,
    teams_message,
)
from tests.fakes.search_index import InMemorySearchAdmin
from tests.unit.functions.http_app import problem_of

GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# The time to generate JSON depends on the load of the machine and not on the tested code.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

TYPES = ("message", "invoke", "conversationUpdate", "typing", "event")

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)

nested = st.sampled_from(
    ["from", "recipient", "conversation", "channelData", "value", "entities", "attachments", "membersAdded"]
)


def understood(activity: Any) -> BotActivity | None:
    body = json.dumps(activity).encode()
    try:
        return as_activity(read_activity(body), body, is_local=False)
    except CallerError:
        return None


@patient
@given(
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from([*teams_message(), "value", "replyToId", "membersAdded"]), anything),
)
def test_any_values_of_any_fields(kind: str, changes: dict[str, Any]) -> None:
    activity = understood({**teams_message(type=kind), **changes})
    if activity is not None and activity.kind != "ignored":
        object_id = activity.sender.object_id
        assert object_id is None or GUID.fullmatch(object_id)
        assert activity.conversation.conversation_id.isprintable()


@patient
@given(nested, st.text(max_size=12), anything)
def test_any_value_within_a_field(field: str, name: str, value: Any) -> None:
    inner = teams_message().get(field)
    changed = {**inner, name: value} if isinstance(inner, dict) else [{name: value, "type": "mention"}]
    understood(teams_message(**{field: changed}))


@patient
@given(anything)
def test_any_document(activity: Any) -> None:
    understood(activity)


@patient
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_any_address_is_read_or_refused_and_none_by_chance_is_the_services(text: str) -> None:
    for address in (text, f"https://{text}", f"https://{text}.botframework.com/", f"https://{text}@x.y/"):
        parts = address_parts(address)
        if parts is not None and is_service(parts, CLOUDS["public"].hosts):
            assert (parts.hostname or "").endswith(
                (".botframework.com", "smba.trafficmanager.net", ".microsoft.com")
            )
            assert parts.username is None


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


async def receive_activity(app: Messages, **changes: Any) -> BotActivity:
    """Return the activity that the inbox parsed from a Teams message. The SDK must accept it as well."""
    activity = teams_message(**changes)
    Activity.model_validate(activity)
    answered = await app.post(activity, signed())
    assert answered.status_code == 202, answered.text
    return app.handled[-1]


async def message(app: Messages, **changes: Any) -> BotMessage:
    activity = await receive_activity(app, **changes)
    assert isinstance(activity, BotMessage)
    return activity


class NoSearchService(InMemorySearchAdmin):
    async def ensure_index(self, definition: IndexRow) -> bool:
        raise AuthenticationError("Access to the search service was refused.")


async def test_a_message_is_taken_down_while_there_is_no_search_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with keys_from(key_answer("msteams")) as (keys, _):
        services = replace(bot_services(keys, bot_settings()), search_admin=NoSearchService())
        app = messages(monkeypatch, services)
        assert (await app.post(authorization=signed())).status_code == 202
    assert len(app.handled) == 1


async def test_a_message_says_who_wrote_what_where(teams_app: Messages) -> None:
    bot_message = await message(teams_app)
    assert bot_message.model_dump(mode="json", exclude={"sender", "sent_at"}) == {
        "kind": "message",
        "activity_id": "1700000000000",
        "conversation": {
            "channel": "msteams",
            "service_url": SERVICE,
            "conversation_id": "a:1xyz",
            "kind": "personal",
            "tenant_id": TENANT,
            "bot_id": "28:bot",
            "bot_name": "Groundwork",
            "locale": "de-DE",
        },
        "text": "What is the pressure?",
        "button": None,
        "attachments": [],
    }
    assert bot_message.sender.name == "Ada"
    assert bot_message.sent_at is not None
    assert bot_message.sent_at.isoformat() == "2026-01-02T03:04:05.678000+00:00"


@pytest.mark.parametrize(
    ("conversation", "kind"),
    [
        ({"conversationType": "personal"}, "personal"),
        ({"conversationType": "groupChat"}, "group"),
        ({"conversationType": "groupChat", "isGroup": False}, "group"),
        ({"conversationType": "channel"}, "channel"),
        ({"conversationType": "constructor"}, "group"),
        ({}, "group"),
        ({"isGroup": True}, "group"),
    ],
)
async def test_where_it_is_not_said_that_one_person_reads_several_might(
    teams_app: Messages, conversation: dict[str, Any], kind: str
) -> None:
    bot_message = await message(teams_app, conversation={"id": "a", "tenantId": TENANT, **conversation})
    assert bot_message.conversation.kind == kind


async def test_a_mention_of_us_is_no_part_of_a_question_and_one_of_others_is(teams_app: Messages) -> None:
    entities = [
        {"type": "mention", "mentioned": {"id": "28:bot", "name": "GW"}, "text": "<at>GW</at>"},
        {"type": "mention", "mentioned": {"id": "29:eve", "name": "Eve"}, "text": "<at>Eve</at>"},
    ]
    bot_message = await message(
        teams_app, text="<at>GW</at>\u00a0 what does <at>Eve</at> say? ", entities=entities
    )
    assert bot_message.text == "what does <at>Eve</at> say?"


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "choose", "run_id": "r1", "number": 2},
        {"groundwork": {"kind": "choose", "run_id": "r1", "number": 2}, "msteams": {"type": "messageBack"}},
        '{"kind": "choose", "run_id": "r1", "number": 2}',
    ],
)
async def test_a_button_says_what_was_chosen(teams_app: Messages, value: Any) -> None:
    bot_message = await message(teams_app, text=None, value=value)
    assert bot_message.button == ChosenOption(run_id="r1", number=2)


async def test_a_button_may_be_a_command(teams_app: Messages) -> None:
    bot_message = await message(teams_app, text=None, value={"kind": "command", "command": "/sources"})
    assert bot_message.button == ButtonCommand(command="/sources")


@pytest.mark.parametrize(
    "value",
    [
        "not json",
        "[" * 5000,
        [1],
        {"kind": "constructor"},
        {"__proto__": {"kind": "command", "command": "/forget"}},
        {"kind": "choose", "run_id": "r1", "number": "two"},
        {"kind": "choose", "run_id": "r1", "number": 2, "user_id": "root"},
        {"groundwork": "x"},
    ],
    ids=str,
)
async def test_a_value_that_is_no_button_of_ours_is_passed_over(teams_app: Messages, value: Any) -> None:
    assert (await message(teams_app, value=value)).button is None


async def test_files_are_taken_and_the_text_in_other_forms_is_not(teams_app: Messages) -> None:
    download = {"downloadUrl": "https://contoso-my.sharepoint.com/f?tempauth=x", "fileType": "pdf"}
    attachments = [
        {"contentType": "text/html", "content": "<p>What is the pressure?</p>"},
        {
            "contentType": "application/vnd.microsoft.teams.file.download.info",
            "contentUrl": "https://contoso-my.sharepoint.com/personal/ada/report.pdf",
            "name": "report.pdf",
            "content": download,
        },
        {"contentType": "image/*", "contentUrl": f"{SERVICE}v3/attachments/1/views/original"},
        {"contentType": "application/vnd.microsoft.card.adaptive", "content": {}},
        {"contentType": "application/vnd.microsoft.teams.file.download.info", "content": "x"},
    ]
    report, picture = (await message(teams_app, text=None, attachments=attachments)).attachments
    assert (report.name, report.url, report.is_hosted) == ("report.pdf", download["downloadUrl"], False)
    assert re.fullmatch(r"picture-2026-01-02-[0-9a-f]{8}-3\.png", picture.name)
    assert picture.is_hosted


async def test_pasted_pictures_have_names_of_their_own(teams_app: Messages) -> None:
    """Check that names are unique, because a picture named like another document of the user would become its
    next version.
    """
    pasted = [{"contentType": "image/*", "contentUrl": f"{SERVICE}v3/attachments/1/views/original"}] * 2
    names = [
        one.name
        for activity_id in ("1", "2")
        for one in (await message(teams_app, id=activity_id, attachments=pasted)).attachments
    ]
    assert len(set(names)) == 4
    again = (await message(teams_app, id="1", attachments=pasted)).attachments
    assert [one.name for one in again] == names[:2]


async def test_a_thumb_comes_with_the_message_that_it_is_for(teams_app: Messages) -> None:
    teams_app.answer = {"status": "ok"}
    activity = teams_message(
        type="invoke",
        name="message/submitAction",
        text=None,
        replyToId="1699999999999",
        value={
            "actionName": "feedback",
            "actionValue": {"reaction": "dislike", "feedback": json.dumps({"feedbackText": "Wrong page"})},
        },
    )
    answered = await teams_app.post(activity, signed())
    assert (answered.status_code, answered.json()) == (200, {"status": "ok"})
    (feedback,) = teams_app.handled
    assert feedback.kind == "feedback"
    assert (feedback.message_id, feedback.thumb, feedback.comment) == ("1699999999999", "down", "Wrong page")


@pytest.mark.parametrize(
    ("feedback", "comment"),
    [("plain words", "plain words"), ("{}", ""), (None, ""), ("[" * 5000, "[" * 2000), ('"x"', "")],
)
async def test_the_words_beside_a_thumb_come_in_several_forms(
    teams_app: Messages, feedback: str | None, comment: str
) -> None:
    action = {"actionName": "feedback", "actionValue": {"reaction": "like", "feedback": feedback}}
    activity = await receive_activity(
        teams_app, type="invoke", name="message/submitAction", value=action, replyToId="1"
    )
    assert activity.kind == "feedback"
    assert (activity.thumb, activity.comment) == ("up", comment)


async def test_the_playground_rates_the_last_message(local_app: Messages) -> None:
    action = {"actionName": "feedback", "actionValue": {"reaction": "like", "feedback": ""}}
    activity = teams_message(
        type="invoke",
        name="message/submitAction",
        text=None,
        value=action,
        serviceUrl="http://127.0.0.1:5000/_connector",
        channelData={"source": {"name": "message"}},
    )
    local_app.answer = {}
    assert (await local_app.post(activity)).status_code == 200
    (feedback,) = local_app.handled
    assert feedback.kind == "feedback"
    assert (feedback.message_id, feedback.comment) == ("", "")


@pytest.mark.parametrize(("member_id", "is_us"), [("28:bot", True), ("29:1abc", False)])
async def test_who_joins_is_known(teams_app: Messages, member_id: str, is_us: bool) -> None:
    activity = await receive_activity(
        teams_app, type="conversationUpdate", membersAdded=[{"id": member_id}], text=None
    )
    assert activity.kind == "joined"
    assert activity.is_us == is_us


async def test_the_same_event_without_an_id_is_the_same_event(teams_app: Messages) -> None:
    for _ in range(2):
        await receive_activity(teams_app, type="conversationUpdate", membersAdded=[{"id": "28:bot"}], id=None)
    first, second = teams_app.handled
    assert first.kind == second.kind == "joined"
    assert first.activity_id == second.activity_id != ""


async def test_an_object_id_that_is_none_of_entras_is_nobodys(teams_app: Messages) -> None:
    for name in ("*", "anna", "conversation:1", "org:1", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee "):
        bot_message = await message(teams_app, **{"from": {"id": "29:1", "aadObjectId": name}})
        assert bot_message.sender.object_id is None


async def test_a_person_is_the_same_as_in_the_web(teams_app: Messages) -> None:
    bot_message = await message(teams_app, **{"from": {"id": "29:1", "aadObjectId": PERSON.upper()}})
    assert bot_message.sender.object_id == PERSON
