"""The model server as a process: health, counts, a port in use, and a clean stop."""

import subprocess
import sys
from contextlib import suppress

import httpx
import pytest

from tests.contract.model_server.conftest import CHAT, EMBEDDING, KEY, start_server, stop_server
from tests.free_ports import find_free_port

pytestmark = pytest.mark.contract


def test_health_names_the_models_and_needs_no_key(address: str) -> None:
    reply = httpx.get(f"{address}/health", timeout=30)
    assert reply.json() == {"status": "ok", "chat_model": CHAT, "embedding_model": EMBEDDING}


def test_calls_are_counted(address: str) -> None:
    with httpx.Client(base_url=address, headers={"api-key": KEY}, timeout=30) as client:
        before = client.get("/v1/stats").json()
        body = {"model": f"{CHAT}@fail=500:1", "messages": [{"role": "user", "content": "Hello"}]}
        assert [client.post("/v1/chat/completions", json=body).status_code for _ in range(2)] == [500, 200]
        client.post("/v1/embeddings", json={"model": EMBEDDING, "input": ["a", "b"]})
        stats = client.get("/v1/stats").json()
        more = {kind: stats["requests"][kind] - before["requests"][kind] for kind in stats["requests"]}
        assert more == {"chat": 2, "embeddings": 1}
        assert stats["texts_embedded"] - before["texts_embedded"] == 2
        assert stats["failures_injected"] - before["failures_injected"] == 1
        task, prompt, completion = stats["calls"]["latest"][-1]
        assert (stats["calls"]["count"] - before["calls"]["count"], task) == (1, "plain")
        assert min(prompt, completion) > 0


def test_a_call_costs_what_was_delivered_of_it(address: str) -> None:
    with httpx.Client(base_url=address, headers={"api-key": KEY}, timeout=30) as client:
        messages = [{"role": "user", "content": "Hello"}]
        for knobs, stream in (
            ("ttft=1", True),
            ("drop=10", True),
            ("midstream=1", False),
        ):
            body = {"model": f"{CHAT}@{knobs}", "messages": messages, "stream": stream}
            with suppress(httpx.RemoteProtocolError):
                client.post("/v1/chat/completions", json=body)
        whole, broken, refused = client.get("/v1/stats").json()["calls"]["latest"][-3:]
        assert whole[1] == broken[1] > 0
        assert 0 < broken[2] < whole[2] / 2
        assert refused[1:] == [0, 0]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"model": "x"}', b'{"model": 1, "messages": 2}', b"\xff"]
)
def test_a_bad_body_is_a_400_in_openais_shape(address: str, body: bytes) -> None:
    reply = httpx.post(f"{address}/v1/chat/completions", content=body, headers={"api-key": KEY}, timeout=30)
    assert reply.status_code == 400
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


def test_a_taken_port_is_one_line_and_exit_2(address: str) -> None:
    port = int(address.rsplit(":", 1)[1])
    second = start_server(port)
    out, error = second.communicate(timeout=60)
    assert (second.returncode, out) == (2, "")
    assert error.strip() == f"Port {port} is in use; choose another one with --port"


def test_sigterm_ends_the_server_cleanly_even_with_a_stalled_reply() -> None:
    port = find_free_port()
    process = start_server(port)
    assert process.stdout is not None
    process.stdout.readline()
    model = f"{CHAT}@stall=0"
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        assert client.get("/health").status_code == 200
        with pytest.raises(httpx.TimeoutException):
            client.post("/v1/chat/completions", json=body, timeout=0.5)
        assert client.get("/health").status_code == 200
    stalled = subprocess.Popen(
        [sys.executable, "-c", _HANGING_CLIENT, str(port), model], stdout=subprocess.PIPE, text=True
    )
    assert stalled.stdout is not None
    assert stalled.stdout.readline() == "sent\n"
    assert stop_server(process) == 0
    stalled.communicate(timeout=30)


_HANGING_CLIENT = """
import json, socket, sys
body = json.dumps({"model": sys.argv[2], "messages": [{"role": "user", "content": "x"}]}).encode()
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\n")
connection.sendall(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
print("sent", flush=True)
connection.recv(1)
"""
