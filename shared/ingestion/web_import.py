"""Import of web pages as documents of a user."""

import re
from collections.abc import AsyncIterator
from pathlib import PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from shared.documents.requests import ImportRequest, UploadRequest
from shared.platform.errors import (
    DependencyError,
    InvalidQueryError,
    PageImportError,
    PayloadTooLargeError,
)
from shared.platform.hashing import digest
from shared.platform.web_addresses import host_of, page_address
from shared.platform.web_pages import AGENT_NAME, SUFFIXES, FetchedPage, WebPages

_FOLDER = "web"
_MAX_NAME_CHARS = 120


async def fetch_for_import(request: ImportRequest, pages: WebPages) -> FetchedPage:
    """Fetch the web page to import. Pages that the site's robots.txt forbids are not fetched.

    Raises:
        PageImportError: the page can't be read, its server fails, or the site forbids robots.
        PayloadTooLargeError: the page exceeds the size limit.
    """
    try:
        await _require_allowed(page_address(request.url), pages)
        page = await pages.fetch(request.url)
        if host_of(page.final_url) != host_of(page_address(request.url)):
            await _require_allowed(page.final_url, pages)
    except (InvalidQueryError, DependencyError) as failed:
        # Report these errors as errors of the web page, because the failing server isn't one of the app's
        # services.
        raise PageImportError(failed.detail, *failed.hints) from None
    if page.is_cut:
        raise PayloadTooLargeError(
            "The page is too large to be imported.", "Save the page as a file, and upload it."
        )
    return page


def upload_of(request: ImportRequest, page: FetchedPage) -> UploadRequest:
    """Return an upload request for a fetched page. Importing the same URL again creates a new version of the
    same document.
    """
    return UploadRequest(
        filename=_filename(page.final_url, page.suffix),
        # The digest of the URL distinguishes pages whose file names are equal.
        folder=f"{_FOLDER}/{digest(page.final_url)[:16]}",
        project_id=request.project_id,
        acl=request.acl,
        source_url=page.final_url,
    )


async def content_of(page: FetchedPage) -> AsyncIterator[bytes]:
    """Yield the page's bytes. HTML is prefixed with the encoding from the response headers."""
    if page.suffix == ".html" and page.charset and re.fullmatch(r"[\w.:-]{1,40}", page.charset):
        yield f'<meta charset="{page.charset}">\n'.encode()
    yield page.content


async def _require_allowed(url: str, pages: WebPages) -> None:
    """Raise `InvalidQueryError` if the site's robots.txt forbids the page. A missing robots.txt forbids
    nothing. Source: RFC 9309.
    """
    try:
        robots = await pages.fetch(urljoin(url, "/robots.txt"), read_as="text/plain")
    except InvalidQueryError:
        return
    parser = RobotFileParser()
    try:
        parser.parse(robots.content.decode(errors="replace").splitlines())
        is_allowed = parser.can_fetch(AGENT_NAME, url)
    except ValueError:
        # The file has an invalid line, and another line may forbid the page, so treat the page as forbidden.
        is_allowed = False
    if not is_allowed:
        # Don't respond with 403: the user is authorised, and the message about the site must be shown.
        raise InvalidQueryError(
            "The site's robots.txt asks programs not to read this page.",
            "Save the page, and upload the file.",
        )


def _filename(url: str, suffix: str) -> str:
    """Return a file name for a URL, such as `example.org docs pumps.html` or `example.org search
    q=pumps.html`.
    """
    parts = urlsplit(url)
    path = unquote(parts.path).strip("/")
    if PurePosixPath(path).suffix.lower() in {*SUFFIXES.values(), ".htm"}:
        path = str(PurePosixPath(path).with_suffix(""))
    name = re.sub(r"[/\\]+", " ", f"{host_of(url)} {path} {unquote(parts.query)}")
    return f"{name[:_MAX_NAME_CHARS].strip()}{suffix}"
