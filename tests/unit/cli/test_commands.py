"""The other commands: tokens, errors, files, and waiting."""

import json
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.__main__ import main
from cli.api import Api, CommandError
from cli.token_file import keep_token, read_token
from cli.uploading import Uploader, UploadOptions, find_files
from cli.watching import Watch


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("GROUNDWORK_TOKEN", raising=False)
    return tmp_path


class AnsweringApi(Api):
    """Answers calls with what a function says."""

    def __init__(self, answer: Any) -> None:
        super().__init__("http://app", "token")
        self._client = httpx.Client(base_url="http://app/api", transport=httpx.MockTransport(answer))


def test_a_kept_token_is_for_its_owner_alone(home: Path) -> None:
    assert read_token() == ""
    path = keep_token("first")
    assert keep_token("second") == path
    assert read_token() == "second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        read_token()


def test_login_keeps_the_token_and_does_not_print_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["login", "--token", "very-secret"]) == 0
    assert read_token() == "very-secret"
    captured = capsys.readouterr()
    assert "very-secret" not in captured.out + captured.err


def test_without_a_token_the_way_to_one_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["documents"]) == 2
    assert "cli login" in capsys.readouterr().err


def test_an_error_is_told_in_the_words_of_the_app() -> None:
    problem = {"detail": "No such document.", "hints": ["List them."], "status": 404}
    api = AnsweringApi(lambda _: httpx.Response(404, json=problem))
    with pytest.raises(CommandError, match="No such document") as refused:
        api.call("GET", "/documents/x")
    assert (refused.value.status, refused.value.hints) == (404, ("List them.",))


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"error": 1}', b""])
def test_an_error_of_something_else_than_the_app_is_told_by_its_status(body: bytes) -> None:
    api = AnsweringApi(lambda _: httpx.Response(502, content=body))
    with pytest.raises(CommandError, match="HTTP 502"):
        api.call("GET", "/documents")


def test_files_keep_their_place_below_the_folder(home: Path) -> None:
    folder = home / "handbook"
    for name in ("b.md", "deep/er/a.md", ".git/config", "deep/.x.md", "b.md.acl.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    found = [(path.name, place) for path, place in find_files(folder)]
    assert found == [("b.md", "handbook"), ("a.md", "handbook/deep/er")]
    assert list(find_files(folder / "b.md")) == [(folder / "b.md", "")]


def test_a_file_is_sent_with_its_fields_first(home: Path) -> None:
    received: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        received.append(request)
        return httpx.Response(202, json={"doc_id": "d1"})

    (home / "ü.md").write_bytes(b"hello")
    counted: list[int] = []
    uploader = Uploader(AnsweringApi(answer), UploadOptions("p1", ("group-a", "group-b")))
    outcome = uploader.send(home / "ü.md", "folder", counted.append)
    assert (outcome.doc_id, outcome.status, sum(counted)) == ("d1", "queued", 5)
    body = received[0].content
    assert body.index(b"group-a") < body.index(b"group-b") < body.index(b"hello")
    assert b'name="project_id"\r\n\r\np1' in body


def test_a_file_that_is_refused_does_not_stop_the_others(home: Path) -> None:
    problem = {"detail": "Files of this kind are not read.", "hints": ["Export it."]}
    uploader = Uploader(AnsweringApi(lambda _: httpx.Response(422, json=problem)), UploadOptions())
    (home / "a.exe").write_bytes(b"x")
    outcome = uploader.send(home / "a.exe", "", lambda _: None)
    assert (outcome.status, outcome.reason, outcome.hint) == ("refused", problem["detail"], "Export it.")
    assert uploader.send(home / "missing.md", "", lambda _: None).status == "refused"


def test_a_large_file_goes_past_the_app(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.uploading.LARGE_BYTES", 4)
    sent: list[tuple[str, bytes, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(404, json={"detail": "Not there.", "hints": []})
        assert json.loads(request.read())["size_bytes"] == 5
        ticket = {"doc_id": "d1", "url": "http://storage/x?sig=s", "headers": {"x-ms-blob-type": "BlockBlob"}}
        return httpx.Response(201, json=ticket)

    class Storing(AnsweringApi):
        def put_elsewhere(self, url: str, content: Any, headers: dict[str, str]) -> None:
            sent.append((url, b"".join(content), headers["Content-Length"]))

    (home / "a.md").write_bytes(b"hello")
    assert Uploader(Storing(answer), UploadOptions()).send(home / "a.md", "", lambda _: None).doc_id == "d1"
    assert sent == [("http://storage/x?sig=s", b"hello", "5")]


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
    with pytest.raises(CommandError, match="still in work"):
        Watch(api).wait({"d1": None}, lambda *_: None, 0.05)
