"""Tests for running the search server inside the test process, as other suites may."""

from pathlib import Path

import httpx
from starlette.routing import Route

from local.search_server.app import create_app
from local.search_server.errors import RequestError

FIELDS = [{"name": "id", "type": "Edm.String", "key": True}]


async def test_writes_and_searches_are_counted(tmp_path: Path) -> None:
    app = create_app(tmp_path, "secret")
    transport = httpx.ASGITransport(app)
    headers = {"api-key": "secret"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://local", headers=headers) as http,
    ):
        await http.post("/indexes", json={"name": "made", "fields": FIELDS})
        rows = [{"id": "1"}, {"id": "2"}, {"@search.action": "delete", "id": "2"}]
        await http.post("/indexes('made')/docs/search.index", json={"value": rows})
        await http.post("/indexes('made')/docs/search.index", json={"value": [{"wrong": "1"}]})
        await http.post("/indexes('made')/docs/search.post.search", json={"search": "*"})
        counted = {"writes": {"made": {"upload": 2, "delete": 1}}, "searches": {"made": 1}}
        assert (await http.get("/stats")).json() == counted
        assert (await http.post("/stats/reset")).json() == {"writes": {}, "searches": {}}


async def test_our_own_fault_is_a_500_that_tells_nothing(tmp_path: Path) -> None:
    async def fail(request: object) -> None:
        raise ZeroDivisionError("inner secret")

    async def refuse(request: object) -> None:
        raise RequestError("say why", status=418, code="Teapot")

    app = create_app(tmp_path, "secret")
    app.router.routes += [Route("/fail", fail), Route("/refuse", refuse)]
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=transport, base_url="http://local", headers={"api-key": "secret"}
        ) as http,
    ):
        failed = await http.get("/fail")
        assert failed.status_code == 500
        assert "inner secret" not in failed.text
        refused = await http.get("/refuse")
        assert (refused.status_code, refused.json()["error"]["code"]) == (418, "Teapot")
