"""HTTP client for web pages. It is the only client whose destination is chosen by users or models.

The check is made on the address that the socket is about to connect to, after name resolution, because names
can change their meaning a moment later and aiohttp doesn't resolve literals. Redirects are followed here,
each checked like the first URL. No cookies or credentials are sent.
"""

# Annotations remain strings, so that their types need not be imported at runtime.
from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from shared.platform.calls import WEB_PAGES as SERVICE
from shared.platform.calls import call_span
from shared.platform.connections import Connection
from shared.platform.errors import CallTimeoutError, DependencyError, InvalidQueryError
from shared.platform.web_addresses import may_dial, page_address

MAX_PAGE_BYTES = 5_000_000  # maximum size of a page, applied to its decompressed content
MAX_REDIRECTS = 3
TIMEOUT_S = 10.0  # time limit for a whole page, including redirects
_PIECE_BYTES = 64 * 1024
_AGENT = "Groundwork (reads a page for a person)"
AGENT_NAME = "Groundwork"
_PACKED = ("gzip", "x-gzip")
SUFFIXES: Mapping[str, str] = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "application/pdf": ".pdf",
}
"""The kinds of pages that are read, and what a file of each is called."""

MayDial = Callable[[str, int], bool]
"""Whether an IP address and port may be dialled."""


@dataclass(frozen=True)
class FetchedPage:
    """A downloaded web page.

    Attributes:
        final_url: the URL after all redirects.
        content_type: one of `SUFFIXES`.
        content: decompressed, at most `MAX_PAGE_BYTES`.
        is_cut: whether the page was longer.
        charset: as declared by the server; None = undeclared.
    """

    final_url: str
    content_type: str
    content: bytes
    is_cut: bool = False
    charset: str | None = None

    @property
    def suffix(self) -> str:
        """File name extension for the page's content type, such as ".html"."""
        return SUFFIXES[self.content_type]


def connect_web_pages(allowed: MayDial = may_dial) -> Connection[ClientSession]:
    """Return a lazily created HTTP session that connects only to permitted addresses.

    Args:
        allowed: decides on every connection. Only tests, whose servers are on this machine, replace it.
    """

    def make() -> ClientSession:
        def dialled(addr_info: Any) -> socket.socket:
            family, kind, protocol, _, address = addr_info
            if not allowed(str(address[0]), int(address[1])):
                raise PermissionError("This URL is not on the public web.")
            sock = socket.socket(family, kind, protocol)
            sock.setblocking(False)
            return sock

        return ClientSession(
            connector=TCPConnector(socket_factory=dialled, force_close=True, use_dns_cache=False),
            headers={"User-Agent": _AGENT, "Accept-Encoding": "gzip"},
            # The session has no time limit, because each call sets its own.
            timeout=ClientTimeout(total=None),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    return Connection(make)


class WebPages:
    """Client that downloads web pages."""

    def __init__(self, connection: Connection[ClientSession], timeout_s: float = TIMEOUT_S) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    async def fetch(self, url: str, read_as: str | None = None) -> FetchedPage:
        """Download a web page. At most 5 MB are kept; up to three redirects are followed within 10 s.

        Args:
            read_as: content type that overrides the server's; None = as declared.

        Raises:
            InvalidQueryError: the URL has no readable page; the message says why.
            CallTimeoutError: the limit was exceeded.
            DependencyError: the server is unreachable or failed, or its address is not public.
        """
        try:
            with call_span(SERVICE, "fetch"):
                async with asyncio.timeout(self._timeout_s):
                    return await self._follow(page_address(url), read_as)
        except TimeoutError:
            raise CallTimeoutError("The page did not load in time.", "Try another page.") from None
        except (ClientError, OSError, ValueError, zlib.error) as failed:
            if isinstance(failed, InvalidQueryError):
                raise
            # All causes result in the same message, so that it reveals nothing about private networks.
            raise DependencyError(
                "The page is unreachable or its address is not public.", "Try another page."
            ) from None

    async def _follow(self, url: str, read_as: str | None) -> FetchedPage:
        session = await self._connection.opened()
        for _ in range(MAX_REDIRECTS + 1):
            async with session.get(url, allow_redirects=False) as response:
                target = response.headers.get("Location")
                if not (300 <= response.status < 400 and target):
                    return await _page(url, response, read_as or response.content_type)
            url = page_address(urljoin(url, target))
        raise InvalidQueryError("The page has too many redirects.", "Try another page.")


async def _page(url: str, response: ClientResponse, content_type: str) -> FetchedPage:
    if response.status != 200:
        if response.status >= 500:
            raise DependencyError(f"The page's server failed (HTTP {response.status}).", "Try another page.")
        raise InvalidQueryError(f"The page is not available (HTTP {response.status}).", "Try another page.")
    if content_type not in SUFFIXES:
        raise InvalidQueryError(
            "This is not a text page.", "HTML, plain text, Markdown and PDF are supported."
        )
    content, is_cut = await _read_bounded(response)
    return FetchedPage(url, content_type, content, is_cut, response.charset)


async def _read_bounded(response: ClientResponse) -> tuple[bytes, bool]:
    """Return the decompressed content, cut off at 5 MB, and whether it was cut off.

    Raises:
        InvalidQueryError: the content encoding was not requested.
    """
    packing = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packing not in ("", "identity", *_PACKED):
        raise InvalidQueryError("The page has an unsupported encoding.", "Try another page.")
    unpacker = zlib.decompressobj(wbits=31) if packing in _PACKED else None
    content = bytearray()
    async for piece in response.content.iter_chunked(_PIECE_BYTES):
        room = MAX_PAGE_BYTES + 1 - len(content)
        content += unpacker.decompress(piece, room) if unpacker else piece[:room]
        if len(content) > MAX_PAGE_BYTES:
            return bytes(content[:MAX_PAGE_BYTES]), True
    return bytes(content), False
