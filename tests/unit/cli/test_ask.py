"""Tests for `ask`: the draft, interrupted streams, clarifications and the printed output."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.api import Event, read_events
from cli.errors import CommandError
from cli.following import RunStream
from cli.progress import Draft, describe_event
from tests.unit.cli.fakes import AnsweringApi, ReadTerminal, RecordingApp, ScriptedApi, done, run

CITED = {
    "n": 1,
    "filename": "a.pdf",
    "page_number": 3,
    "quote": "15 [bar]",
    "verified": True,
    "url": "/api/x",
}
ANSWER = {
    "text": "It runs at **15 bar**. ![A pump](/api/documents/d1/figures/f.png)",
    "citations": [CITED],
    "abstained": False,
}
COMPLETE = Event(9, "complete", {"answer": ANSWER, "run_id": "r1", "thread_id": "t1"})
OPTIONS = [{"number": 1, "title": "Report 2023", "filename": "report-2023.pdf", "date": "2023"}]
ASKED = Event(3, "ask_user", {"question": "Which one?", "options": OPTIONS})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.following._PAUSES_S", (0.0,))


def token(number: int, text: str, step: int = 1) -> Event:
    return Event(number, "token", {"step": step, "text": text})


def run_ask(api: ScriptedApi, read: ReadTerminal, *arguments: str) -> int:
    return run(api, read, "ask", "?", *arguments)


def printed(api: ScriptedApi, *arguments: str, as_json: bool = False) -> tuple[int, str]:
    read = ReadTerminal(as_json=as_json)
    return run_ask(api, read, *arguments), read.out.getvalue()


def stream(api: ScriptedApi, **options: Any) -> RunStream:
    return RunStream(api, {"question": "?"}, key="k1", **options)


@pytest.mark.parametrize(("count", "message"), [(1, "1 statement is"), (2, "2 statements are"), (0, "")])
def test_statements_without_a_quotation_are_counted(count: int, message: str) -> None:
    answered = Event(9, "complete", {**COMPLETE.data, "answer": {**ANSWER, "unsupported_claims": count}})
    _, text = printed(ScriptedApi([answered]))
    assert (f"{message} not supported by a quotation." in text) == bool(count)


def test_next_questions_are_plain_lines_that_cannot_add_lines() -> None:
    suggested = ["Who replaces\nthe filter?", "How heavy is it?"]
    _, text = printed(
        ScriptedApi([Event(9, "complete", {"answer": {**ANSWER, "next_questions": suggested}})])
    )
    assert text.endswith("Next: Who replaces the filter?\nNext: How heavy is it?\n")


def test_calculated_numbers_are_printed_as_the_answer_writes_them() -> None:
    cited = {
        **CITED,
        "kind": "table",
        "columns": ["Region", "Umsatz"],
        "rows": [["Nord|Ost", 12345.5], ["Süd", 80.0], ["West", 7]],
        "row_count": 3,
        "quote": "| Region | Umsatz |\n| Nord\\|Ost | 12.345,5 |\n| Süd | 80 |",
        "sql": "SELECT 1",
        "sql_in_words": "Summe",
        "tables": [{"filename": "sales.xlsx", "page_number": page} for page in (1, 2)],
    }
    _, text = printed(ScriptedApi([Event(9, "complete", {"answer": {**ANSWER, "citations": [cited]}})]))
    assert re.search(r"Nord\|Ost\s+12\.345,5\n", text)
    assert "12345.5" not in text
    assert "and 1 more" in text
    assert "sales.xlsx, page 1; sales.xlsx, page 2" in text


@pytest.mark.parametrize("state", ["restarted", "discarded"])
def test_a_step_that_begins_anew_loses_its_own_text_only(state: str) -> None:
    draft = Draft()
    for event in (token(1, "Kept. "), token(2, "Lost.", 2), Event(3, "status", {"step": 2, "state": state})):
        draft.take(event)
    assert draft.text == "Kept. "
    draft.take(token(4, "New.", 2))
    draft.take(Event(5, "status", {"step": 1, "state": "done"}))
    assert draft.text == "Kept. New."


def test_a_broken_stream_is_resumed_after_the_last_event_and_says_so() -> None:
    troubles: list[str] = []
    api = ScriptedApi(
        [token(1, "a"), None, token(2, "b"), httpx.ReadError("broken")],
        [],
        [httpx.ConnectError("the host restarts")],
        [CommandError("Not up yet.", status=503)],
        [token(2, "told again"), token(3, "c"), COMPLETE],
    )
    assert [event.number for event in stream(api, on_trouble=troubles.append)] == [1, 2, 3, 9]
    assert api.calls == [("POST", "/chat", 0), *[("GET", "/runs/r1/events", 2)] * 4]
    assert [notice.split(";")[0] for notice in troubles] == ["The connection broke", "Connected again"]


def test_streams_that_end_at_once_are_resumed_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("cli.following._PAUSES_S", (0.1, 0.5))
    monkeypatch.setattr("cli.following.time.sleep", pauses.append)
    api = ScriptedApi([token(1, "a")], [], [token(2, "b"), COMPLETE])
    assert [event.number for event in stream(api)] == [1, 2, 9]
    assert pauses == [0.1, 0.1]


def test_a_start_that_breaks_is_repeated_with_its_key() -> None:
    api = ScriptedApi([httpx.ReadError("broken")], [token(1, "a"), COMPLETE])
    assert len(list(stream(api))) == 2
    assert api.calls == [("POST", "/chat", 0)] * 2
    assert api.keys == ["k1", "k1"]


@pytest.mark.parametrize(("failure", "tries"), [(httpx.ConnectError("no"), 1), (httpx.ReadError("no"), 6)])
def test_a_connection_that_never_was_is_given_up(failure: Exception, tries: int) -> None:
    broken: list[Event | Exception | None] = [failure]
    api = ScriptedApi(*[broken] * 9)
    with pytest.raises(CommandError, match="No response from"):
        list(stream(api))
    assert len(api.calls) == tries


def test_a_connection_that_stays_broken_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.following._GIVE_UP_S", 0.0)
    with pytest.raises(CommandError, match="lost") as given_up:
        list(stream(ScriptedApi([token(1, "a"), httpx.ReadError("broken")])))
    assert "runs show r1" in given_up.value.hints[0]


def test_a_refusal_is_not_tried_again() -> None:
    api = ScriptedApi([token(1, "a"), httpx.ReadError("broken")], [CommandError("Gone.", status=404)])
    with pytest.raises(CommandError, match="Gone"):
        list(stream(api))
    assert len(api.calls) == 2


def test_the_answer_names_its_sources_and_addresses_can_be_opened() -> None:
    code, text = printed(ScriptedApi([COMPLETE]))
    assert code == 0
    assert "15 bar" in text
    assert "(http://127.0.0.1/api/documents/d1/figures/f.png)" in text
    assert "[1] a.pdf, page 3 (verified)" in text
    assert "“15 [bar]”\n    http://127.0.0.1/api/x\n" in text


def test_figures_are_links_that_need_no_token() -> None:
    figure = {"filename": "a.pdf", "page_number": 2, "path": "/api/f.png"}
    signed = {**ANSWER, "figures": [{**figure, "image_url": "https://storage/f.png?sig=s"}]}
    api = ScriptedApi(
        [
            Event(
                9, "complete", {"answer": {**ANSWER, "figures": [figure]}, "run_id": "r1", "thread_id": "t1"}
            )
        ],
        answer=lambda _: httpx.Response(200, json={"answer": signed}),
    )
    assert "Figure 1: a.pdf, page 2 https://storage/f.png?sig=s" in printed(api)[1]


def test_pictures_of_the_text_need_no_token_either() -> None:
    figure = {
        "filename": "a.pdf",
        "path": "/api/documents/d1/figures/f.png",
        "image_url": "https://storage/f.png",
    }
    signed = {**ANSWER, "text": "![A pump](https://storage/f.png)", "figures": [figure]}
    streamed = {**ANSWER, "figures": [figure]}
    event = Event(9, "complete", {"answer": streamed, "run_id": "r1", "thread_id": "t1"})
    api = ScriptedApi([event], answer=lambda _: httpx.Response(200, json={"answer": signed}))
    text = printed(api)[1]
    assert "![A pump](https://storage/f.png)" in text
    assert "/api/documents" not in text


@pytest.mark.parametrize("place", ["a.pdf", "a.pdf (Mara Ek)"])
@pytest.mark.parametrize("kind", ["", ", figure"])
def test_pages_in_the_text_have_english_labels(place: str, kind: str) -> None:
    answer = {**ANSWER, "text": f"15 bar (Source: {place}, S. 3{kind})[1]."}
    text = printed(ScriptedApi([Event(9, "complete", {"answer": answer})]))[1]
    assert f"(Source: {place}, p. 3{kind})[1]" in " ".join(text.split())


def test_a_moment_of_a_recording_is_told_as_one() -> None:
    cited = {**CITED, "start_seconds": 83.5}
    event = Event(9, "complete", {"answer": {**ANSWER, "citations": [cited]}})
    assert "[1] a.pdf, at 1:23 (verified)" in printed(ScriptedApi([event]))[1]


def test_no_answer_has_an_exit_code_of_its_own() -> None:
    nothing = Event(1, "complete", {"answer": {**ANSWER, "citations": [], "abstained": True}})
    assert printed(ScriptedApi([nothing]))[0] == 3


def test_json_is_the_answer_and_nothing_else() -> None:
    text = printed(ScriptedApi([token(1, "a"), COMPLETE]), as_json=True)[1]
    assert json.loads(text) == {**ANSWER, "run_id": "r1", "thread_id": "t1"}


def test_a_run_that_failed_says_why() -> None:
    failed = Event(1, "error", {"message": "The model is down.", "hints": ["Wait."], "type": "NetworkError"})
    with pytest.raises(CommandError, match="model is down") as error:
        printed(ScriptedApi([failed]))
    assert (error.value.hints, error.value.code) == (("Wait.",), "NetworkError")


def test_what_is_asked_is_asked_with_its_limits() -> None:
    api = ScriptedApi([COMPLETE])
    printed(
        api, "--thread", "t1", "--deep", "--project", "p1", "--doc", "0" * 24, "--agent", "librarian"
    )  # fmt: skip
    assert api.bodies[0] == {
        "question": "?", "deep": True, "thread_id": "t1", "project_id": "p1", "doc_ids": ["0" * 24],
        "agent": "librarian",
    }  # fmt: skip


def answering_run(*statuses: int) -> tuple[list[Any], AnsweringApi]:
    """Return the recorded requests and an app whose run waits for an answer and replies with `statuses`."""
    requests: list[Any] = []
    left = list(statuses)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"status": "waiting", "run_id": "r1"})
        requests.append((request.url.path, json.loads(request.read() or b"null")))
        status = left.pop(0) if left else 200
        return httpx.Response(status, json={"detail": "There is no option 7."})

    return requests, AnsweringApi(answer)


def test_a_question_back_is_asked_of_the_person_until_it_is_answered() -> None:
    requests, app = answering_run(400, 202, 202)
    api = ScriptedApi([ASKED, Event(4, "ask_user", ASKED.data), COMPLETE])
    api._client = app._client
    read = ReadTerminal(answers=["7", "1", "the newest one"])
    assert run_ask(api, read) == 0
    assert [body for _, body in requests] == [{"choice": 7}, {"choice": 1}, {"text": "the newest one"}]
    error_output = read.err.getvalue()
    assert "1. Report 2023 (report-2023.pdf, 2023)" in error_output
    assert "There is no option 7." in error_output


def test_without_anybody_to_ask_the_run_waits_and_the_way_on_is_told() -> None:
    _, app = answering_run()
    for as_json in (False, True):
        api = ScriptedApi([ASKED])
        api._client = app._client
        read = ReadTerminal(as_json=as_json)
        assert run_ask(api, read) == 4
        assert "runs answer r1 NUMBER" in read.err.getvalue()
        assert "Report 2023" in read.out.getvalue()
        if as_json:
            assert json.loads(read.out.getvalue())["run_id"] == "r1"


def test_an_interruption_cancels_the_run() -> None:
    requests, app = answering_run()
    api = ScriptedApi([ASKED])
    api._client = app._client
    read = ReadTerminal(answers=[])
    assert run_ask(api, read) == 130
    assert [path for path, _ in requests] == ["/api/runs/r1/cancel"]
    assert "cancelled" in read.err.getvalue()


def test_plan_tools_and_sub_agents_are_told() -> None:
    child = {"child": 0, "profile": "comparator", "step": 3}
    ended = {**child, "state": "sub_agent", "phase": "ended", "passages": 2, "proved": 1}
    lines = [
        describe_event(Event(1, "status", {"state": "accepted", "run_id": "r1"})),
        describe_event(
            Event(2, "tool_started", {**child, "tool": "rag_semantic_search", "arguments": {"query": "q"}})
        ),
        describe_event(
            Event(3, "tool_result", {"tool": "rerank", "success": False, "error_type": "TimeoutError"})
        ),
        describe_event(
            Event(4, "status", {"state": "delegation", "decision": "delegate", "reasons": ["R."]})
        ),
        describe_event(Event(4, "status", {**ended, "phase": "started"})),
        describe_event(Event(4, "status", ended)),
        describe_event(Event(5, "status", {"state": "discarded"})),
        describe_event(Event(6, "token", {"text": "x"})),
    ]
    assert [line for event_lines in lines for line in event_lines] == [
        "Run r1",
        "    [comparator 1] → rag_semantic_search: q",
        "  rerank failed: TimeoutError",
        "    [comparator 1] A sub-agent helps.",
        "    [comparator 1] ended: 2 passages, 1 findings proved",
        "What was written so far is withdrawn.",
    ]


@pytest.mark.parametrize(
    ("counts", "line"), [({"result_count": 1}, "1 result"), ({"result_count": 0}, "0 results"), ({}, "done")]
)
def test_results_are_counted_where_a_tool_counts_them(counts: dict[str, int], line: str) -> None:
    assert describe_event(Event(1, "tool_result", {"tool": "web_fetch", "success": True, **counts})) == [
        f"  {line}"
    ]


def test_the_todo_list_is_told_as_it_changes() -> None:
    read = ReadTerminal()
    item = {"position": 1, "description": "Known", "status": "pending"}
    todo = [Event(n, "status", {"state": "progress", "todo": [{**item, "status": status}]}) for n, status in
            enumerate(("pending", "pending", "done"), start=1)]  # fmt: skip
    run_ask(ScriptedApi([*todo, COMPLETE]), read)
    assert read.err.getvalue().splitlines()[:2] == ["○ 1. Known", "● 1. Known"]
    quiet = ReadTerminal()
    run_ask(ScriptedApi([*todo, COMPLETE]), quiet, "--quiet")
    assert "Known" not in quiet.err.getvalue()


def test_whole_events_are_read_and_comments_are_ignored() -> None:
    lines = [
        "id: 1",
        "event: token",
        'data: {"text": "a: b"}',
        "",
        ": keep-alive",
        "",
        'data: {"x": "\u2028"}',
    ]
    text = "\n".join([*lines, "", "id: 9", "data: {"])
    response = httpx.Response(200, headers={"Content-Type": "text/event-stream"}, text=text)
    assert list(read_events(response)) == [
        Event(1, "token", {"text": "a: b"}),
        Event(1, "message", {"x": "\u2028"}),
    ]


def test_a_long_connection_without_events_is_no_lost_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 1.0, 500.0, 500.0, 500.0, *[501.0] * 9])
    monkeypatch.setattr("cli.following.time.monotonic", lambda: next(clock))
    api = ScriptedApi([token(1, "a")], [token(2, "b"), COMPLETE])
    assert [event.number for event in stream(api)] == [1, 2, 9]


def test_an_answer_by_command_is_not_asked_for_again() -> None:
    ends = "2026-01-01T00:00:00Z"
    view = {"run_id": "r1", "status": "waiting", "clarification": {"expires_at": ends}}
    again = Event(3, "ask_user", {**ASKED.data, "expires_at": ends})
    api = ScriptedApi([again, COMPLETE], answer=lambda _: httpx.Response(200, json=view))
    read = ReadTerminal()
    assert run(api, read, "runs", "answer", "r1", "1") == 0
    assert "15 bar" in read.out.getvalue()


def test_agents_are_listed_with_what_they_are_for() -> None:
    app = RecordingApp(
        {"GET /agents": {"agents": [{"name": "librarian", "description": "Finds documents."}]}}
    )
    assert done(app, "agents")[1].split() == ["librarian", "Finds", "documents."]
    app.answers["GET /agents"] = {"agents": []}
    assert "no agents" in done(app, "agents")[1]


def test_the_original_of_a_citation_is_linked_beside_our_own_view() -> None:
    cited = {**CITED, "source_url": "https://contoso.sharepoint.com/sites/hr/manual.pdf#page=3"}
    event = Event(9, "complete", {"answer": {**ANSWER, "citations": [cited]}})
    _, text = printed(ScriptedApi([event]))
    assert f"Original: {cited['source_url']}" in " ".join(text.split())
    assert "/api/x" in text


def test_a_file_is_brought_into_the_conversation_before_the_question(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes")
    requests: list[tuple[str, bytes]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append((f"{request.method} {request.url.path}", request.read()))
        return httpx.Response(201, json={"thread_id": "t1", "doc_id": "d1"})

    api = ScriptedApi([COMPLETE], answer=answer)
    assert run_ask(api, ReadTerminal(), "--file", str(notes)) == 0
    assert [call for call, _ in requests[:2]] == ["POST /api/threads", "POST /api/threads/t1/files"]
    assert b"# Notes" in requests[1][1]
    assert api.bodies[0]["thread_id"] == "t1"
    with pytest.raises(CommandError, match=r"There is no file .*absent\.md"):
        run_ask(api, ReadTerminal(), "--file", str(tmp_path / "absent.md"))
