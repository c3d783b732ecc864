"""Tests for the behaviour shared by all commands: the command tree, errors, limits, addresses and waiting."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.__main__ import main
from cli.api import Api, checked_url, segment
from cli.commands import Surroundings, leaves, perform
from cli.errors import CommandError, NoConnectionError
from cli.runs import run_id_of
from cli.threads import thread_id_of
from cli.watching import Watch
from functions.http.openapi.description import VERSION
from tests.unit.cli.fakes import AnsweringApi, RecordingApp, done

DOC_ID = "0" * 24


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("GROUNDWORK_TOKEN", "GROUNDWORK_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "call"),
    [
        ("documents", "GET /documents"),
        ("documents --json", "GET /documents"),
        ("--json --url http://x threads --limit 3", "GET /threads"),
        ("memory", "GET /memory"),
        ("documents show documents", "GET /documents"),
    ],
)
def test_a_group_alone_lists(typed: str, call: str) -> None:
    empty: dict[str, Any] = {"documents": [], "threads": [], "memories": []}
    app = RecordingApp({"GET /documents": empty, "GET /threads": empty, "GET /memory": empty})
    with suppress(CommandError):
        done(app, *typed.split())
    assert app.sent[0][0] == call


def test_no_argument_of_a_command_takes_the_place_of_the_apps_address() -> None:
    """Check that no command has an argument named `url`, as the user's token is sent to the app's `--url`."""
    for words, command in leaves().items():
        assert [param.opts for param in command.params if param.name == "url"] == [], words


@pytest.mark.parametrize("typed", ["--url http://x --json whoami", "whoami --url http://x --json"])
def test_the_options_of_all_commands_stand_on_either_side(typed: str) -> None:
    surroundings = Surroundings(lambda _: RecordingApp({"GET /me": {"name": "Anna"}}).api)
    assert perform(typed.split(), surroundings) == 0
    assert (surroundings.url, surroundings.as_json) == ("http://x", True)


@pytest.mark.parametrize(
    ("typed", "suggestion"),
    [
        ("docs", "Did you mean 'documents'?"),
        ("documents lst", "Did you mean 'list'?"),
        ("ask x --jso", "(Possible options: --doc, --json)"),
        ("threads --limt 3", "(Possible options: --limit)"),
        ("completion bsh", "is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_what_was_probably_meant_is_suggested(
    typed: str, suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed.split()) == 2
    assert suggestion in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"groundwork {VERSION}\n"


def test_last_is_the_newest_thread_and_its_newest_run() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api")
        if path == "/threads":
            return httpx.Response(200, json={"threads": [{"thread_id": "t9"}], "count": 1})
        assert path == "/threads/t9/messages"
        return httpx.Response(200, json={"messages": [{"run_id": "r7"}], "count": 1})

    api = AnsweringApi(answer)
    assert (thread_id_of(api, "last"), run_id_of(api, "last")) == ("t9", "r7")
    assert (thread_id_of(api, "t1"), run_id_of(api, "r1")) == ("t1", "r1")


def test_without_threads_there_is_no_last_one() -> None:
    api = AnsweringApi(lambda _: httpx.Response(200, json={"threads": [], "count": 0}))
    with pytest.raises(CommandError, match="no threads yet"):
        run_id_of(api, "last")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["do"], "documents"),
        (["documents", ""], "access delete download edit import list read reingest show"),
        (["documents", "list", "--t"], "--type --tags"),
        (["ask", "--d"], "--deep --doc"),
        (["runs", "rate", "last", "--re"], "--reason --remove"),
        (["completion", ""], "bash zsh fish"),
        (["metrics", "q"], "quality"),
    ],
)
def test_bash_completes(
    typed: list[str], expected: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = home / "groundwork"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m cli "$@"\n')
    program.chmod(0o755)
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "complete -o default -F _groundwork_completion groundwork" in script
    line = " ".join(f"'{word}'" for word in typed)
    completion_call = (
        f"\nCOMP_WORDS=(groundwork {line}); COMP_CWORD={len(typed)}; "
        f"_groundwork_completion {program}; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(
        ["bash", "-c", script + completion_call], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == expected.split()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_GROUNDWORK_COMPLETE=complete_{shell}" in script
    typed = {"_GROUNDWORK_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "groundwork documents de"}
    done = subprocess.run(
        [sys.executable, "-m", "cli"],
        env={**os.environ, **typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "delete" in done.stdout
    assert "access" not in done.stdout


@pytest.mark.parametrize(
    "typed", ["", "bogus", "documents bogus", "ask", "ask x --jso", "metrics everything"]
)
def test_what_is_not_understood_is_an_error_of_use(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed.split()) == 2
    assert "Usage:" in capsys.readouterr().err


def test_an_error_is_told_in_the_words_of_the_app() -> None:
    problem = {
        "detail": "No such document.",
        "hints": ["List them."],
        "status": 404,
        "title": "NotFoundError",
    }
    api = AnsweringApi(lambda _: httpx.Response(404, json=problem))
    with pytest.raises(CommandError, match="No such document") as refused:
        api.call("GET", "/documents/x")
    error = refused.value
    assert (error.status, error.code, error.hints) == (404, "NotFoundError", ("List them.",))


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"error": 1}', b"", b"7"])
def test_an_error_of_something_else_than_the_app_is_told_by_its_status(body: bytes) -> None:
    api = AnsweringApi(lambda _: httpx.Response(502, content=body))
    with pytest.raises(CommandError, match="HTTP 502"):
        api.call("GET", "/documents")


@pytest.mark.parametrize("arguments", [["documents"], ["documents", "--json"]])
def test_what_nobody_expected_is_told_without_a_traceback(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDWORK_TOKEN", "t")
    monkeypatch.setattr(Api, "call", lambda *_, **__: {"unknown": "shape"})
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert "unexpected" in captured.err
    assert "Traceback" not in captured.err
    assert bool(captured.out) == ("--json" in arguments)
    if captured.out:
        assert "KeyError" in json.loads(captured.out)["error"]["detail"]


def test_the_app_is_waited_for_when_it_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("cli.api.time.sleep", slept.append)
    answers = [httpx.Response(429, headers={"Retry-After": "7"}, json={"detail": "Slow down."})] * 2
    answers.append(httpx.Response(200, json={"ok": True}))
    api = AnsweringApi(lambda _: answers.pop(0))
    assert api.call("GET", "/x") == {"ok": True}
    assert slept == [7.1, 7.1]


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "3600"}, {"Retry-After": "soon"}])
def test_a_limit_that_lasts_is_an_error(headers: dict[str, str]) -> None:
    problem = httpx.Response(429, headers=headers, json={"detail": "Slow down."})
    with pytest.raises(CommandError, match="Slow down"):
        AnsweringApi(lambda _: problem).call("GET", "/x")


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://x", "http://", "https://u:p@x", "http://example.org", "http://[", "https://x?y=1"]
)
def test_a_token_goes_nowhere_that_is_no_safe_address(url: str) -> None:
    with pytest.raises(CommandError):
        checked_url(url)


def test_an_address_is_taken_with_or_without_what_follows() -> None:
    assert checked_url("https://x.example/ ") == "https://x.example"
    assert checked_url("http://localhost:7071/api") == "http://localhost:7071"


@pytest.mark.parametrize("word", ["", " ", ".", ".."])
def test_what_would_be_another_address_is_no_id(word: str) -> None:
    with pytest.raises(CommandError):
        segment(word)
    assert segment("../a?b#c") == "..%2Fa%3Fb%23c"


def test_waiting_ends_with_the_documents_and_not_with_their_old_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cli.watching._SILENCE_S", 0.0)
    monkeypatch.setattr("cli.watching._PAUSE_S", 0.0)
    looks = iter(
        [
            httpx.Response(404, json={"detail": "Not there.", "hints": []}),
            httpx.Response(200, json={"status": "ready", "history": [{"at": "old"}]}),
            httpx.Response(200, json={"status": "parsing", "history": [{"at": "new"}]}),
            httpx.Response(200, json={"status": "ready", "history": [{"at": "new"}]}),
        ]
    )
    seen: list[str] = []
    watch = Watch(AnsweringApi(lambda _: next(looks)))
    watch.wait({"d1": "old"}, lambda _, document: seen.append(document["status"]), 60)
    assert seen == ["parsing", "ready"]


def test_waiting_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.watching._PAUSE_S", 0.0)
    api = AnsweringApi(lambda _: httpx.Response(200, json={"status": "parsing", "history": []}))
    with pytest.raises(CommandError, match="Still being ingested after 0 s"):
        Watch(api).wait({"d1": None}, lambda *_: None, 0.05)


def test_waiting_survives_a_restart_of_the_app_and_not_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.watching._SILENCE_S", -1.0)
    monkeypatch.setattr("cli.watching._PAUSE_S", 0.0)

    def respond(request: httpx.Request) -> httpx.Response:
        response = responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    ready = httpx.Response(200, json={"status": "ready", "history": []})
    responses: list[httpx.Response | Exception] = [httpx.Response(502), httpx.ConnectError("gone"), ready]
    Watch(AnsweringApi(respond)).wait({"d1": None}, lambda *_: None, 60)
    assert responses == []
    monkeypatch.setattr("cli.watching._GIVE_UP_S", -1.0)
    responses = [httpx.ConnectError("gone")]
    with pytest.raises(NoConnectionError):
        Watch(AnsweringApi(respond)).wait({"d1": None}, lambda *_: None, 60)


def test_a_document_is_not_ready_while_it_is_processed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.watching._SILENCE_S", -1.0)
    monkeypatch.setattr("cli.watching._PAUSE_S", 0.0)
    documents = [
        {"status": "ready", "is_processing": True},
        {"status": "parsing", "is_processing": True},
        {"status": "ready", "is_processing": False, "warnings": ["The hints have a mistake."]},
    ]
    seen: list[dict[str, Any]] = []
    api = AnsweringApi(lambda _: httpx.Response(200, json=documents.pop(0)))
    Watch(api).wait({"d1": None}, lambda _, document: seen.append(document), 60)
    assert [document["status"] for document in seen] == ["parsing", "ready"]
    assert documents == []


def test_an_error_of_the_app_names_the_request_for_its_log() -> None:
    broken = httpx.Response(500, headers={"X-Request-Id": "r-7"}, json={"detail": "Our fault.", "hints": []})
    with pytest.raises(CommandError) as failed:
        AnsweringApi(lambda _: broken).call("GET", "/x")
    assert failed.value.hints == ("The request id in the app's log is r-7.",)
