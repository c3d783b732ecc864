"""Tests for readiness: checks are cached, and details are limited to signed-in users."""

import httpx
import pytest

from functions import health
from shared.platform.blobs import BlobProperties
from shared.platform.errors import DependencyError
from tests.fakes.services import fake_services
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests


async def test_strangers_share_one_look_at_the_stores_and_only_known_callers_learn_which_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services, check_count = fake_services(settings=settings_of_tests()), 0

    async def failing(container: str, name: str) -> BlobProperties | None:
        nonlocal check_count
        check_count += 1
        raise DependencyError("The storage is out of reach.")

    monkeypatch.setattr(services.blobs, "properties", failing)
    monkeypatch.setattr(health, "_LAST", health._Check())
    connect(monkeypatch, services)
    monkeypatch.setattr("shared.wiring.get_services", lambda: services)
    app = make_app(IngestingClient(services))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app/api") as nobody:
        anonymous = [await nobody.get("/health/ready") for _ in range(3)]
    anna_response = await as_user(app, "anna").get("/health/ready")
    assert {one.status_code for one in (*anonymous, anna_response)} == {503}
    assert [one.json()["failed"] for one in anonymous] == [{}, {}, {}]
    assert anna_response.json()["failed"] == {"storage": DependencyError.code}
    assert check_count == 2, "once for all who are not signed in, and again for the one who is"


class Unreachable:
    """A connection of a tool whose service is unreachable."""

    async def check(self) -> None:
        raise DependencyError("GitHub is out of reach.")

    async def close(self) -> None: ...


async def test_a_tool_that_fails_is_named_and_the_app_stays_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    services = fake_services(settings=settings_of_tests(), tool_clients={"github": Unreachable()})
    monkeypatch.setattr(health, "_LAST", health._Check())
    connect(monkeypatch, services)
    monkeypatch.setattr("shared.wiring.get_services", lambda: services)
    response = await as_user(make_app(IngestingClient(services)), "anna").get("/health/ready")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "failed": {"github": DependencyError.code}}
