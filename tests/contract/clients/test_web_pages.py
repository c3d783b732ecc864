"""Web pages from hostile servers and under hostile names, checked against the log of dialled sockets.

A test server represents the public web. The injected rule `WebSite.allows` permits connections only to it.
"""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from shared.platform.errors import CallTimeoutError, DependencyError, GroundworkError, InvalidQueryError
from shared.platform.web_pages import MAX_PAGE_BYTES, WebPages, connect_web_pages
from tests.fakes.web_site import Answers, SocketLog, WebSite, answer, resolver, socket_log

pytestmark = [pytest.mark.contract, pytest.mark.attack("outgoing addresses")]

SITE = "http://site.test"
PRIVATE_NAMES = """
0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.53 169.254.169.254 168.63.129.16 172.16.0.1 172.31.9.9 192.0.0.192
192.168.0.1 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 ::1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
64:ff9b::a9fe:a9fe 2002:a9fe:a9fe:: 2001::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 ::
""".split()
LITERALS = """
127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 0x7f.0.0.1 127.0.0.1.
10.0.0.1 0xa000001 167772161 169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518
168.63.129.16 0.0.0.0 0 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:a9fe:a9fe]
[64:ff9b::7f00:1] [fe80::1] [fd00:ec2::254] [2002:7f00:1::] localhost LOCALHOST localhost. ip6-localhost
""".split()
BAD_URLS = (
    *("http://user@site.test/", "http://user:password@site.test/", "http://site.test@127.0.0.1/"),
    *("http://site.test:8080/", "https://site.test:80/", "http://127.0.0.1:10000/", "http://site.test:0/"),
    *("ftp://site.test/", "file:///etc/passwd", "gopher://127.0.0.1/", "data:text/html,x", "javascript:1"),
    *("//site.test/", "site.test", "", "http://", "http://[::1", "http://site.test\\@127.0.0.1/"),
    *(
        "http://127.0.0.1\\.site.test/",
        "http://site.test/ x",
        "http://site.test/\r\nHost: 127.0.0.1",
        "http:///etc",
    ),
)
TEXT = b"<html><title>T</title><p>Words of the page.</p>"


def big() -> bytes:
    return b"a" * (MAX_PAGE_BYTES + 10)


async def drips(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while True:
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.02)


