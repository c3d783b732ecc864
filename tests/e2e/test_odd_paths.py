"""Odd paths for every route with a parameter: each request gets a response, and the worker survives."""

import random
import socket

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import SampleUser
from tests.api_routes import api_routes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.attack("path tricks")]

ODD = ("%0a", "a%0ab", "%0d%0a", "%00", "%2F", "%ff", "..", "%2e%2e", "%", "%e2%80%a8", "a" * 300)
RANDOM_PATHS = 300
SEED = 20260115
# Owns nothing that a request with a resolved path could delete.
VISITOR = SampleUser("visitor", "Visitor", department="", groups=())


def routes() -> list[tuple[str, str]]:
    """Return method and template of every route with a parameter."""
    return sorted((method, f"api/{route}") for method, route, _ in api_routes() if "{" in route)


def filled(template: str, value: str) -> str:
    parts = (value if part.startswith("{") else part for part in template.split("/"))
    return "/" + "/".join(parts)


def status_of(stack: LocalStack, method: str, path: str) -> int:
    """Send a request with an unmodified path and return the status of the response."""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n"
    with socket.create_connection(("127.0.0.1", stack.ports.http), timeout=60) as connection:
        connection.sendall(f"{head}authorization: Bearer {stack.token(VISITOR)}\r\n\r\n".encode("latin-1"))
        return int(connection.recv(64).split()[1])


def test_a_line_break_in_an_id_reaches_the_app(stack: LocalStack) -> None:
    for identifier in ("a%0ab", "%0d%0a"):
        answer = httpx.get(
            f"{stack.base_url}/api/documents/{identifier}",
            headers={"authorization": f"Bearer {stack.token(VISITOR)}"},
            timeout=60,
        )
        assert answer.json()["title"] == "DocumentNotFoundError"


def test_every_route_answers_odd_parameters(stack: LocalStack) -> None:
    chance = random.Random(SEED)
    requests = [(method, filled(route, odd)) for method, route in routes() for odd in ODD]
    alphabet = "abc%0a2Ff.-_~:@!$&'()*+,;="
    for _ in range(RANDOM_PATHS):
        method, route = chance.choice(routes())
        requests.append((method, filled(route, "".join(chance.choices(alphabet, k=chance.randint(1, 12))))))
    answers = {one: status_of(stack, *one) for one in requests}
    assert len(answers) > RANDOM_PATHS
    assert {one: status for one, status in answers.items() if status == 500} == {}
    assert httpx.get(f"{stack.base_url}/api/health", timeout=60).status_code == 200


@pytest.mark.parametrize("method", ["PROPFIND", "PURGE", "LOCK", "SEARCH", "REPORT"])
def test_an_unusual_method_is_refused(stack: LocalStack, method: str) -> None:
    assert status_of(stack, method, "/api/health") == 405
    assert status_of(stack, "CONNECT", "/api/health") == 400


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"])
def test_addresses_of_fastapi_s_documentation_reach_the_app(stack: LocalStack, path: str) -> None:
    assert status_of(stack, "GET", path) == 404
