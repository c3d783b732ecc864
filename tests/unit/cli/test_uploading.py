"""Tests for `upload`: skipped files, the upload method, resuming after an interruption, and the report."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from cli import sending
from cli.upload_files import content_hash
from cli.uploader import Uploader, UploadOptions
from tests.unit.cli.fakes import AnsweringApi, ReadTerminal, ScriptedApi, run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("cli.sending.time.sleep", lambda _: None)
    return tmp_path


def no_documents(request: httpx.Request) -> httpx.Response | None:
    if request.method == "GET" and request.url.path == "/api/documents":
        return httpx.Response(200, json={"documents": []})
    return None


def test_a_file_is_sent_with_its_fields_first(home: Path) -> None:
    received: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        received.append(request)
        return no_documents(request) or httpx.Response(202, json={"doc_id": "d1"})

    (home / "ü.md").write_bytes(b"hello")
    counted: list[int] = []
    uploader = Uploader(AnsweringApi(answer), UploadOptions("p1", ("group-a", "group-b")))
    outcome = uploader.send(home / "ü.md", "folder", counted.append)
    assert (outcome.doc_id, outcome.status, sum(counted)) == ("d1", "queued", 5)
    body = received[-1].content
    assert body.index(b"group-a") < body.index(b"group-b") < body.index(b"hello")
    assert b'name="project_id"\r\n\r\np1' in body


def test_a_file_is_read_anew_when_the_app_asks_to_wait(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.api.time.sleep", lambda _: None)
    bodies: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if response := no_documents(request):
            return response
        bodies.append(request.read())
        if len(bodies) < 3:
            return httpx.Response(429, headers={"Retry-After": "1"}, json={"detail": "Slow down."})
        return httpx.Response(202, json={"doc_id": "d1"})

    (home / "a.md").write_bytes(b"hello")
    counted: list[int] = []
    outcome = Uploader(AnsweringApi(answer), UploadOptions()).send(home / "a.md", "", counted.append)
    assert (outcome.status, sum(counted)) == ("queued", 5)
    assert all(b"hello" in body for body in bodies)


def test_a_file_that_is_refused_does_not_stop_the_others(home: Path) -> None:
    problem = {"detail": "Files of this kind are not read.", "hints": ["Export it."]}
    api = AnsweringApi(lambda request: no_documents(request) or httpx.Response(422, json=problem))
    (home / "a.exe").write_bytes(b"x")
    uploader = Uploader(api, UploadOptions())
    outcome = uploader.send(home / "a.exe", "", lambda _: None)
    assert (outcome.status, outcome.reason, outcome.hint) == ("refused", problem["detail"], "Export it.")
    assert uploader.send(home / "missing.md", "", lambda _: None).status == "refused"


class StoredDocument:
    """An app with one document that records the requests it receives."""

    def __init__(self, **document: Any) -> None:
        self.document = {
            "doc_id": "d1",
            "status": "ready",
            "folder": "f",
            "owner_id": "anna",
            "acl": ["anna", "x"],
        }
        self.document |= document
        self.sent: list[tuple[str, Any]] = []
        self.api = AnsweringApi(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            is_list = request.url.path == "/api/documents"
            return httpx.Response(200, json={"documents": [self.document]} if is_list else self.document)
        body = request.read()
        self.sent.append((request.method, json.loads(body) if request.method == "PUT" else None))
        return httpx.Response(202, json={"doc_id": "d2"})


def sent_to(app: StoredDocument, path: Path, **options: Any) -> str:
    uploader = Uploader(app.api, UploadOptions(user_id="anna", **options))
    counted: list[int] = []
    status = uploader.send(path, "f", counted.append).status
    assert sum(counted) == path.stat().st_size
    return status


def test_what_is_there_already_is_not_sent_again(home: Path) -> None:
    (home / "a.md").write_bytes(b"hello")
    file_hash = content_hash(home / "a.md")
    assert file_hash == hashlib.sha256(b"hello").hexdigest()
    app = StoredDocument(content_hash=file_hash)
    assert sent_to(app, home / "a.md") == "unchanged"
    assert sent_to(app, home / "a.md", acl=("x",)) == "unchanged"
    assert app.sent == []
    assert sent_to(app, home / "a.md", acl=("y",)) == "unchanged"
    assert sent_to(app, home / "a.md", project_id="p") == "unchanged"
    assert app.sent == [("PUT", {"acl": ["y"]}), ("PUT", {"acl": ["anna", "x"], "project_id": "p"})]


@pytest.mark.parametrize(
    "difference",
    [{"content_hash": "other"}, {"folder": "g"}, {"owner_id": "ben"}, {"status": "failed"}, {"folder": None}],
)
def test_what_differs_is_sent(home: Path, difference: dict[str, Any]) -> None:
    (home / "a.md").write_bytes(b"hello")
    app = StoredDocument(**{"content_hash": content_hash(home / "a.md"), **difference})
    assert sent_to(app, home / "a.md") == "queued"
    assert [method for method, _ in app.sent] == ["POST"]


def test_by_force_all_is_sent(home: Path) -> None:
    (home / "a.md").write_bytes(b"hello")
    app = StoredDocument(content_hash=content_hash(home / "a.md"))
    assert sent_to(app, home / "a.md", is_forced=True) == "queued"


class Storage:
    """A fake Blob Storage that accepts blocks and returns the configured failures."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks: dict[str, bytes] = {}
        self.content = b""
        self.failures: list[int | Exception] = []
        self.puts = 0
        self.tickets = 0
        self.api = AnsweringApi(self._app)
        monkeypatch.setattr("cli.sending.httpx.put", self._put)
        monkeypatch.setattr("cli.sending.BLOCK_BYTES", 4)
        monkeypatch.setattr("cli.sending.LARGE_BYTES", 4)

    def _app(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.tickets += 1
            return httpx.Response(201, json={"doc_id": "d1", "url": f"http://s/x?sig={self.tickets}"})
        return no_documents(request) or httpx.Response(404, json={"detail": "Not there."})

    def _put(self, url: str, content: bytes, timeout: object) -> httpx.Response:
        self.puts += 1
        failure = self.failures.pop(0) if self.failures else 201
        if isinstance(failure, Exception):
            raise failure
        if failure != 201:
            return httpx.Response(failure)
        query = url.partition("?")[2]
        if "comp=blocklist" in query:
            names = content.decode().split("<Latest>")[1:]
            block_names = [name.partition("<")[0] for name in names]
            if any(name not in self.blocks for name in block_names):
                return httpx.Response(400)
            self.content = b"".join(self.blocks[name] for name in block_names)
            return httpx.Response(201)
        self.blocks[unquote(query.partition("blockid=")[2])] = content
        return httpx.Response(201)

    def send(self, path: Path, notes: list[str] | None = None) -> tuple[str, str]:
        uploader = Uploader(self.api, UploadOptions(), (notes if notes is not None else []).append)
        outcome = uploader.send(path, "", lambda _: None)
        return outcome.status, outcome.reason


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    return Storage(monkeypatch)


@pytest.fixture
def large(home: Path) -> Path:
    path = home / "large.bin"
    path.write_bytes(b"0123456789abc")
    return path


def test_a_large_file_goes_past_the_app_in_blocks(storage: Storage, large: Path) -> None:
    assert storage.send(large) == ("queued", "")
    assert storage.content == large.read_bytes()
    assert sorted(map(len, storage.blocks.values())) == [1, 4, 4, 4]
    assert list((large.parent / "state").rglob("*.json")) == []


def test_what_may_pass_is_tried_again_and_an_address_that_ended_is_renewed(
    storage: Storage, large: Path
) -> None:
    storage.failures = [httpx.ReadError("broken"), 503, 403]
    assert storage.send(large) == ("queued", "")
    assert storage.content == large.read_bytes()
    assert storage.tickets == 2


def test_a_transfer_that_broke_off_goes_on_where_it_was(storage: Storage, large: Path) -> None:
    storage.failures = [201, 201, *[httpx.ConnectError("gone")] * 6]
    status, reason = storage.send(large)
    assert (status, "ConnectError" in reason) == ("refused", True)
    before, notes = storage.puts, list[str]()
    assert storage.send(large, notes) == ("queued", "")
    assert storage.puts - before == 3  # two blocks and the block list
    assert notes == ["large.bin: resumes after 2 of 4 blocks."]
    assert storage.content == large.read_bytes()


def test_a_file_that_changed_meanwhile_is_another_one(storage: Storage, large: Path) -> None:
    storage.failures = [201, *[httpx.ConnectError("gone")] * 6]
    storage.send(large)
    large.write_bytes(b"ABCDEFGHIJKLM")
    os.utime(large, ns=(1, 1))
    assert storage.send(large) == ("queued", "")
    assert storage.content == b"ABCDEFGHIJKLM"


def test_blocks_that_the_storage_threw_away_are_sent_anew(storage: Storage, large: Path) -> None:
    storage.failures = [201, 201, *[httpx.ConnectError("gone")] * 6]
    storage.send(large)
    storage.blocks.clear()
    assert storage.send(large) == ("queued", "")
    assert storage.content == large.read_bytes()


def test_names_of_blocks_have_one_length() -> None:
    names = sending.Transfer(10**12, 0, 8_000_000).names(50_000)
    assert len(set(names)) == 50_000
    assert {len(name) for name in names} == {len(names[0])}


def test_files_that_take_too_long_are_reported_with_all_others(home: Path) -> None:
    problem = {"detail": "Files of this kind are not read.", "hints": ["Export it."]}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            is_exe = b"a.exe" in request.read()
            return httpx.Response(422, json=problem) if is_exe else httpx.Response(202, json={"doc_id": "d1"})
        if request.url.path == "/api/documents/d1":
            return httpx.Response(200, json={"status": "parsing", "history": []})
        return no_documents(request) or httpx.Response(404, json={"detail": "Not there."})

    for name in ("a.exe", "b.md"):
        (home / name).write_bytes(b"x")
    read = ReadTerminal(as_json=True)
    words = ("upload", str(home / "a.exe"), str(home / "b.md"), "--timeout", "0.1")
    assert run(ScriptedApi(answer=answer), read, *words) == 1
    outcomes = json.loads(read.out.getvalue())
    assert [(outcome["status"], outcome["reason"]) for outcome in outcomes] == [
        ("refused", problem["detail"]),
        ("parsing", "Still being ingested after 0 s."),
    ]


def test_hints_are_sent_after_their_table_and_both_become_ready(home: Path) -> None:
    uploads: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            uploads.append("hints" if b"sales.csv.tables.yaml" in request.read() else "table")
            return httpx.Response(202, json={"doc_id": "d1"})
        if request.url.path == "/api/documents/d1":
            return httpx.Response(200, json={"status": "ready", "history": []})
        return no_documents(request) or httpx.Response(404, json={"detail": "Not there."})

    for name in ("sales.csv", "sales.csv.tables.yaml"):
        (home / name).write_bytes(b"x")
    read = ReadTerminal(as_json=True)
    words = ("upload", str(home / "sales.csv.tables.yaml"), str(home / "sales.csv"))
    assert run(ScriptedApi(answer=answer), read, *words) == 0
    assert uploads == ["table", "hints"]
    assert read.out.getvalue().count('"ready"') == 2
