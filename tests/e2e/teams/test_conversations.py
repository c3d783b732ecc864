"""Turns of a conversation in Teams: clarifications, redelivery, slow answers, and errors."""

import httpx
import pytest

from tests.e2e.stack_client import eventually
from tests.e2e.teams.conftest import MODEL, App
from tests.e2e.teams.papers import KILN, KILN_QUESTION, PRESS_QUESTION, PRESS_SAYS
from tests.e2e.teams.playground import BUBBLE, Chat

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

ASKED = "press-report-2023.md"


@pytest.fixture
def slow(prepared: App) -> App:
    """Return the app with a model that is slower than the time limit of a streamed message."""
    patient = {"BOT_STREAM_SECONDS": "2", "MAX_TOTAL_LATENCY_MS": "240000"}
    return prepared.use(CHAT_MODEL=f"{MODEL}@tps=10,only=answer", **patient)


@pytest.fixture
def broken(prepared: App) -> App:
    """Return the app with a search index that rejects the app's credentials."""
    return prepared.use(AZURE_SEARCH_API_KEY="not-the-key-of-the-index")


def test_a_question_back_is_answered(app: App, anna: Chat) -> None:
    anna.begin_anew()
    anna.say(PRESS_QUESTION)
    button = f'.ac-actionSet button:has-text("{ASKED}")'
    anna.browser.do("wait", page=anna.page, selector=button, within_s=180)
    anna.picture("question-back")
    anna.press(ASKED)
    anna.see(PRESS_SAYS[2023])
    assert not [text for text in anna.bubbles() if PRESS_SAYS[2024] in text]
    anna.picture("chosen")


def test_what_is_delivered_again_is_answered_once(app: App, anna: Chat) -> None:
    anna.say(KILN_QUESTION)
    anna.see(KILN)
    exchange = [one for one in anna.playground.incoming.exchanges if one.body.get("text") == KILN_QUESTION][
        -1
    ]
    answered = len(anna.bubbles())
    for _ in range(3):
        again = httpx.post(f"{app.stack.base_url}/api/messages", json=exchange.body, timeout=120)
        assert again.status_code == exchange.status == 202
    anna.say("/sources")
    anna.see("Sources of the last answer:")
    chip = f'{BUBBLE}:has-text("Sources of the last answer:") .fai-Citation'
    anna.browser.do("wait", page=anna.page, selector=chip)
    assert len(anna.bubbles()) == answered + 1
    anna.picture("sources")


def test_an_answer_that_takes_long_is_promised_and_comes_by_itself(slow: App, anna: Chat) -> None:
    anna.say(KILN_QUESTION)
    anna.see("write here when it's done")
    anna.see(KILN)
    anna.picture("proactive")
    answers = [text for text in anna.bubbles() if KILN in text]
    assert len(answers) == 1, answers


def test_an_error_is_told_without_internals(broken: App, anna: Chat) -> None:
    since = len(anna.playground.answers())
    anna.say(KILN_QUESTION)
    anna.see("cannot be reached right now")
    anna.picture("error")
    bodies = eventually(lambda: [str(one.body) for one in anna.playground.answers()[since:]])
    internals = (
        "Traceback",
        "Error",
        "127.0.0.1:" + str(broken.stack.ports.search),
        "not-the-key",
        "/shared/",
    )
    assert not [word for word in internals for body in bodies if word in body]
