"""The description of the API, and the page to try it on. Open to everybody: neither holds anybody's data.

The page is Swagger UI, from files that a pinned package brings along; it loads nothing from elsewhere, and no
script stands in it, so that its Content-Security-Policy can forbid all others.
"""

import asyncio
import json
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import azure.functions as func

from functions.http.conditions import is_known
from functions.http.responses import Request, Response, cached_response, route
from shared.platform.errors import NotFoundError

blueprint = func.Blueprint()

_OURS = Path(__file__).parent / "http" / "openapi"
_PACKAGE = "fastapi_swagger"
# The page holds a caller's token, so it talks only to its own origin, and no other page may frame it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".html": "text/html"}
_ASSETS = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png", "start.js", "page.css")


@route(blueprint, "GET", "openapi.json")
async def get_description(req: Request) -> Response:
    """The OpenAPI 3.1 description of every call."""
    return _answer(req, await asyncio.to_thread(_description), "application/json")


@route(blueprint, "GET", "docs")
async def get_docs_page(req: Request) -> Response:
    """The page."""
    return _answer(req, await asyncio.to_thread(_file, "page.html"), "text/html")


@route(blueprint, "GET", "docs/{asset}")
async def get_docs_asset(req: Request) -> Response:
    """A file of the page."""
    name = str(req.path_params["asset"])
    if name not in _ASSETS:
        raise NotFoundError("The page has no such file.", "Open /api/docs.")
    return _answer(req, await asyncio.to_thread(_file, name), _MEDIA_TYPES[Path(name).suffix])


def _answer(req: Request, content: bytes, media_type: str) -> Response:
    etag = sha256(content).hexdigest()[:32]
    if is_known(req.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers={"ETag": f'"{etag}"', "Cache-Control": "no-cache"})
    return cached_response(content, media_type, etag, {"Content-Security-Policy": _POLICY})


@cache
def _description() -> bytes:
    from functions.http.openapi.description import Description
    from functions.http.openapi.operations import OPERATIONS

    return json.dumps(Description(OPERATIONS).document(), separators=(",", ":")).encode()


@cache
def _file(name: str) -> bytes:
    ours = _OURS / name
    return (ours if ours.is_file() else _package_folder() / name).read_bytes()


def _package_folder() -> Path:
    """Where the package's files lie; it is not imported for that."""
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise NotFoundError("The files of the page are not installed.", "Install requirements.txt.")
    return Path(spec.submodule_search_locations[0]) / "resources"
