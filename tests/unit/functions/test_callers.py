"""Tests for authentication of callers: admission, status codes, and the details returned about a caller."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from shared.platform.errors import AuthenticationError, CallTimeoutError, DependencyError
from tests.fakes.directory import InMemoryDirectory
from tests.fakes.services import fake_services, fake_settings
from tests.unit.access.principal_rows import ME, OTHER, OVERAGE, TENANT, USER, header
from tests.unit.functions.http_app import (
    IngestingClient,
    as_user,
    connect,
    make_app,
    problem_of,
    settings_of_tests,
)

PRINCIPAL = "X-MS-CLIENT-PRINCIPAL"


def app_of(monkeypatch: pytest.MonkeyPatch, directory: InMemoryDirectory, settings: Any) -> ASGIApp:
    services = fake_services(settings=settings, directory=directory)
    connect(monkeypatch, services)
    return make_app(IngestingClient(services))


@pytest.fixture
def directory() -> InMemoryDirectory:
    return InMemoryDirectory({USER: frozenset({"g1", "g2", "g3"})})


@pytest.fixture
async def platform(
    monkeypatch: pytest.MonkeyPatch, directory: InMemoryDirectory
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client for the app with the authentication of the hosting platform enabled."""
    app = app_of(monkeypatch, directory, fake_settings(website_auth_enabled=True, website_site_name="app"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app/api") as client:
        yield client


async def test_a_caller_learns_who_they_are_and_how_many_groups_count(platform: httpx.AsyncClient) -> None:
    claims = (ME, ("tid", TENANT), ("name", "Eva Lind"), ("department", "Legal"), ("roles", "admin"), OVERAGE)
    response = await platform.get("/me", headers={PRINCIPAL: header(*claims)})
    body = response.json()
    assert {view["resource"] for view in body.pop("today")} >= {"documents", "chat_tokens"}
    assert body == {
        "user_id": USER,
        "name": "Eva Lind",
        "department": "Legal",
        "org_id": TENANT,
        "group_count": 3,
        "roles": ["admin"],
        "is_administrator": True,
    }


async def test_a_development_token_is_told_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of(monkeypatch, InMemoryDirectory(), settings_of_tests())
    async with as_user(app, "anna", groups=["hr"], name="Anna") as anna:
        body = (await anna.get("/me")).json()
    assert (body["user_id"], body["name"], body["group_count"], body["roles"]) == ("anna", "Anna", 1, [])


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], (401, "NotAuthenticatedError")),
        ([(PRINCIPAL, "%%%")], (401, "NotAuthenticatedError")),
        ([(PRINCIPAL, header(ME)), (PRINCIPAL, header(("oid", OTHER)))], (401, "NotAuthenticatedError")),
        ([(PRINCIPAL, header(ME)), (PRINCIPAL, "")], (401, "NotAuthenticatedError")),
        ([("Authorization", "Bearer x")], (401, "NotAuthenticatedError")),
        ([(PRINCIPAL, header(ME, ("idtyp", "app")))], (403, "AccessDeniedError")),
        ([(PRINCIPAL, header(("oid", OTHER), OVERAGE))], (403, "AccessDeniedError")),
    ],
)
async def test_everybody_else_is_refused(
    platform: httpx.AsyncClient, headers: list[tuple[str, str]], expected: tuple[int, str]
) -> None:
    assert problem_of(await platform.get("/me", headers=headers)) == expected


async def test_a_header_that_came_twice_and_says_the_same_is_one(platform: httpx.AsyncClient) -> None:
    twice = [(PRINCIPAL, header(ME)), (PRINCIPAL, header(ME))]
    assert (await platform.get("/me", headers=twice)).status_code == 200


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (DependencyError("down"), (503, "NetworkError")),
        (AuthenticationError("refused"), (502, "AuthenticationError")),
        (CallTimeoutError("late"), (504, "TimeoutError")),
    ],
)
async def test_groups_that_cannot_be_looked_up_are_an_error_of_ours(
    platform: httpx.AsyncClient, directory: InMemoryDirectory, failure: DependencyError, expected: Any
) -> None:
    directory.fails_with = failure
    refused = await platform.get("/me", headers={PRINCIPAL: header(ME, OVERAGE)})
    assert problem_of(refused) == expected
    assert refused.json()["detail"] == f"Your groups cannot be looked up. {failure.detail}"
    assert (await platform.get("/me", headers={PRINCIPAL: header(ME)})).status_code == 200


async def test_the_role_of_administrators_is_asked_for_after_the_identity(
    platform: httpx.AsyncClient,
) -> None:
    path = "/maintenance/poison"
    assert problem_of(await platform.get(path)) == (401, "NotAuthenticatedError")
    for claims in ((ME,), (ME, ("roles", "Admin")), (ME, ("groups", "admin")), (ME, ("department", "admin"))):
        refused = await platform.get(path, headers={PRINCIPAL: header(*claims)})
        assert problem_of(refused) == (403, "AccessDeniedError"), claims
    let_in = await platform.get(path, headers={PRINCIPAL: header(ME, ("roles", "admin"))})
    assert let_in.status_code == 200
