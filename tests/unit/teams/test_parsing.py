"""Tests for interpreting chat messages and identifying their senders."""

import pytest

from shared.access.admission import plain_user
from shared.access.models import UserContext
from shared.access.owner_ids import owner_prefix
from shared.access.security_filter import may_read, principals
from shared.platform.errors import CallerError, NotAuthenticatedError
from shared.runs.events import TodoListStatus
from shared.runs.log_lines import EventName
from shared.runs.models import ClarificationOption
from shared.runs.plan import TodoItem
from shared.teams.messages import MAX_PROGRESS_CHARS, error_text, language_of, progress_line
from shared.teams.models import BotConversation, BotIgnored, BotMessage, BotSender
from shared.teams.parsing import (
    as_answer,
    command_of,
    has_words,
    is_number_of_option,
    is_unknown_command,
    owner_of,
    reply_key,
)
from tests.fakes.run_log import run_event
from tests.fakes.services import OWNER_ID_KEY

PLACE = BotConversation(
    channel="msteams", service_url="https://smba.example/", conversation_id="a:1", bot_id="28:bot"
)
GROUP = PLACE.model_copy(update={"kind": "group"})
ANNA = BotSender(channel_user_id="29:anna", object_id="anna")
OPTIONS = tuple(
    ClarificationOption(number=n, doc_id=f"d{n}", filename=f"report-{year}.pdf", date="2026-01-01")
    for n, year in enumerate((2022, 2023, 2024), start=1)
)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/new", "new"),
        ("NEU", "new"),
        (" sources. ", "sources"),
        ("/Quellen", "sources"),
        ("vergessen!", "forget"),
        ("help?", "help"),
        ("help me with the pump", None),
        ("new regulations", None),
        ("//new", None),
        ("/ new", "new"),
        ("", None),
    ],
)
def test_commands_are_single_words(text: str, command: str | None) -> None:
    assert command_of(text) == command


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("/delete", True),
        ("/neu-x", True),
        ("/123", True),
        ("//new", True),
        ("/forget everything", True),
        ("/New: what is the pressure?", True),
        ("/new", False),
        ("/etc/hosts", False),
        ("/var is full, what now?", False),
        ("what is /x", False),
    ],
)
def test_a_slash_and_one_word_or_a_command_and_more_is_no_question(text: str, unknown: bool) -> None:
    assert is_unknown_command(text) is unknown


@pytest.mark.parametrize(
    ("text", "says_something"),
    [
        ("👍", False),
        ("???", False),
        ("\u200b", False),
        ("ok", True),
        ("3", True),
        ("ما هو الضغط؟", True),
        ("圧力は？", True),
    ],
)
def test_a_message_says_something_in_any_script(text: str, says_something: bool) -> None:
    assert has_words(text) is says_something


@pytest.mark.parametrize(("text", "number"), [("2", True), ("(2).", True), ("2024", False), ("the 2", False)])
def test_a_bare_number_is_an_answer(text: str, number: bool) -> None:
    assert is_number_of_option(text) is number


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2", (2,)),
        ("the last", (3,)),
        ("all", (1, 2, 3)),
        ("2023 please", (2,)),
        ("die zweite", (2,)),
        ("the 2024 one?", (3,)),
    ],
)
def test_an_answer_chooses_options(text: str, numbers: tuple[int, ...]) -> None:
    choice = as_answer(text, OPTIONS)
    assert choice is not None
    assert choice.numbers == numbers


@pytest.mark.parametrize("text", ["only the Hamburg plant", "der von Müller"])
def test_a_few_other_words_are_added_to_the_question(text: str) -> None:
    choice = as_answer(text, OPTIONS)
    assert choice is not None
    assert choice.extra_words == text


@pytest.mark.parametrize(
    "text",
    [
        "What is the torque of the pump?",
        "how hot does it get",
        "I would rather know everything about the pumps in the basement of the plant",
        "And what did the board decide in 2024 about the new plant in Hamburg?",
        "!!!",
    ],
)
def test_a_question_of_its_own_is_no_answer(text: str) -> None:
    assert as_answer(text, OPTIONS) is None


def test_a_number_that_no_option_has_is_told() -> None:
    with pytest.raises(CallerError):
        as_answer("9", OPTIONS)


