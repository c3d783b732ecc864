"""The server as a process: start, refusal, stop, and its data after a kill."""

import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.contract.search_server.server_process import SearchServerProcess
from tests.free_ports import find_free_port

FIELDS = [
    {"name": "id", "type": "Edm.String", "key": True},
    {"name": "text", "type": "Edm.String"},
    {"name": "acl", "type": "Collection(Edm.String)", "searchable": False},
]
BATCH = 25


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SearchServerProcess]:
    server = SearchServerProcess(find_free_port(), tmp_path)
    server.start()
    yield server
    if server.process is not None and server.process.poll() is None:
        server.kill()


def test_sigterm_ends_it_cleanly_and_everything_is_there_again(server: SearchServerProcess) -> None:
    _create(server)
    _upload(server, [_document(0)])
    assert server.stop() == 0
    server.start()
    with _http(server) as http:
        response = http.post(
            "/indexes('kept')/docs/search.post.search", json={"search": "number", "count": True}
        )
        assert response.json()["@odata.count"] == 1


def test_a_busy_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        run = _run("--port", str(port), "--data", str(tmp_path), "--key", "k")
    assert run.returncode == 2
    assert run.stderr == f"Port {port} is in use; choose another one with --port\n"


def test_a_folder_has_one_server(server: SearchServerProcess) -> None:
    run = _run("--port", str(find_free_port()), "--data", str(server.folder), "--key", "k")
    assert run.returncode == 2
    assert "--data" in run.stderr


def test_acknowledged_documents_survive_kill(server: SearchServerProcess) -> None:
    _kill_and_look(server, rounds=2)


def _kill_and_look(server: SearchServerProcess, rounds: int) -> None:
    """Kill the server during uploads, and check that all acknowledged documents are in the store and in every
    index.
    """
    chance = random.Random(7)
    _create(server)
    acknowledged: set[int] = set()
    for turn in range(rounds):
        writer = threading.Thread(target=_write_until_killed, args=(server, turn * 1_000_000, acknowledged))
        writer.start()
        time.sleep(chance.uniform(0.3, 0.9))
        _wait_for_more(acknowledged, (turn + 1) * BATCH)
        server.kill()
        writer.join(timeout=120)
        server.start()
        with _http(server) as http:
            stored = int(http.get("/indexes('kept')/docs/$count").text.lstrip("\ufeff"))
            assert stored >= len(acknowledged)
            # Each batch is stored completely or not at all.
            assert stored % BATCH == 0
            for number in chance.sample(sorted(acknowledged), 20):
                assert http.get(f"/indexes('kept')/docs('{number}')").json() == _document(number)
            for body in ({"search": "number"}, {"filter": "acl/any(a: a eq 'all')"}):
                response = http.post(
                    "/indexes('kept')/docs/search.post.search", json={**body, "count": True, "top": 0}
                )
                assert response.json()["@odata.count"] == stored


def _wait_for_more(acknowledged: set[int], count: int) -> None:
    """Wait for more acknowledged documents, with patience for a busy machine."""
    give_up_at = time.monotonic() + 120
    while len(acknowledged) < count:
        assert time.monotonic() < give_up_at, "nothing was acknowledged"
        time.sleep(0.05)


def _write_until_killed(server: SearchServerProcess, first: int, acknowledged: set[int]) -> None:
    number = first
    while True:
        batch = list(range(number, number + BATCH))
        try:
            _upload(server, [_document(one) for one in batch])
        except httpx.TransportError:
            return
        acknowledged.update(batch)
        number += BATCH


def _document(number: int) -> dict[str, object]:
    return {"id": str(number), "text": f"number {number}", "acl": ["all", f"u{number % 7}"]}


def _create(server: SearchServerProcess) -> None:
    with _http(server) as http:
        assert http.post("/indexes", json={"name": "kept", "fields": FIELDS}).status_code == 201


def _upload(server: SearchServerProcess, documents: list[dict[str, object]]) -> None:
    with _http(server) as http:
        assert http.post("/indexes('kept')/docs/search.index", json={"value": documents}).status_code == 200


def _http(server: SearchServerProcess) -> httpx.Client:
    return httpx.Client(base_url=server.endpoint, headers={"api-key": server.key}, timeout=30)


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local.search_server", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
