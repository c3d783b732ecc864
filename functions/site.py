"""Routes of the web page: the page at `/` and `/web`, its files below `/web/assets/`, and its settings at
`/api/site`.

Callers are not authenticated: responses are the same for all and contain no personal data. web/build.mjs
builds the files and their compressed variants. File names are fixed, because the platform's sign-in lists
every public address; the query parameter `v` is the version of the build, so browsers may cache files
forever.
"""

import asyncio
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.conditions import acceptable_coding
from functions.http.contracts import contract, hidden, json_reply
from functions.http.models import AssetName
from functions.http.responses import cached_response, json_response
from shared.ingestion.registry import FORMATS
from shared.platform.errors import DependencyError, NotFoundError
from shared.platform.models import Model
from shared.platform.settings import Settings, get_settings


class SiteView(Model):
    """Settings that the web page needs before its first other request.

    Attributes:
        max_request_bytes: maximum size of an upload through the app; larger files need `POST
            /documents/uploads`.
        suffixes: suffixes of supported files, in lower case with their dot.
        web_import: whether web pages may be imported.
        stand_in: whether answers come from the local stand-in instead of a language model.
        sharing: whether answers may be shared.
    """

    max_question_chars: int = Field(description="Maximum length of a question, in characters.")
    max_document_bytes: int = Field(description="Maximum size of a file, in bytes.")
    max_request_bytes: int
    suffixes: tuple[str, ...]
    web_import: bool = False
    stand_in: bool = False
    sharing: bool = False


router = APIRouter(tags=["Caller"], route_class=ApiRoute)

_FOLDER = Path(__file__).resolve().parent.parent / "web" / "dist"
_FOREVER = "public, max-age=31536000, immutable"
# File suffixes of compressed variants by content coding, in order of preference.
_SUFFIXES = {"br": ".br", "gzip": ".gz"}
ASSETS = (
    "account.js",
    "admin.js",
    "chunk.js",
    "de.js",
    "documents.js",
    "en.js",
    "icon.svg",
    "page.js",
    "style.css",
)
_STAND_IN = "groundwork-extractive"  # name under which the local model server lists its stand-in model
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'{uploads}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


@router.get("/", **hidden())
async def get_root_page(req: Request) -> Response:
    """Return the web page at the root path."""
    return await _shell(req)


@router.get("/web", **hidden())
async def get_page(req: Request) -> Response:
    """Return the web page at a path where the platform requires no sign-in, so that the page can offer it."""
    return await _shell(req)


@router.get("/web/assets/{asset}", **hidden())
async def get_page_asset(req: Request, asset: AssetName) -> Response:
    """Return a script, style sheet or icon of the web page, in the best content coding that the browser
    accepts.
    """
    version = await asyncio.to_thread(_version)
    if version is None or asset not in ASSETS or req.query_params.get("v") != version:
        raise NotFoundError("The web page has no such file.", "Reload the page to get its current version.")
    headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}
    encoding = acceptable_coding(req.headers.get("accept-encoding"), tuple(_SUFFIXES))
    if encoding:
        headers["Content-Encoding"] = encoding
    content = await asyncio.to_thread(_content, version, asset + _SUFFIXES.get(encoding or "", ""))
    media_type = guess_type(asset)[0] or "application/octet-stream"
    return Response(content, media_type=media_type, headers=headers)


@router.get(
    "/api/site",
    **contract(
        "Limits and supported formats",
        json_reply(200, "Limits and file formats.", SiteView),
        is_open=True,
    ),
)
async def get_site() -> Response:
    """Return the limits and file formats that the web page needs before its first other request. They are the
    same for all callers.
    """
    settings = get_settings()
    view = SiteView(
        max_question_chars=settings.answering.max_question_chars,
        max_document_bytes=settings.ingestion.max_document_bytes,
        max_request_bytes=settings.ingestion.max_upload_bytes,
        suffixes=tuple(sorted(FORMATS)),
        web_import=settings.web_pages.web_import,
        sharing=settings.conversations.sharing,
        stand_in=settings.models.chat.partition("@")[0] == _STAND_IN,
    )
    return json_response(view, headers={"Cache-Control": "no-cache"})


async def _shell(req: Request) -> Response:
    try:
        content = await asyncio.to_thread((_FOLDER / "index.html").read_bytes)
    except FileNotFoundError:
        raise DependencyError("The web page has not been built.", "Build it with `make web`.") from None
    headers = {
        "Content-Security-Policy": _POLICY.format(uploads=_upload_source(get_settings())),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
    }
    return cached_response(req, content, "text/html", headers)


def _upload_source(settings: Settings) -> str:
    """Return the origin of the storage account as an entry for the Content-Security-Policy, with a leading
    space, or "" if the account is unknown.

    The page uploads large files there.
    """
    address = settings.storage.blob_uri or _blob_endpoint(settings.storage.connection_string or "")
    parts = urlsplit(address)
    return f" {parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _blob_endpoint(connection_string: str) -> str:
    fields = dict(field.split("=", 1) for field in connection_string.split(";") if "=" in field)
    account, suffix = fields.get("AccountName", ""), fields.get("EndpointSuffix", "core.windows.net")
    return fields.get("BlobEndpoint") or f"https://{account}.blob.{suffix}"


def _version() -> str | None:
    """Return the version of the built web page, or None if it has not been built."""
    path = _FOLDER / "version.txt"
    return path.read_text(encoding="ascii") if path.is_file() else None


@cache
def _content(version: str, name: str) -> bytes:
    """Return the contents of a built file. The version is part of the cache key, so that a new build replaces
    cached files.
    """
    del version
    return (_FOLDER / "assets" / name).read_bytes()
