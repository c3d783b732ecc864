"""Tests for `make audit`: which app it asks."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from local import audit
from local.run_all.tokens import load_or_make_secrets, write_tokens_file

REPORT = {"differences": [], "difference_count": 0, "counts": {"documents": 3}, "agrees": True, "share": 1}


class Reports(BaseHTTPRequestHandler):
    """An app that answers every request with a report."""

    def do_GET(self) -> None:
        content = json.dumps(REPORT).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(name="url")
def serve_reports() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Reports) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_app_of_the_data_folder_is_asked_whatever_its_port(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDWORK_DATA", str(tmp_path))
    monkeypatch.delenv("GROUNDWORK_HTTP_PORT", raising=False)
    write_tokens_file(tmp_path, url, load_or_make_secrets(tmp_path).token_secret)
    assert audit.main() == 0
    assert capsys.readouterr().out == "Everything agrees: 3 documents.\n"


def test_a_folder_without_a_stack_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDWORK_DATA", str(tmp_path))
    assert audit.main() == 2
    assert f"There is no stack in {tmp_path}" in capsys.readouterr().err
