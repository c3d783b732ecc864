"""A read-only client for GitHub's REST API, limited to the repositories in GITHUB_REPOSITORIES.

Requests go only to the host of GITHUB_API_URL. Redirects are not followed, so the token and queries reach no
other host. Responses are untrusted: this client limits their size, and the tool limits what a model sees of
them.

Source: docs.github.com, REST API version 2022-11-28.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import AfterValidator, Field
from yarl import URL

from shared.platform.calls import Deadline, Dependency, call_span, call_within, error_of_status
from shared.platform.errors import DocumentNotFoundError, InvalidQueryError, RateLimitError
from shared.platform.http_client import connect_http, http_errors, not_understood, read_bounded
from shared.platform.language_models.models import CallLimits
from shared.platform.settings_groups.base import SettingsGroup, prefixed
from shared.platform.settings_groups.values import HeaderValue, SafeUrl, listed

_CONNECT_TIMEOUT_S = 5
_CHECK_TIMEOUT_S = 3
# Enough for a file of 1 MB, the API's maximum, as base64 in JSON.
MAX_ANSWER_BYTES = 4_000_000
MAX_PATH_CHARS = 500
# without this media type, a code search returns only file names
_TEXT_MATCHES = "application/vnd.github.text-match+json"
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")

SERVICE = Dependency(
    "GitHub",
    "GITHUB_API_URL",
    "Check GITHUB_TOKEN: it needs to read contents, issues and pull requests of GITHUB_REPOSITORIES.",
)


def _checked_repositories(text: str) -> str:
    for name in listed(text):
        if not _REPOSITORY.fullmatch(name):
            raise ValueError(f"{name!r} is not of the form owner/name")
    return text


class GithubSettings(SettingsGroup, alias_generator=prefixed("GITHUB_")):
    """Settings of the tool `github`."""

    repository_list: Annotated[str, AfterValidator(_checked_repositories)] = Field(
        alias="GITHUB_REPOSITORIES",
        default="",
        description="Comma-separated repositories that the tool github may read for all users.",
        examples=["contoso/handbook,contoso/app"],
    )
    token: HeaderValue | None = Field(
        default=None,
        description="Token with read access to GITHUB_REPOSITORIES; unset = public repositories only.",
        repr=False,
    )
    api_url: SafeUrl = Field(
        default="https://api.github.com",
        description="Base URL of the GitHub API.",
        examples=["https://HOST/api/v3"],
    )

    @property
    def repositories(self) -> tuple[str, ...]:
        """GITHUB_REPOSITORIES, split into names of the form owner/name."""
        return listed(self.repository_list)


class GithubApi:
    """Read-only client for the repositories in GITHUB_REPOSITORIES."""

    def __init__(self, settings: GithubSettings) -> None:
        headers = {"X-GitHub-Api-Version": "2022-11-28", "User-Agent": "groundwork", "Accept": _TEXT_MATCHES}
        if settings.token:
            headers["Authorization"] = f"Bearer {settings.token}"
        self._connection = connect_http(_CONNECT_TIMEOUT_S, headers)  # created on first use
        self._url = settings.api_url.rstrip("/")
        self._repositories = {name.casefold(): name for name in settings.repositories}

    async def check(self) -> None:
        """Raise an error unless the first configured repository can be read."""
        name = next(iter(self._repositories.values()))
        await self.get(("repos", *name.split("/")), {}, CallLimits(timeout_s=_CHECK_TIMEOUT_S, max_retries=0))

    async def close(self) -> None:
        await self._connection.close()

    def repository(self, name: str) -> str:
        """Return the name of a repository as spelled in GITHUB_REPOSITORIES. Case and surrounding spaces in
        `name` are ignored.

        Raises:
            InvalidQueryError: the repository isn't listed; the hint names the listed ones.
        """
        spelling = self._repositories.get(name.strip().casefold())
        if spelling is None:
            raise InvalidQueryError(
                f"The repository {name[:100]!r} is not open to this tool.",
                f"Repositories: {', '.join(self._repositories.values())}.",
            )
        return spelling

    async def get(self, path: Sequence[str], query: Mapping[str, str], limits: CallLimits) -> Any:
        """Send a GET request and return the parsed JSON of the response.

        Args:
            path: path segments, escaped here.

        Raises:
            DocumentNotFoundError: the resource doesn't exist.
            InvalidQueryError: a segment would change the path, or the API rejected the query.
            DependencyError: the API is unreachable or its response is unusable.
        """
        url = "/".join((self._url, *map(_part, path)))
        deadline = Deadline(limits.timeout_s)
        with call_span(SERVICE, "query"):
            content = await call_within(
                deadline, limits.max_retries, lambda: self._read(url, query, deadline)
            )
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise not_understood(SERVICE) from None

    async def _read(self, url: str, query: Mapping[str, str], deadline: Deadline) -> bytes:
        with http_errors(SERVICE):
            async with asyncio.timeout_at(deadline.at):
                session = await self._connection.opened()

                address = URL(url, encoded=True)
                async with session.get(address, params=query, allow_redirects=False) as response:
                    _check(response.status, response.headers)
                    parts = response.content.iter_any()
                    return await read_bounded(parts, MAX_ANSWER_BYTES, not_understood(SERVICE))


def _part(part: str) -> str:
    if part in ("", ".", "..") or _UNPRINTABLE.search(part) or len(part) > MAX_PATH_CHARS:
        raise InvalidQueryError(
            "This is not a valid file path.", "Give the path from the root, such as docs/guide.md."
        )
    return quote(part, safe="")


def _check(status: int, headers: Mapping[str, str]) -> None:
    if status == 200:
        return
    if status in (403, 429) and (headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers):
        raise RateLimitError("GitHub is rate-limiting requests.", "Continue without GitHub.")
    if status in (404, 410) or 300 <= status < 400:  # a redirect would lead to another repository
        raise DocumentNotFoundError("The repository has no such item.", "Search the repository first.")
    if status == 422:
        raise InvalidQueryError("GitHub rejected the query.", "Use a few plain words.")
    raise error_of_status(SERVICE, status, headers)
