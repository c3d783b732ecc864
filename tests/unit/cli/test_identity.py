"""Tests for tokens: storage, recipients and renewal."""

import io
import json
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from cli.__main__ import main
from cli.api import Api
from cli.errors import CommandError
from cli.identity import token_for
from cli.session_file import AzureLogin, Session, keep_session, read_session, session_path
from tests.http_server import Answer, HttpServer, Request, json_answer

URL = "http://127.0.0.1:9"  # no server listens on this port


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GROUNDWORK_URL", URL)
    for name in ("GROUNDWORK_TOKEN", "GROUNDWORK_SCOPE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_kept_token_is_for_its_owner_alone() -> None:
    assert read_session() is None
    path = keep_session(Session(URL, "first"))
    assert keep_session(Session(URL, "second", 7.0, AzureLogin("s"))) == path
    assert read_session() == Session(URL, "second", 7.0, AzureLogin("s"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["session.json"]
    path.chmod(0o644)
    with pytest.raises(CommandError, match="by other users"):
        read_session()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"url": 1}', '{"url": "u", "token": "t", "azure": []}'])
def test_a_session_that_cannot_be_read_says_what_to_do(content: str) -> None:
    keep_session(Session(URL, "t")).write_text(content)
    with pytest.raises(CommandError, match="cannot be read"):
        read_session()


def test_login_keeps_the_token_and_does_not_print_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["login", "--token", "very-secret"]) == 0
    assert read_session() == Session(URL, "very-secret")
    captured = capsys.readouterr()
    assert "very-secret" not in captured.out + captured.err
    assert "was not checked" in captured.err
    assert main(["logout"]) == 0
    assert read_session() is None


def test_a_token_that_is_refused_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise CommandError("The token is not valid.", status=401)

    monkeypatch.setattr(Api, "call", refuse)
    assert main(["login", "--token", "wrong"]) == 2
    assert "not valid" in capsys.readouterr().err
    assert read_session() is None


@pytest.mark.parametrize("token", ["", " ", "töken", "two words", "a\x07b"])
def test_what_cannot_be_a_token_is_refused(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(token))
    assert main(["login"]) == 2
    assert not session_path().exists()


def test_a_token_goes_to_its_own_app_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_session(Session("http://127.0.0.1:1", "secret"))
    assert main(["documents"]) == 2
    assert "You are signed in at http://127.0.0.1:1." in capsys.readouterr().err
    monkeypatch.delenv("GROUNDWORK_URL")
    assert main(["documents"]) == 2
    assert "No response from http://127.0.0.1:1 " in capsys.readouterr().err


def test_without_a_token_the_way_to_one_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["documents"]) == 2
    assert "cli login" in capsys.readouterr().err


def test_a_user_of_the_local_stack_signs_in_by_name(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDWORK_DATA", str(home))
    assert main(["login", "--dev-user", "anna"]) == 2
    assert "make run" in capsys.readouterr().err
    (home / "tokens.json").write_text(json.dumps({"url": URL, "tokens": {"anna": "t1"}}))
    assert main(["login", "--dev-user", "eve"]) == 2
    assert "Its users are anna" in capsys.readouterr().err
    assert main(["login", "--dev-user", "anna", "--url", "http://127.0.0.1:8"]) == 2
    assert f"Add --url {URL}" in capsys.readouterr().err
    monkeypatch.delenv("GROUNDWORK_URL")
    keep_session(Session("http://127.0.0.1:9", "of another stack"))
    assert main(["login", "--dev-user", "anna"]) == 0  # at any address
    assert read_session() == Session(URL, "t1")
    capsys.readouterr()
    assert main(["token"]) == 0
    assert capsys.readouterr().out == "t1\n"


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Serve the managed identity endpoint of App Service, and yield the resources of the requested tokens."""
    resources: list[str] = []

    def respond(request: Request) -> Answer:
        resource = parse_qs(urlsplit(request.target).query)["resource"][0]
        resources.append(resource)
        token = {"access_token": f"token-{len(resources)}", "token_type": "Bearer"}
        return json_answer({**token, "resource": resource, "expires_on": str(int(time.time()) + 3600)})

    with HttpServer(respond) as server:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{server.url}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "h")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        yield resources


def test_azure_gives_a_token_for_the_app_and_renews_it(azure: list[str]) -> None:
    assert main(["login", "--azure", "--app-id", "app-1"]) == 0
    session = read_session()
    assert session is not None
    assert (session.token, azure) == ("token-1", ["api://app-1"])
    source = token_for(URL)
    assert source("") == "token-1"
    assert source("token-1") == "token-2"
    assert source("token-1") == "token-2"  # it was renewed before this caller's request was rejected
    ending = Session(URL, "old", time.time() + 10, session.azure)
    keep_session(ending)
    assert token_for(URL)("") == "token-3"
    renewed = read_session()
    assert renewed is not None
    assert renewed.token == "token-3"


def test_concurrent_uploads_renew_a_token_once(azure: list[str]) -> None:
    main(["login", "--azure", "--app-id", "app-1"])
    session = read_session()
    assert session is not None
    keep_session(replace(session, expires_at=time.time() + 10))
    source = token_for(URL)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(source, [""] * 8)) == {"token-2"}
    assert len(azure) == 2


def test_a_token_that_is_not_believed_is_renewed_once_and_sent_again(azure: list[str]) -> None:
    main(["login", "--azure", "--app-id", "app-1"])
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(
            200 if len(seen) == 2 else 401, json={"detail": "Ended.", "x": request.read().decode()}
        )

    api = Api(URL, token_for(URL))
    api._client = httpx.Client(base_url=URL, transport=httpx.MockTransport(answer), auth=api._client.auth)
    assert api.call("POST", "/x", json={"a": 1})["x"] == '{"a":1}'
    assert seen == ["Bearer token-1", "Bearer token-2"]


def test_without_a_scope_it_is_asked_which_app(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["login", "--azure"]) == 2
    assert "--app-id" in capsys.readouterr().err


def test_an_identity_that_azure_does_not_give_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    assert main(["login", "--azure", "--scope", "api://x/.default"]) == 2
    captured = capsys.readouterr()
    assert "Azure returned no token" in captured.err
    assert "az login" in captured.err


def test_the_end_of_the_input_is_an_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cli.terminal import _ask

    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert _ask("Sure? ") == "yes"
    with pytest.raises(KeyboardInterrupt):
        _ask("Sure? ")
    assert capsys.readouterr().err == "Sure? Sure? "
