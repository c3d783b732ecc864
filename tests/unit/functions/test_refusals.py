"""Tests for requests refused before any lookup: their status, error code and API description."""

from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from functions.api import app as api
from functions.http.openapi.description import describe
from tests.contract.api.described import Described

DESCRIBED = Described(describe(api()))


def assert_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Assert that a response is a problem with a detail and hints, as described in the API."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem: dict[str, Any] = answer.json()
    assert (problem["status"], problem["title"]) == (status, code)
    assert problem["detail"]
    assert problem["hints"]
    DESCRIBED.check(answer)
    return problem


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/chat", {"question": "x"}),
        ("POST", "/search", {"query": "x"}),
        ("GET", "/runs/x", None),
        ("GET", "/documents", None),
        ("GET", "/documents/x/content", None),
    ],
)
async def test_without_identity_nothing_is_shown(
    app: ASGIApp, method: str, path: str, body: dict[str, str] | None
) -> None:
    headers = {"Authorization": "Bearer not.a.token"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://app/api", headers=headers) as nobody:
        answer = await nobody.request(method, path, json=body)
    assert_problem(answer, 401, "NotAuthenticatedError")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "InvalidRequestError"),
        (b"[]", 400, "InvalidRequestError"),
        (b"", 400, "InvalidRequestError"),
        (b'{"question": ""}', 400, "InvalidRequestError"),
        (b'{"question": "   "}', 400, "InvalidRequestError"),
        (b'{"question": "x", "user_id": "ben"}', 400, "InvalidRequestError"),
        (b'{"question": "x", "thread_id": "../y"}', 400, "InvalidRequestError"),
        (b'{"question": "' + b"x" * 9000 + b'"}', 413, "PayloadTooLargeError"),
        (b'{"question": "' + b"x" * 3_000_000 + b'"}', 413, "PayloadTooLargeError"),
    ],
    ids=range(9),
)
async def test_a_bad_body_gets_a_clear_error(
    anna: httpx.AsyncClient, body: bytes, status: int, code: str
) -> None:
    assert_problem(await anna.post("/chat", content=body), status, code)


@pytest.mark.parametrize(
    "path", ["/runs/a%2Fb", "/runs/..%2F..%2Fdocuments", "/documents/a%2Fb", "/runs/%0a"]
)
async def test_an_id_that_cannot_exist_is_not_found(anna: httpx.AsyncClient, path: str) -> None:
    assert (await anna.get(path)).status_code == 404


async def test_the_number_of_documents_in_a_list_is_a_number(anna: httpx.AsyncClient) -> None:
    assert_problem(await anna.get("/documents", params={"limit": "many"}), 400, "InvalidRequestError")
