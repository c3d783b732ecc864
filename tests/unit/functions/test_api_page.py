"""Tests for the API page, which loads only from its own origin and contains no inline script."""

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.fakes.services import fake_services
from tests.unit.functions.http_app import IngestingClient, make_app, problem_of, settings_of_tests

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from shared.wiring import Services


@pytest.fixture(name="nobody")
def make_nobody() -> httpx.AsyncClient:
    services: Services = fake_services(settings=settings_of_tests())
    app: ASGIApp = make_app(IngestingClient(services))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app")


async def test_the_page_holds_no_script_and_names_only_files_of_ours(nobody: httpx.AsyncClient) -> None:
    page = (await nobody.get("/api/docs")).text
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=", page) == []
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(links) >= 5
    for link in links:
        assert link.startswith("/api/")
        assert (await nobody.get(link)).status_code == 200, link


async def test_the_policy_allows_nothing_of_others(nobody: httpx.AsyncClient) -> None:
    for path in ("/api/docs", "/api/docs/start.js"):
        policy = (await nobody.get(path)).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy


async def test_files_have_their_types_and_are_sent_once(nobody: httpx.AsyncClient) -> None:
    bundle = await nobody.get("/api/docs/swagger-ui-bundle.js")
    assert bundle.headers["content-type"].startswith("text/javascript")
    assert bundle.headers["x-content-type-options"] == "nosniff"
    headers = {"If-None-Match": bundle.headers["etag"]}
    again = await nobody.get("/api/docs/swagger-ui-bundle.js", headers=headers)
    assert (again.status_code, again.content) == (304, b"")


async def test_the_description_is_json_and_is_sent_once(nobody: httpx.AsyncClient) -> None:
    described = await nobody.get("/api/openapi.json")
    assert described.json()["openapi"] == "3.1.0"
    again = await nobody.get("/api/openapi.json", headers={"If-None-Match": described.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("name", ["page.html", "description.py", "..%2Fapi_page.py", "__init__.py", "x"])
async def test_no_other_file_is_to_be_had(nobody: httpx.AsyncClient, name: str) -> None:
    answered = await nobody.get(f"/api/docs/{name}")
    if answered.headers["content-type"] == "application/problem+json":
        assert problem_of(answered) == (404, "NotFoundError")
    assert answered.status_code == 404
