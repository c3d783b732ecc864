"""Answers in Teams: streamed text, sources, figures, tables, and only readable documents."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from samples.acl import ANNA
from tests.e2e.stack_client import eventually
from tests.e2e.teams.conftest import App
from tests.e2e.teams.papers import (
    BARRELS_QUESTION,
    KILN,
    KILN_QUESTION,
    ROTA_QUESTION,
    ROTA_SAYS,
)
from tests.e2e.teams.playground import BUBBLE, ROOM, Chat, Playground

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240), pytest.mark.usefixtures("app")]


@pytest.fixture(name="web")
def make_web(app: App) -> Iterator[httpx.Client]:
    """Yield a client with Anna's session in a browser."""
    headers = {"Authorization": f"Bearer {app.stack.token(ANNA)}"}
    with httpx.Client(base_url=f"{app.stack.base_url}/api", headers=headers, timeout=120) as client:
        yield client


def streamed(playground: Playground, kind: str, since: int) -> list[dict[str, Any]]:
    """Return the activities of one kind of the stream, after the first `since`."""
    return [
        one.body
        for one in playground.answers()[since:]
        for entity in one.body.get("entities") or ()
        if entity.get("type") == "streaminfo" and entity.get("streamType") == kind
    ]


def test_an_answer_grows_and_shows_its_sources_and_its_figure(anna: Chat, web: httpx.Client) -> None:
    since = len(anna.playground.answers())
    anna.say(KILN_QUESTION)
    eventually(lambda: streamed(anna.playground, "streaming", since))
    anna.picture("streaming")
    anna.see(KILN)
    assert streamed(anna.playground, "informative", since)
    texts = [one["text"] for one in streamed(anna.playground, "streaming", since)]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))
    # The browser may show the message before the recorder has stored it.
    (final,) = eventually(lambda: streamed(anna.playground, "final", since))
    assert {one.status for one in anna.playground.answers()[since:]} <= {201, 202}
    chip = f"{BUBBLE}:has-text({KILN!r}) .fai-Citation"
    anna.browser.do("wait", page=anna.page, selector=chip)
    anna.browser.do("hover", page=anna.page, selector=chip)
    pictures = anna.browser.do("widths", page=anna.page, selector=f"{BUBBLE} img.ac-image")
    assert [width > 100 for width in pictures] == [True]
    anna.picture("answer-with-chip-and-figure")
    assert "sig=" not in final["text"]
    check_sources(final, web, anna)


def check_sources(final: dict[str, Any], web: httpx.Client, anna: Chat) -> None:
    """Check that each source leads to the app's own page, which opens for its readers."""
    (message,) = [one for one in final["entities"] if one["type"] == "https://schema.org/Message"]
    assert message["additionalType"] == ["AIGeneratedContent"]
    sources = [claim["appearance"] for claim in message["citation"]]
    assert [one["name"] for one in sources if not one["name"].startswith("works.pdf")] == []
    for one in sources:
        assert one["url"].startswith(f"{web.base_url}/documents/".replace("//documents", "/documents"))
        assert web.get(one["url"]).status_code == 200
        assert httpx.get(one["url"], timeout=60).status_code == 401
    assert any(KILN[:30] in one["abstract"] for one in sources)


def test_the_same_conversation_is_in_the_web_page_and_thumbs_are_stored_with_the_run(
    anna: Chat, web: httpx.Client
) -> None:
    anna.begin_anew()
    anna.say(KILN_QUESTION)
    anna.see(KILN)
    anna.rate("Like", "The chart was what I needed.")
    anna.picture("rated")
    thread = web.get("/threads").json()["threads"][0]

    def rated() -> list[Any]:
        messages = web.get(f"/threads/{thread['thread_id']}/messages").json()["messages"]
        return [message["feedback"] for message in messages if message.get("feedback")]

    (feedback,) = eventually(rated)
    assert (feedback["thumb"], feedback["comment"]) == ("up", "The chart was what I needed.")


def test_two_people_get_what_each_may_read(anna: Chat, ben: Chat) -> None:
    people = (anna, ben)
    since = {chat.page: len(chat.playground.answers()) for chat in people}
    for chat in people:
        chat.say(ROTA_QUESTION)
    for chat, other in itertools.permutations(people):
        chat.see(ROTA_SAYS[chat.page])
        chat.picture(f"{chat.page}-may-read")
        assert_nothing_of(chat, since[chat.page], (ROTA_SAYS[other.page], f"rota-{other.page}"))


def assert_nothing_of(chat: Chat, since: int, words: tuple[str, ...]) -> None:
    everything = [str(one.body) for one in chat.playground.answers()[since:]]
    assert everything
    # Whole words only, because message ids are long numbers that may contain any four digits.
    whole = [re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])") for word in words]
    assert not [body for body in everything if any(word.search(body) for word in whole)]


@pytest.mark.parametrize(
    ("agent", "question", "answer"),
    [
        ("engineer", KILN_QUESTION, KILN),
        ("handbook", ROTA_QUESTION, ROTA_SAYS[ANNA.user_id]),
        ("librarian", "Which document is about the kiln in Ludlow?", KILN),
    ],
)
def test_an_agent_answers_once_with_its_own_tools(
    anna: Chat, web: httpx.Client, agent: str, question: str, answer: str
) -> None:
    anna.begin_anew()
    since = len(anna.playground.answers())
    anna.say(f"{agent.capitalize()}: {question}")
    anna.see(answer)
    anna.picture(f"agent-{agent}")
    thread = web.get("/threads").json()["threads"][0]
    (message,) = web.get(f"/threads/{thread['thread_id']}/messages").json()["messages"]
    assert message["question"] == question
    log = web.get(f"/runs/{message['run_id']}/events").text
    assert log.count("event: complete") == 1
    (tools,) = [one["tools"] for one in web.get("/agents").json()["agents"] if one["name"] == agent]
    used = set(re.findall(r'"tool":"(\w+)"', log))
    assert used
    assert used <= set(tools)
    eventually(lambda: streamed(anna.playground, "final", since))
    anna.begin_anew()  # enough time for a second answer to arrive
    assert len(streamed(anna.playground, "final", since)) == 1


def test_the_rows_of_a_calculated_answer_are_a_table(anna: Chat) -> None:
    anna.begin_anew()
    since = len(anna.playground.answers())
    anna.say(BARRELS_QUESTION)
    anna.see("5000")
    (final,) = eventually(lambda: streamed(anna.playground, "final", since))
    bodies = [element for card in final["attachments"] for element in card["content"]["body"]]
    (table,) = [element for element in bodies if element["type"] == "Table"]
    cells = [[cell["items"][0]["text"] for cell in row["cells"]] for row in table["rows"]]
    assert sorted(cells[1:]) == [["Kessel", "2310"], ["Marlow", "5000"]]
    anna.picture("calculated")


def test_a_room_is_told_only_what_everybody_may_read(anna: Chat) -> None:
    anna.go_to(ROOM)
    since = len(anna.playground.answers())
    anna.say(KILN_QUESTION, mentioning=True)
    anna.see("The documents don't answer this")
    anna.say("How many characters must new passwords have at least?", mentioning=True)
    anna.see("14 characters")
    anna.picture("room")
    exchanges = anna.playground.answers()[since:]
    assert [
        one.body["type"] for one in exchanges if one.body["type"] == "typing" and one.body.get("entities")
    ] == []
    assert_nothing_of(anna, since, ("1180", "works.pdf"))