def test_the_same_activity_has_the_same_key_and_no_other_has() -> None:
    message = BotMessage(activity_id="1", conversation=PLACE, sender=ANNA, text="a")
    again = message.model_copy(update={"text": "edited"})
    others = [
        message.model_copy(update={"activity_id": "2"}),
        message.model_copy(update={"conversation": PLACE.model_copy(update={"conversation_id": "b"})}),
        message.model_copy(update={"conversation": PLACE.model_copy(update={"channel": "webchat"})}),
    ]
    assert reply_key(message, OWNER_ID_KEY) == reply_key(again, OWNER_ID_KEY)
    assert len({reply_key(one, OWNER_ID_KEY) for one in (message, *others)}) == 4
    for one in (message, *others):
        owner = owner_of(one.conversation, one.sender)
        assert reply_key(one, OWNER_ID_KEY).startswith(owner_prefix(owner, OWNER_ID_KEY))
    with pytest.raises(ValueError, match="unhandled message"):
        reply_key(BotIgnored(activity_type="typing"), OWNER_ID_KEY)


def test_a_person_is_who_they_are_elsewhere_and_a_group_is_nobody() -> None:
    assert owner_of(PLACE, ANNA) == "anna"
    assert owner_of(GROUP, ANNA) == owner_of(GROUP, BotSender(channel_user_id="29:ben", object_id="ben"))
    stranger = BotSender(channel_user_id="web-1")
    assert owner_of(PLACE, stranger) != owner_of(PLACE, BotSender(channel_user_id="web-2"))


@pytest.mark.parametrize("conversation", [PLACE, GROUP])
def test_whoever_is_nobody_reads_what_everybody_may_read_and_no_more(conversation: BotConversation) -> None:
    owner = owner_of(conversation, BotSender(channel_user_id="x"))
    user = UserContext(user_id=owner, groups=("engineering",), department="it", org_id="acme")
    assert principals(user) == ("*",)
    assert not may_read(user, (owner, "engineering", "it", "org:acme"))
    assert may_read(user, ("*",))
    with pytest.raises(NotAuthenticatedError):
        plain_user(UserContext(user_id=owner))
    assert plain_user(UserContext(user_id="eve", groups=(owner,), department=owner)).groups == ()


@pytest.mark.parametrize(
    ("locale", "language"), [("de-AT", "de"), ("DE", "de"), ("en-GB", "en"), ("fr-FR", "en"), (None, "en")]
)
def test_fixed_texts_are_german_or_english(locale: str | None, language: str) -> None:
    assert language_of(PLACE.model_copy(update={"locale": locale})) == language


@pytest.mark.parametrize("code", ["NetworkError", "InternalError", "NotFoundError", "AnythingNew", None])
def test_every_error_has_words(code: str | None) -> None:
    assert error_text(code, "ref-1", "de") != error_text(code, "ref-1", "en")
    assert "{" not in error_text(code, "ref-1", "de")


READING = {
    "state": "sub_agent",
    "phase": "started",
    "child": 0,
    "turn": 1,
    "passages": 0,
    "findings": 0,
    "proved": 0,
}


def todo(*statuses: str) -> list[dict[str, object]]:
    return [
        {"position": n, "description": f"Item\n{n}", "acceptance_criteria": "", "status": status}
        for n, status in enumerate(statuses, start=1)
    ]


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("STATUS", {"state": "done", "todo": todo("done", "in_progress", "pending")}, "Step 2 of 3: Item 2"),
        ("STATUS", {"state": "done", "todo": todo("done")}, None),
        ("STATUS", {"state": "started", "attempt": "1"}, None),
        ("STATUS", READING, "Reading more closely …"),
        ("TOOL_STARTED", {"tool": "rag_semantic_search"}, "Searching the documents …"),
        ("TOOL_STARTED", {"tool": "rerank"}, None),
        ("TOKEN", {"text": "x"}, None),
    ],
)
def test_progress_is_the_step_of_the_plan(name: EventName, data: dict[str, object], line: str | None) -> None:
    assert progress_line(run_event(name, **data), "en") == line


def test_a_step_of_the_plan_links_nowhere() -> None:
    item = TodoItem(position=1, description="Read [this](https://evil.example)\u202e", acceptance_criteria="")
    line = progress_line(TodoListStatus(state="done", todo=(item,)), "en")
    assert line == "Step 1 of 1: Read [this] (https: //evil.example)"


def test_a_long_step_is_cut() -> None:
    item = TodoItem(position=1, description="x" * 1000, acceptance_criteria="")
    event = TodoListStatus(state="done", todo=(item,))
    assert len(progress_line(event, "de") or "") == MAX_PROGRESS_CHARS
