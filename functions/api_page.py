"""Routes for the OpenAPI description and for Swagger UI. Both are public because neither contains user data.

The page is Swagger UI from a pinned package. It loads nothing from other hosts and contains no inline script,
so its Content-Security-Policy can forbid both.
"""

import asyncio
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import HTML, JSON, PNG, Reply, contract
from functions.http.models import AssetName, CachedHeaders
from functions.http.openapi.description import describe
from functions.http.responses import cached_response
from shared.platform.errors import NotFoundError

router = APIRouter(tags=["Description"], route_class=ApiRoute)

_OURS = Path(__file__).parent / "http" / "openapi"
_PACKAGE = "fastapi_swagger"
# Swagger UI holds the caller's token, so it may connect only to its own origin, and no other page may embed
# it in a frame.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".html": "text/html"}
ASSETS = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png", "start.js", "page.css")


@router.get(
    "/api/openapi.json",
    **contract(
        "This API description",
        Reply(200, "OpenAPI 3.1.", ((JSON, None),), ("ETag",)),
        headers=CachedHeaders,
        is_open=True,
    ),
)
async def get_description(req: Request) -> Response:
    """Return the OpenAPI 3.1 description of the API as JSON."""
    return cached_response(req, await asyncio.to_thread(_description, req.app), "application/json", _HEADERS)


@router.get(
    "/api/docs",
    **contract(
        "A page for trying the API",
        Reply(200, "The page.", ((HTML, None),)),
        is_open=True,
    ),
)
async def get_docs_page(req: Request) -> Response:
    """Return the HTML page of Swagger UI."""
    return cached_response(req, await asyncio.to_thread(_file, "page.html"), "text/html", _HEADERS)


@router.get(
    "/api/docs/{asset}",
    **contract(
        "A file of the page for trying the API",
        Reply(200, "The file.", (("text/css", None), ("text/javascript", None), (PNG, None)), ("ETag",)),
        errors=(NotFoundError,),
        headers=CachedHeaders,
        is_open=True,
    ),
)
async def get_docs_asset(req: Request, asset: AssetName) -> Response:
    """Return a file (script, style sheet or image) that the Swagger UI page loads. Raises `NotFoundError`
    (404) for other names.
    """
    if asset not in ASSETS:
        raise NotFoundError(
            "The page has no file of this name.", "Open /api/docs, which loads all files that it needs."
        )
    content = await asyncio.to_thread(_file, asset)
    return cached_response(req, content, _MEDIA_TYPES[Path(asset).suffix], _HEADERS)


@cache
def _description(app: FastAPI) -> bytes:
    return json.dumps(describe(app), separators=(",", ":")).encode()


@cache
def _file(name: str) -> bytes:
    if (ours := _OURS / name).is_file():
        return ours.read_bytes()
    spec = find_spec(_PACKAGE)  # `find_spec` locates the files of the package without importing it
    if spec is None or not spec.submodule_search_locations:
        raise NotFoundError("The files of the page are not installed.", "Install requirements.txt.")
    return (Path(spec.submodule_search_locations[0]) / "resources" / name).read_bytes()
