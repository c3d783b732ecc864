"""`ask`: the draft, streams that break, and what is printed."""

import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from rich.console import Console

from cli.api import Api, CommandError, Event, read_events
from cli.ask import Draft, ask, run_events

ANSWER = {
    "text": "It runs at **15 bar**.",
    "citations": [
        {"n": 1, "filename": "a.pdf", "page_number": 3, "quote": "15 [bar]", "verified": True},
    ],
    "abstained": False,
}
COMPLETE = Event(9, "complete", {"answer": ANSWER})


class ScriptedApi(Api):
    """Answers each connection with the next script: events, and perhaps a broken connection."""

    def __init__(self, *scripts: list[Event | Exception | None]) -> None:
        super().__init__("http://app", "token")
        self.calls: list[tuple[str, str, int]] = []
        self._scripts = list(scripts)

    def events(
        self, method: str, path: str, *, after: int = 0, body: Any = None
    ) -> Iterator[tuple[httpx.Headers, Event | None]]:
        self.calls.append((method, path, after))
        for step in self._scripts.pop(0) if self._scripts else []:
            if isinstance(step, Exception):
                raise step
            yield httpx.Headers({"X-Run-Id": "r1"}), step


def token(number: int, text: str, step: int = 1) -> Event:
    return Event(number, "token", {"step": step, "text": text})


def printed(api: Api, *, as_json: bool = False) -> tuple[int, str]:
    output = Console(file=io.StringIO(), width=80)
    code = ask(api, Console(file=io.StringIO()), output, "?", as_json=as_json)
    assert isinstance(output.file, io.StringIO)
    return code, output.file.getvalue()


@pytest.mark.parametrize("state", ["restarted", "discarded"])
def test_a_step_that_begins_anew_loses_its_own_text_only(state: str) -> None:
    draft = Draft()
    for event in (token(1, "Kept. "), token(2, "Lost.", 2), Event(3, "status", {"step": 2, "state": state})):
        draft.take(event)
    assert draft.text == "Kept. "
    draft.take(token(4, "New.", 2))
    draft.take(Event(5, "status", {"step": 1, "state": "done"}))
    assert draft.text == "Kept. New."


def test_a_broken_stream_is_resumed_after_the_last_event() -> None:
    api = ScriptedApi(
        [token(1, "a"), None, token(2, "b"), httpx.ReadError("broken")],
        [],
        [httpx.ConnectTimeout("slow")],
        [token(3, "c"), COMPLETE],
    )
    assert [event.number for event in run_events(api, "?")] == [1, 2, 3, 9]
    assert api.calls == [("POST", "/chat", 0), *[("GET", "/runs/r1/events", 2)] * 3]


def test_a_connection_that_never_was_is_not_asked_twice() -> None:
    api = ScriptedApi([httpx.ReadError("broken")])
    with pytest.raises(CommandError):
        list(run_events(api, "?"))
    assert len(api.calls) == 1


def test_a_connection_that_stays_broken_is_given_up() -> None:
    with pytest.raises(CommandError, match="lost"):
        list(run_events(ScriptedApi([token(1, "a")]), "?"))


def test_the_answer_names_its_sources() -> None:
    code, text = printed(ScriptedApi([COMPLETE]))
    assert code == 0
    assert "15 bar" in text
    assert "[1] a.pdf, page 3 (verified)" in text
    assert "“15 [bar]”" in text


def test_no_answer_has_an_exit_code_of_its_own() -> None:
    nothing = Event(1, "complete", {"answer": {**ANSWER, "citations": [], "abstained": True}})
    assert printed(ScriptedApi([nothing]))[0] == 3


def test_json_is_the_answer_and_nothing_else() -> None:
    import json

    assert json.loads(printed(ScriptedApi([token(1, "a"), COMPLETE]), as_json=True)[1]) == ANSWER


def test_a_run_that_failed_says_why() -> None:
    failed = Event(1, "error", {"message": "The model is down.", "hints": ["Wait."]})
    with pytest.raises(CommandError, match="model is down") as error:
        printed(ScriptedApi([failed]))
    assert error.value.hints == ("Wait.",)


def test_server_sent_events_are_read_and_comments_are_signs_of_life() -> None:
    lines = ["id: 1", "event: token", 'data: {"text": "a: b"}', "", ": keep-alive", "", 'data: {"x": 1}', ""]
    assert list(read_events(iter(lines))) == [
        Event(1, "token", {"text": "a: b"}),
        None,
        Event(0, "", {"x": 1}),
    ]


def test_a_question_that_may_mean_several_documents_is_told_which() -> None:
    options = [{"number": 1, "title": "Report 2023", "filename": "report-2023.pdf"}]
    asked = Event(3, "ask_user", {"question": "Which one?", "options": options})
    with pytest.raises(CommandError, match="Which one") as told:
        printed(ScriptedApi([asked]))
    assert "Report 2023 (report-2023.pdf)" in told.value.hints
