"""HTTP functions through the host: clients see the responses of the streaming extension."""

import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlparse

import httpx
import pytest

from tests.contract.host.host_process import HostProcess, wait_until

pytestmark = pytest.mark.contract


def test_request_reaches_the_function_with_route_query_and_body(host: HostProcess) -> None:
    with host.client() as client:
        answer = client.post("/api/echo/bob", params={"page": "2"}, content="hello")
    assert answer.json() == {"name": "bob", "query": {"page": "2"}, "body": "hello", "method": "POST"}
    assert answer.headers["x-sample"] == "yes"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/echo/fixed", {"route": "fixed"}),  # the first function in alphabetical order
        ("/api/files/a/b%20c", "a/b c"),  # the extension returns a str as JSON
        ("/API/Files/x", "x"),  # literals match in upper and lower case
    ],
)
def test_routes_are_chosen_as_the_real_host_chooses(host: HostProcess, path: str, expected: object) -> None:
    with host.client() as client:
        assert client.get(path).json() == expected


@pytest.mark.parametrize("path", ["/api/unknown", "/echo/x"])
def test_unknown_path_is_404(host: HostProcess, path: str) -> None:
    with host.client() as client:
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_a_function_gets_every_method(host: HostProcess, method: str) -> None:
    with host.client() as client:
        assert client.request(method, "/api/echo/x").json()["method"] == method


def test_exception_is_500_without_internals_and_its_stack_is_logged(host: HostProcess) -> None:
    with host.client() as client:
        answer = client.get("/api/boom")
    assert (answer.status_code, answer.text) == (500, "")
    assert "RuntimeError: the secret inside" in host.errors()


def test_http_exception_keeps_its_status(host: HostProcess) -> None:
    with host.client() as client:
        answer = client.get("/api/teapot")
    assert (answer.status_code, answer.json()) == (418, {"detail": "short and stout"})


def test_function_that_returns_nothing_is_500(host: HostProcess) -> None:
    with host.client() as client:
        assert client.get("/api/nothing").status_code == 500


def test_stream_arrives_piece_by_piece_and_ends_when_the_client_leaves(host: HostProcess) -> None:
    before = len(host.notes("ticks.ended"))
    with host.client() as client, client.stream("GET", "/api/ticks") as answer:
        lines = answer.iter_lines()
        received = [next(lines) for _ in range(7)]
    assert received[:3] == ["id: 0", "data: tick", ""]
    assert len(host.wait_for_notes("ticks.ended", before + 1)) == before + 1


def test_slow_reader_holds_the_sender_back(host: HostProcess) -> None:
    address = urlparse(host.base_url)
    with socket.socket() as reader, host.client() as client:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        reader.connect((address.hostname, address.port))
        reader.sendall(b"GET /api/flood HTTP/1.1\r\nhost: sample\r\n\r\n")
        assert reader.recv(100).startswith(b"HTTP/1.1 200")
        wait_until(lambda: _is_steady(client), "the sender to pause")
        # 2,000 chunks of 64 KiB would be 131 MB. The buffers of sockets and server hold only a few chunks.
        assert 0 < client.get("/api/counters").json()["flood_chunks"] < 1000


def _is_steady(client: httpx.Client) -> bool:
    first, second = (client.get("/api/counters").json()["flood_chunks"] for _ in range(2))
    return bool(first == second and first > 0)


def test_slow_synchronous_function_does_not_hold_up_others(host: HostProcess) -> None:
    with host.client() as client, httpx.stream("GET", f"{host.base_url}/api/ticks", timeout=60) as ticks:
        lines = ticks.iter_lines()
        next(lines)
        assert client.get("/api/slow/1").json() == "done"
        assert next(lines) == "data: tick"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/files/a%00b", {}, 400),
        ("/api/files/" + "a" * 9000, {}, 414),
        ("/api/files/a", {f"x-{number}": "y" for number in range(100)}, 431),
        ("/api/files/a", {"x-large": "y" * 33_000}, 431),
        ("/api/files/a", {"x-name": "\xfc"}, 400),
        ("/x/../api/files/a", {}, 200),
        ("/api/files/%2e/a", {}, 200),
        ("/api/../../api/files/a", {}, 200),
        ("http://elsewhere/api/files/a", {}, 200),
        ("http://elsewhere", {}, 404),
        ("/api/files/a", {"x-folded": "one\r\n two"}, 400),
    ],
)
def test_what_the_real_host_refuses_is_refused_and_dots_are_resolved(
    host: HostProcess, path: str, headers: dict[str, str], status: int
) -> None:
    address = urlparse(host.base_url)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        request = f"GET {path} HTTP/1.1\r\nhost: sample\r\nconnection: close\r\n{lines}\r\n"
        connection.sendall(request.encode("latin-1"))
        assert connection.recv(100).split()[1] == str(status).encode()


@pytest.mark.attack("exhaustion")
def test_a_body_over_the_limit_is_refused_before_it_is_read(new_host: Callable[..., HostProcess]) -> None:
    def sized(pieces: int) -> Iterator[bytes]:
        for _ in range(pieces):
            yield b"x" * 100

    with new_host(FUNCTIONS_REQUEST_BODY_SIZE_LIMIT="1000") as small, small.client() as client:
        assert client.post("/api/echo/a", content=b"x" * 1000).status_code == 200
        # Sent in chunks, without a Content-Length.
        assert client.post("/api/echo/a", content=sized(10)).status_code == 200
        for body in (b"x" * 1001, sized(11)):
            refused = client.post("/api/echo/a", content=body)
            assert (refused.status_code, refused.content) == (500, b"")
        # The response must arrive before the body was sent.
        with socket.create_connection(("127.0.0.1", urlparse(small.base_url).port or 0), timeout=10) as raw:
            raw.sendall(b"POST /api/echo/a HTTP/1.1\r\nHost: x\r\nContent-Length: 90000000\r\n\r\n")
            assert raw.recv(1000).startswith(b"HTTP/1.1 500")
