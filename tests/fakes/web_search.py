"""A web search engine for tests that implements SearXNG's JSON API over real HTTP."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

Page = dict[str, Any]


class SearchEngine:
    """A SearXNG instance, reduced to its JSON API, on a free port. It is an async context manager.

    Source: SearXNG, "Search API" and "settings.yml, search.formats".
    """

    def __init__(
        self, pages: Sequence[Page] = (), *, formats: Sequence[str] = ("html", "json"), key: str | None = None
    ) -> None:
        """Create an engine. If `key` is set, requests must carry it in the header X-Api-Key, as for a
        gateway.
        """
        self.pages = list(pages)
        self.formats = formats
        self.key = key
        self.queries: list[str] = []
        self.request_lines: list[str] = []
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> "SearchEngine":
        app = web.Application()
        app.router.add_route("*", "/search", self._search)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/search"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _search(self, request: web.Request) -> web.Response:
        self.request_lines.append(f"{request.method} {request.path_qs}")
        if self.key is not None and request.headers.get("X-Api-Key") != self.key:
            return web.Response(status=401)
        parameters = {**request.query, **(await request.post())}
        kind = str(parameters.get("format", "html"))
        if kind not in self.formats:
            return web.Response(status=403)
        query = str(parameters.get("q", "")).strip()
        if not query:
            return web.json_response({"error": "No query"}, status=400)
        self.queries.append(query)
        if kind != "json":
            return web.Response(text="<html></html>", content_type="text/html")
        return web.json_response(self._answer(query))

    def _answer(self, query: str) -> dict[str, Any]:
        words = set(query.casefold().split())
        results = [
            {"engine": "stand-in", "engines": ["stand-in"], "score": 1.0, "category": "general", **page}
            for page in self.pages
            if words & set(f"{page.get('title')} {page.get('content')}".casefold().split())
        ]
        return {
            "query": query,
            "number_of_results": len(results),
            "results": results,
            "answers": [],
            "corrections": [],
            "infoboxes": [],
            "suggestions": [],
            "unresponsive_engines": [],
        }
