"""Tests for starting, monitoring and stopping a server, with real processes."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.child_process import ChildProcess, start_child, tail, wait_until_healthy
from local.run_all.stack_settings import StackError

SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
Start = Callable[..., ChildProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[ChildProcess] = []

    def start_one(code: str, *arguments: str) -> ChildProcess:
        command = [sys.executable, "-c", code, *arguments]
        child = start_child("test server", command, tmp_path / "test.log", os.environ, folder=tmp_path)
        started.append(child)
        return child

    yield start_one
    for child in started:
        child.kill()


def test_a_healthy_server_is_waited_for(start: Start, free_port: Callable[[], int]) -> None:
    port = free_port()
    child = start(SERVER, str(port))
    wait_until_healthy(child, port, "/health")
    assert child.is_running()
    child.stop()
    assert not child.is_running()


def test_a_server_that_dies_at_start_is_named_with_the_end_of_its_log(
    start: Start, free_port: Callable[[], int]
) -> None:
    child = start("import sys; sys.exit('the disk is full')")
    with pytest.raises(StackError, match=r"(?s)test server ended with exit code 1.*the disk is full"):
        wait_until_healthy(child, free_port(), "/health")


def test_a_server_that_ignores_sigterm_is_still_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.child_process.STOP_TIMEOUT_S", 0.2)
    child = start(
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(300)"
    )
    while "deaf" not in tail(child.log_path):
        pass
    child.stop()
    assert not child.is_running()