async def never(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@pytest.fixture
async def sites() -> AsyncIterator[Any]:
    """Yield a function that creates a site and a client that may dial it, and close them at the end."""
    resources: list[Any] = []

    async def make(answers: Answers, timeout_s: float = 10) -> tuple[WebSite, WebPages]:
        site = await WebSite(answers).__aenter__()
        connection = connect_web_pages(site.allows)
        resources.extend((connection, site))
        return site, WebPages(connection, timeout_s)

    yield make
    for connection, site in zip(resources[::2], resources[1::2], strict=True):
        await connection.close()
        await site.__aexit__()


@pytest.fixture
def log() -> Iterator[SocketLog]:
    with socket_log() as log:
        yield log


def known_names(monkeypatch: pytest.MonkeyPatch, site: WebSite, **names: Any) -> None:
    addresses = {"site.test": ["127.0.0.1"], **{name.replace("_", "."): to for name, to in names.items()}}
    monkeypatch.setattr(socket, "getaddrinfo", resolver(addresses, site.port))


def dialled_elsewhere(log: SocketLog, site: WebSite) -> list[tuple[str, int]]:
    return [one for one in log.dialled if one != ("127.0.0.1", site.port)]


async def test_a_page_is_read(sites: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = answer(gzip.compress(TEXT), Content_Encoding="gzip", Set_Cookie="a=b")
    moved = answer(status=302, Location="/packed#part")
    site, pages = await sites(
        {"/": answer(TEXT, kind="text/html; charset=utf-8"), "/packed": packed, "/m": moved}
    )
    known_names(monkeypatch, site)
    page = await pages.fetch(SITE)
    assert (page.final_url, page.content_type, page.content) == (f"{SITE}/", "text/html", TEXT)
    assert (page.charset, page.suffix, page.is_cut) == ("utf-8", ".html", False)
    page = await pages.fetch(f"{SITE}/m")
    assert (page.final_url, page.content) == (f"{SITE}/packed", TEXT)
    await pages.fetch(SITE)
    request_heads = "".join(site.heads).lower()
    assert "cookie" not in request_heads
    assert "authorization" not in request_heads


@pytest.mark.parametrize("url", BAD_URLS)
async def test_an_address_that_is_not_plain_is_not_asked(url: str, sites: Any, log: SocketLog) -> None:
    site, pages = await sites({"/": answer(TEXT)})
    with pytest.raises(InvalidQueryError):
        await pages.fetch(url)
    assert (log.dialled, site.requests) == ([], [])


@pytest.mark.parametrize("host", LITERALS)
async def test_no_spelling_of_a_private_address_is_dialled(
    host: str, sites: Any, log: SocketLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, pages = await sites({"/": answer(TEXT)})
    addresses = {
        name: ["127.0.0.2", "::1"] for name in ("localhost", "localhost.", "127.0.0.1.", "ip6-localhost")
    }
    monkeypatch.setattr(socket, "getaddrinfo", resolver(addresses, site.port))
    with pytest.raises(DependencyError):
        await pages.fetch(f"http://{host}/")
    assert (log.dialled, site.requests) == ([], [])


@pytest.mark.parametrize("address", PRIVATE_NAMES)
async def test_a_name_of_a_private_address_is_not_dialled(
    address: str, sites: Any, log: SocketLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, pages = await sites({"/": answer(TEXT)})
    known_names(monkeypatch, site, inner_test=[address], both_test=[address, address])
    for name in ("inner.test", "both.test"):
        with pytest.raises(DependencyError):
            await pages.fetch(f"http://{name}/")
    assert (log.dialled, site.requests) == ([], [])


@pytest.mark.parametrize(
    "target",
    [
        *(f"http://{host}/latest/meta-data/" for host in LITERALS[::3]),
        *BAD_URLS[:12],
        *("http://inner.test/", "//inner.test/", "//127.0.0.1/", "https://127.0.0.1/"),
    ],
)
async def test_no_redirect_leads_inside(
    target: str, sites: Any, log: SocketLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, pages = await sites({"/": answer(status=302, Location=target)})
    known_names(monkeypatch, site, inner_test=["10.0.0.1"])
    with pytest.raises((InvalidQueryError, DependencyError)):
        await pages.fetch(SITE)
    assert dialled_elsewhere(log, site) == []
    assert site.requests == ["site.test/"]


async def test_a_name_that_changes_its_address_is_not_followed(
    sites: Any, log: SocketLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, pages = await sites({"/": answer(status=302, Location="/again"), "/again": answer(TEXT)})
    known_names(monkeypatch, site, rebound_test=iter(["127.0.0.1", "10.0.0.1", "10.0.0.1"]))
    with pytest.raises(DependencyError):
        await pages.fetch("http://rebound.test/")
    assert dialled_elsewhere(log, site) == []
    assert site.requests == ["rebound.test/"]


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"/": answer(status=302, Location="/")}, InvalidQueryError),
        ({"/": answer(TEXT, status=404)}, InvalidQueryError),
        ({"/": answer(TEXT, status=401)}, InvalidQueryError),
        ({"/": answer(TEXT, status=302)}, InvalidQueryError),
        ({"/": answer(TEXT, status=503)}, DependencyError),
        ({"/": answer(TEXT, kind="application/zip")}, InvalidQueryError),
        ({"/": answer(TEXT, kind="image/svg+xml")}, InvalidQueryError),
        ({"/": answer(TEXT, kind="")}, InvalidQueryError),
        ({"/": answer(TEXT, Content_Encoding="br")}, InvalidQueryError),
        ({"/": answer(TEXT, Content_Encoding="gzip, gzip")}, InvalidQueryError),
        ({"/": answer(TEXT, Content_Encoding="gzip")}, DependencyError),
        ({"/": b"SSH-2.0-OpenSSH_9.2\r\n"}, DependencyError),
        ({"/": b""}, DependencyError),
        (
            {"/": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nx"},
            DependencyError,
        ),
        ({"/": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n"}, DependencyError),
        ({"/": drips}, CallTimeoutError),
        ({"/": never}, CallTimeoutError),
    ],
)
async def test_bad_servers_are_errors(
    answers: Answers, error: type[GroundworkError], sites: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, pages = await sites(answers, timeout_s=1 if error is CallTimeoutError else 60)
    known_names(monkeypatch, site)
    with pytest.raises(error) as raised:
        await pages.fetch(SITE)
    assert type(raised.value) is error
    assert "site.test" not in str(raised.value)


@pytest.mark.parametrize(
    "response",
    [
        answer(big(), kind="text/plain"),
        answer(gzip.compress(big()), kind="text/plain", Content_Encoding="gzip"),
        answer(gzip.compress(bytes(50_000_000), 1), kind="text/plain", Content_Encoding="gzip"),
    ],
    ids=["large", "packed", "bomb"],
)
async def test_no_more_than_the_limit_is_kept(
    response: bytes, sites: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, pages = await sites({"/": response}, timeout_s=60)
    known_names(monkeypatch, site)
    page = await pages.fetch(SITE)
    assert (len(page.content), page.is_cut) == (MAX_PAGE_BYTES, True)


async def test_a_server_that_is_not_there_is_an_error(sites: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site, pages = await sites({})
    known_names(monkeypatch, site)
    with pytest.raises(DependencyError):
        await pages.fetch("http://absent.test/")
