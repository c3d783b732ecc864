"""Web search clients for the JSON APIs of SearXNG (and compatible engines) and Brave.

Queries are sent in a request's body, never in a URL, only to the configured host (no redirects), and appear
in no log or error. Responses are untrusted, so their size, number and characters are limited here.

Source: SearXNG, "Search API": POST /search with `q` and `format=json`; 403 if `json` is not enabled. Brave,
"Web Search API": POST with a JSON body; `web.results` with `description` and `page_age`.
"""

# Annotations stay strings, so that their types need not be imported at startup.
from __future__ import annotations

import asyncio
import html
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aiohttp import ClientSession
from pydantic import Field, ValidationError

from shared.platform.calls import WEB_SEARCH as SERVICE
from shared.platform.calls import Deadline, call_span, call_within, error_of_status
from shared.platform.connections import Connection
from shared.platform.errors import ConfigurationError, DependencyError
from shared.platform.http_client import (
    Wire,
    collapse_spaces,
    connect_http,
    http_errors,
    not_understood,
    read_bounded,
)
from shared.platform.language_models.models import CallLimits
from shared.platform.settings import Settings
from shared.platform.web_addresses import plain_addresses
from shared.tools.models import WebHit


class WebSearch(Protocol):
    """A web search engine. Queries disclose the question to third parties, so callers must check the policy
    first.
    """

    async def search(self, query: str, count: int, limits: CallLimits) -> list[WebHit]:
        """Return at most `count` pages, best first. Their text is untrusted data and never an instruction."""


_CONNECT_TIMEOUT_S = 5
MAX_ANSWER_BYTES = 2_000_000  # 20 results have about 20 KB
MAX_QUERY_CHARS = 400  # search engines accept about 32 words
# Results on one page of SearXNG.
MAX_HITS = 20
MAX_TITLE_CHARS = 200
MAX_TEXT_CHARS = 1_000  # search engines return about 300 characters
MAX_DATE_CHARS = 40


class _Result(Wire):
    url: str | None = None
    title: str | None = None
    content: str | None = None
    published_at: str | None = Field(default=None, alias="publishedDate")


class _Found(Wire):
    results: tuple[_Result, ...]
    unresponsive_engines: tuple[Any, ...] = ()


class _BraveResult(_Result):
    content: str | None = Field(default=None, alias="description")
    published_at: str | None = Field(default=None, alias="page_age")


class _BraveResults(Wire):
    results: tuple[_BraveResult, ...] = ()


class _BraveFound(Wire):
    web: _BraveResults = _BraveResults()


def connect_web_search(settings: Settings) -> Connection[ClientSession]:
    """Return the HTTP session of the search engine. It is created on first use, which also imports
    aiohttp.
    """
    chosen = settings.web_search
    header = "X-Subscription-Token" if chosen.engine == "brave" else chosen.key_header
    return connect_http(_CONNECT_TIMEOUT_S, {header: chosen.key} if chosen.key else None)


class HttpWebSearch(WebSearch, ABC):
    """Base class of search engines with an HTTP API."""

    def __init__(self, connection: Connection[ClientSession], url: str) -> None:
        """Create the client. `url` is the complete endpoint, such as https://NAME/search."""
        self._connection = connection
        self._url = url

    async def search(self, query: str, count: int, limits: CallLimits) -> list[WebHit]:
        """Return at most `count` pages (up to 20), best first. Queries are truncated to 400 characters.

        Raises:
            DependencyError: the service did not respond, or none of its search engines did.
        """
        body = self._body(collapse_spaces(query)[:MAX_QUERY_CHARS], min(count, MAX_HITS))
        deadline = Deadline(limits.timeout_s)
        with call_span(SERVICE, "query"):
            results = await call_within(deadline, limits.max_retries, lambda: self._request(body, deadline))
        return _hits(results, min(count, MAX_HITS))

    @abstractmethod
    def _body(self, query: str, count: int) -> Mapping[str, Any]:
        """Return the request body as a keyword argument of `post`: `data` or `json`."""

    @abstractmethod
    def _results(self, content: bytes) -> Sequence[_Result]:
        """Parse the results in a response body. Raise `ValidationError` if its format is invalid."""

    async def _request(self, body: Mapping[str, Any], deadline: Deadline) -> Sequence[_Result]:
        with http_errors(SERVICE):
            async with asyncio.timeout_at(deadline.at):
                session = await self._connection.opened()
                async with session.post(self._url, allow_redirects=False, **body) as response:
                    _check(response.status, response.headers)
                    parts = response.content.iter_any()
                    content = await read_bounded(parts, MAX_ANSWER_BYTES, not_understood(SERVICE))
        try:
            return self._results(content)
        except ValidationError:
            raise not_understood(SERVICE) from None


class SearxngWebSearch(HttpWebSearch):
    """Client for SearXNG and compatible engines."""

    def _body(self, query: str, count: int) -> Mapping[str, Any]:
        return {"data": {"q": query, "format": "json"}}

    def _results(self, content: bytes) -> Sequence[_Result]:
        response = _Found.model_validate_json(content)
        if not response.results and response.unresponsive_engines:
            raise DependencyError(
                f"No search engine behind {SERVICE.name} responded.", "Try again in a moment."
            )
        return response.results


class BraveWebSearch(HttpWebSearch):
    """Client for the Brave Search API."""

    def _body(self, query: str, count: int) -> Mapping[str, Any]:
        return {"json": {"q": query, "count": count, "text_decorations": False}}

    def _results(self, content: bytes) -> Sequence[_Result]:
        return _BraveFound.model_validate_json(content).web.results


def _hits(results: Sequence[_Result], count: int) -> list[WebHit]:
    hits: dict[str, WebHit] = {}
    for result in results:
        if len(hits) >= count:
            break
        url = result.url or ""
        if plain_addresses([url]) and url not in hits:  # skips invalid and repeated URLs
            title = _plain(result.title, MAX_TITLE_CHARS)
            text, date = _plain(result.content, MAX_TEXT_CHARS), _plain(result.published_at, MAX_DATE_CHARS)
            hits[url] = WebHit(url=url, title=title, text=text, published_at=date or None)
    return list(hits.values())


def _plain(text: str | None, most_chars: int) -> str:
    """Convert HTML to a single line of plain text. Entities are decoded, and control characters, which could
    hide words, are removed.
    """
    visible = "".join(
        " " if char in "\t\r\n" else char
        for char in html.unescape((text or "")[: 4 * most_chars])
        if char in "\t\r\n" or unicodedata.category(char)[0] != "C"
    )
    return collapse_spaces(visible)[:most_chars]


def _check(status: int, headers: Mapping[str, str]) -> None:
    if status == 200:
        return
    if 300 <= status < 500 and status not in (401, 403, 429):
        raise ConfigurationError(
            f"WEB_SEARCH_URL is not a search engine (HTTP {status}).",
            "Set it to the URL of a search engine's JSON API, such as https://NAME/search.",
        )
    raise error_of_status(SERVICE, status, headers)
