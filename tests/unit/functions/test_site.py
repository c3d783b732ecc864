"""Tests for serving the web page and its files, and for refusing requests from other sites."""

from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp

from functions import site
from functions.site import _upload_source
from tests.fakes.services import fake_services
from tests.unit.functions.http_app import IngestingClient, as_user, connect, make_app, settings_of_tests


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Groundwork</title>")
    for suffix, content in (("", b"plain"), (".gz", b"gzipped"), (".br", b"brotli")):
        (assets / f"page.js{suffix}").write_bytes(content)
    (tmp_path / "version.txt").write_text("0123456789")
    monkeypatch.setattr(site, "_FOLDER", tmp_path)
    site._content.cache_clear()
    return tmp_path


@pytest.fixture(name="app")
def make_site(monkeypatch: pytest.MonkeyPatch) -> ASGIApp:
    services = fake_services(settings=settings_of_tests())
    connect(monkeypatch, services)
    monkeypatch.setattr(site, "get_settings", lambda: services.settings)
    return make_app(IngestingClient(services))


@pytest.fixture(name="browser")
async def make_browser(app: ASGIApp, folder: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app")


async def test_the_shell_forbids_all_scripts_but_its_own(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/web")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "trusted-types 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-cache"
    response = await browser.get("/web", headers={"If-None-Match": answer.headers["etag"]})
    assert response.status_code == 304


async def test_a_page_that_was_not_built_says_so(browser: httpx.AsyncClient, folder: Path) -> None:
    (folder / "index.html").unlink()
    answer = await browser.get("/web")
    assert answer.status_code == 503
    assert answer.json()["hints"] == ["Build it with `make web`."]


@pytest.mark.parametrize(
    ("accepted", "encoding", "content"),
    [
        ("gzip, br", "br", b"brotli"),
        ("gzip", "gzip", b"gzipped"),
        ("identity", None, b"plain"),
        ("br;q=0, gzip;q=0.5", "gzip", b"gzipped"),
        ("br;q=0, *;q=0", None, b"plain"),
        ("*", "br", b"brotli"),
        ("brotli", None, b"plain"),
    ],
)
async def test_files_come_compressed_as_the_browser_reads_them(
    browser: httpx.AsyncClient, accepted: str, encoding: str | None, content: bytes
) -> None:
    async with browser.stream(
        "GET", "/web/assets/page.js?v=0123456789", headers={"Accept-Encoding": accepted}
    ) as answer:
        assert b"".join([part async for part in answer.aiter_raw()]) == content
    assert answer.headers.get("content-encoding") == encoding
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "name", ["absent.js", "..%2findex.html", "index.html", "page.js", "page.js?v=9876543210"]
)
async def test_nothing_else_is_served(browser: httpx.AsyncClient, name: str) -> None:
    assert (
        await browser.get(f"/web/assets/{name}")
    ).status_code == 404  # makes a page of an older build reload


async def test_limits_and_formats_are_for_everybody(browser: httpx.AsyncClient) -> None:
    answer = (await browser.get("/api/site")).json()
    assert answer["max_question_chars"] > 0
    assert ".pdf" in answer["suffixes"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),  # a client other than a browser
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://elsewhere"}, 201),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://app"}, 201),
        ({"Origin": "http://app.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://shown.example", "X-Forwarded-Host": "shown.example"}, 201),
    ],
)
async def test_pages_of_other_sites_change_nothing(
    app: ASGIApp, headers: dict[str, str], status: int
) -> None:
    async with as_user(app, "anna") as anna:
        answer = await anna.post("/threads", json={"title": "x"}, headers=headers)
        assert answer.status_code == status
        assert (await anna.get("/threads", headers=headers)).json()["count"] == (status == 201)


@pytest.mark.parametrize(
    ("connection_string", "source"),
    [
        ("BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;AccountKey=a==", " http://127.0.0.1:10000"),
        ("AccountName=papers;AccountKey=a==", " https://papers.blob.core.windows.net"),
    ],
)
def test_large_uploads_may_go_to_the_storage_account(connection_string: str, source: str) -> None:
    storage = {"connection_string": connection_string}
    settings = settings_of_tests()
    changed = settings.storage.model_copy(update=storage)
    assert _upload_source(settings.model_copy(update={"storage": changed})) == source
