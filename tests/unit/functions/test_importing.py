"""Tests for POST /api/documents/import, which turns a web page into a document of the caller."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from shared.platform.names import DOCUMENTS
from shared.platform.web_pages import WebPages, connect_web_pages
from shared.wiring import Services
from tests.fakes.blob_store import InMemoryBlobStore
from tests.fakes.web_site import SocketLog, WebSite, answer, resolver, socket_log
from tests.unit.functions.conftest import AsUser
from tests.unit.functions.http_app import IngestingClient, make_app

pytestmark = pytest.mark.attack("outgoing addresses")

URL = "http://site.example/docs/pumps.html"
PAGE = b"<html><title>Pumps</title><p>The pump runs at 15 bar.</p></html>"
ROBOTS = b"User-agent: *\nDisallow: /private/\n"


@pytest.fixture
def app(durable: IngestingClient) -> ASGIApp:
    return make_app(durable)


class Site:
    """A website, its client in the app, and the log of opened connections."""

    def __init__(self, site: WebSite, log: SocketLog) -> None:
        self.site = site
        self.log = log


@pytest.fixture
async def site(services: Services, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    services.settings = services.settings.model_copy(
        update={"web_pages": services.settings.web_pages.model_copy(update={"web_import": True})}
    )
    answers = {
        "/docs/pumps.html": answer(PAGE, kind="text/html; charset=utf-8"),
        "/plain": answer("Grüße".encode("cp1252"), kind="text/plain"),
        "/private/x": answer(PAGE),
        "/moved": answer(status=301, Location="/docs/pumps.html"),
        "/inside": answer(status=302, Location="http://169.254.169.254/metadata"),
        "/picture": answer(PAGE, kind="image/png"),
        "/broken": answer(status=500),
        "/large": answer(b"a" * 5_000_001, kind="text/plain"),
        "/robots.txt": answer(ROBOTS, kind="text/plain"),
    }
    async with AsyncExitStack() as stack:
        web_site = await stack.enter_async_context(WebSite(answers))
        connection = connect_web_pages(web_site.allows)
        stack.push_async_callback(connection.close)
        services.web_pages = WebPages(connection)
        names = {"site.example": ["127.0.0.1"], "inner.example": ["10.0.0.1"]}
        monkeypatch.setattr(socket, "getaddrinfo", resolver(names, web_site.port))
        yield Site(web_site, stack.enter_context(socket_log()))


async def import_page(client: httpx.AsyncClient, url: str = URL, **more: Any) -> httpx.Response:
    key = more.pop("key", None)
    headers = {"Idempotency-Key": key} if key else {}
    return await client.post("/documents/import", json={"url": url, **more}, headers=headers)


async def test_a_page_becomes_a_document_of_the_person_alone(
    services: Services, durable: IngestingClient, site: Site, user: AsUser
) -> None:
    response = await import_page(user("anna"), project_id="p1")
    assert response.status_code == 202, response.text
    document = response.json()
    assert (document["filename"], document["acl"]) == ("site.example docs pumps.html", ["anna"])
    assert document["project_id"] == "p1"
    assert response.headers["location"] == f"/api/documents/{document['doc_id']}"
    assert await durable.run() == ["ready"]
    ready = (await user("anna").get(f"/documents/{document['doc_id']}")).json()
    assert ready["source_url"] == URL
    path, ben = f"/documents/{document['doc_id']}", user("ben")
    refused = [
        *[await ben.get(f"{path}{part}") for part in ("", "/content", "/readable")],
        await ben.patch(path, json={"title": "Ours"}),
        await ben.put(f"{path}/access", json={"acl": ["*"]}),
        await ben.delete(path),
    ]
    assert [one.status_code for one in refused] == [404] * 6
    assert (await user("anna").get(f"{path}/content")).content.endswith(PAGE)


async def test_imports_are_in_the_audit_trail(site: Site, user: AsUser) -> None:
    own = await import_page(user("anna"))
    wide = await import_page(user("ben"), acl=["*"])
    assert (await import_page(user("carl"), "http://site.example/private/x")).status_code == 400
    entries = (await user("olga", roles=["admin"]).get("/audit")).json()["entries"]
    assert [(one["user_id"], one["action"], one["doc_ids"]) for one in reversed(entries)] == [
        ("anna", "upload", [own.json()["doc_id"]]),
        ("ben", "publish", [wide.json()["doc_id"]]),
    ]


async def test_asked_again_it_is_the_same_document(services: Services, site: Site, user: AsUser) -> None:
    first = await import_page(user("anna"), key="one")
    again = await import_page(user("anna"), key="one")
    moved = await import_page(user("anna"), "http://site.example/moved")
    assert len({one.json()["doc_id"] for one in (first, again, moved)}) == 1
    assert [one.headers.get("idempotency-replayed") for one in (first, again)] == [None, "true"]
    assert (
        site.site.requests.count("site.example/docs/pumps.html") == 2
    )  # for the original and the redirected address
    other = await import_page(user("anna"), "http://site.example/plain", key="one")
    assert other.status_code == 422
    assert (await import_page(user("ben"))).json()["doc_id"] != first.json()["doc_id"]


async def test_an_address_with_umlauts_is_kept_as_it_is_sent(
    durable: IngestingClient, site: Site, user: AsUser
) -> None:
    site.site.answers["/b%C3%BCcher"] = answer(PAGE)
    response = await import_page(user("anna"), "http://site.example/bücher?q=ü")
    assert response.status_code == 202, response.text
    assert await durable.run() == ["ready"]
    document = (await user("anna").get(f"/documents/{response.json()['doc_id']}")).json()
    assert document["source_url"] == "http://site.example/b%C3%BCcher?q=%C3%BC"
    assert document["filename"] == "site.example bücher q=ü.html"


async def test_every_address_is_its_own_document(site: Site, user: AsUser) -> None:
    paths = ("/a/b", "/a%20b", "/a/b/", "/a/b.html", "/a/b?c", "/a/b%3Fc", "/" + "a" * 200, "/" + "a" * 201)
    site.site.answers |= {path.partition("?")[0]: answer(PAGE) for path in paths}
    responses = [await import_page(user("anna"), f"http://site.example{path}") for path in paths]
    assert {one.status_code for one in responses} == {202}
    assert len({one.json()["doc_id"] for one in responses}) == len(paths)


async def test_a_new_version_keeps_its_readers_unless_others_are_named(site: Site, user: AsUser) -> None:
    for access, readers in (({"acl": ["ben"]}, ["ben"]), ({}, ["ben"]), ({"acl": []}, ["anna"])):
        response = await import_page(user("anna"), **access)
        assert set(readers) <= set(response.json()["acl"]) <= {*readers, "anna"}


@pytest.mark.parametrize("kind", ["application/octet-stream", "image/png", "text/html"])
async def test_wishes_count_whatever_the_site_calls_them(kind: str, site: Site, user: AsUser) -> None:
    site.site.answers["/robots.txt"] = answer(ROBOTS, kind=kind)
    refused = await import_page(user("anna"), "http://site.example/private/x")
    assert (refused.status_code, refused.json()["type"]) == (400, "urn:groundwork:error:PageImportError")


@pytest.mark.parametrize("line", ["Disallow: //[", "Crawl-delay: ²"])
async def test_a_site_whose_wishes_cannot_be_read_is_left_alone(line: str, site: Site, user: AsUser) -> None:
    site.site.answers["/robots.txt"] = answer(f"User-agent: *\n{line}\n".encode(), kind="text/plain")
    assert (await import_page(user("anna"))).status_code == 400


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://site.example/private/x", 400),
        ("http://site.example/picture", 400),
        ("http://site.example/absent", 400),
        ("http://site.example/large", 413),
        ("http://site.example/broken", 400),
        ("http://site.example/inside", 400),
        ("http://inner.example/", 400),
        ("http://127.0.0.1/", 400),
        ("http://169.254.169.254/metadata", 400),
        ("http://site.example:8080/", 400),
        ("http://anna@site.example/", 400),
        ("file:///etc/passwd", 400),
        ("", 400),
    ],
)
async def test_what_cannot_be_imported_leaves_nothing(
    url: str, status: int, services: Services, site: Site, user: AsUser
) -> None:
    refused = await import_page(user("anna"), url)
    assert refused.status_code == status, refused.text
    assert isinstance(services.blobs, InMemoryBlobStore)
    assert not services.blobs.containers.get(DOCUMENTS)
    assert {port for _, port in site.log.dialled} <= {site.site.port}


async def test_it_is_off_by_default(services: Services, user: AsUser) -> None:
    assert (await import_page(user("anna"))).status_code == 403
