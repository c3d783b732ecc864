"""The host's own URLs refuse requests without a key, and requests from pages of other sites."""

import socket
import stat
from urllib.parse import urlsplit

import httpx
import pytest

from tests.contract.host.host_process import HostProcess

pytestmark = [pytest.mark.contract, pytest.mark.attack("identity")]
INSTANCES = "/runtime/webhooks/durabletask/instances"
OWN = ("/admin/host/status", "/admin/functions", INSTANCES, "/ADMIN/host/status")


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize("headers", [{}, {"x-functions-key": "guessed"}, {"x-functions-key": "guess&d"}])
def test_without_the_key_they_are_401(host: HostProcess, path: str, headers: dict[str, str]) -> None:
    answer = httpx.get(f"{host.base_url}{path}", headers=headers)
    assert (answer.status_code, answer.text) == (401, "")


def test_the_key_may_stand_in_the_address(host: HostProcess) -> None:
    code = host.headers["x-functions-key"]
    assert httpx.get(f"{host.base_url}/admin/host/status", params={"code": code}).status_code == 200


@pytest.mark.parametrize("path", [*OWN[:3], "/durabletask/instances"])
@pytest.mark.parametrize(
    "foreign",
    [
        {"Host": "rebound.example:80"},
        {"Host": "[1"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
    ],
)
def test_a_page_of_another_site_is_refused_even_with_the_key(
    host: HostProcess, path: str, foreign: dict[str, str]
) -> None:
    answer = httpx.get(f"{host.base_url}{path}", headers={**host.headers, **foreign})
    assert answer.status_code == 403


def test_a_page_of_the_host_itself_may_ask(host: HostProcess) -> None:
    headers = {**host.headers, "Origin": host.base_url}
    assert httpx.get(f"{host.base_url}/admin/host/status", headers=headers).status_code == 200


def test_the_addresses_of_the_sdk_need_the_keys_of_host_and_worker(host: HostProcess) -> None:
    for path in ("/durabletask/instances", f"/durabletask/{host.headers['x-functions-key']}/instances"):
        assert httpx.get(f"{host.base_url}{path}", headers=host.headers).status_code == 404


def test_a_whole_url_in_the_request_line_passes_no_guard(host: HostProcess) -> None:
    address = urlsplit(host.base_url)
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        connection.sendall(b"GET http://x/admin/host/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(100).split()[1] == b"401"


def test_a_body_that_looks_like_a_folded_header_is_taken(host: HostProcess) -> None:
    text = "one\r\n two\n\tthree"
    with host.client() as client:
        assert client.post("/api/echo/bob", content=text).json()["body"] == text


def test_the_key_is_readable_by_its_owner_alone(host: HostProcess) -> None:
    path = host.folder / "data" / "master-key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
