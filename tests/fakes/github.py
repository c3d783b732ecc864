"""A GitHub server for tests: the part of the REST API that the tool `github` uses, over real HTTP.

Source: docs.github.com, REST API version 2022-11-28.
"""

import base64
from typing import Any

from aiohttp import web

BINARY, LARGE = "logo.png", "large.csv"
FILES = {"docs/guide.md": b"# Guide\n\nThe valve opens at 6.5 bar.\n", BINARY: b"\x89PNG\xff\xfe"}


class GithubServer:
    """A server with the repositories contoso/app and contoso/secret, on a free port. It is an async context
    manager.
    """

    def __init__(self, *, token: str = "") -> None:
        self.token = token
        self.requests: list[str] = []
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> "GithubServer":
        app = web.Application()
        for path, handler in (
            ("/search/{what}", self._search),
            ("/repos/{owner}/{repo}", self._repository),
            ("/repos/{owner}/{repo}/contents", self._contents),
            ("/repos/{owner}/{repo}/contents/{path:.*}", self._contents),
            ("/repos/{owner}/{repo}/issues/{number}", self._issue),
            ("/repos/{owner}/{repo}/issues/{number}/comments", self._comments),
            ("/repos/{owner}/{repo}/commits", self._commits),
        ):
            app.router.add_get(path, handler)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def _enter(self, request: web.Request) -> None:
        self.requests.append(request.path_qs)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            raise web.HTTPUnauthorized

    async def _search(self, request: web.Request) -> web.Response:
        """Search like the real API: additional qualifiers widen the search, so results may come from other
        repositories.
        """
        self._enter(request)
        if request.match_info["what"] == "code":
            items = [_code_results("contoso/app"), _code_results("contoso/secret")]
        else:
            items = [_issue("contoso/app", 7), _issue("contoso/secret", 8)]
        return web.json_response({"total_count": len(items), "incomplete_results": False, "items": items})

    async def _repository(self, request: web.Request) -> web.Response:
        self._enter(request)
        if request.match_info["repo"] != "app":
            raise web.HTTPNotFound
        return web.json_response({"full_name": "contoso/app"})

    async def _contents(self, request: web.Request) -> web.Response:
        self._enter(request)
        path = request.match_info.get("path", "")
        if request.match_info["repo"] != "app":
            raise web.HTTPNotFound
        if path in ("", "docs"):
            names = [name for name in FILES if name.startswith(path)]
            return web.json_response([{"type": "file", "path": name, "size": 1} for name in names])
        if path == LARGE:
            return web.json_response(_file(path, b"", encoding="none", size=2_000_000))
        if path == "moved.md":
            raise web.HTTPMovedPermanently(f"{self.url}/repositories/1/contents/moved.md")
        content = FILES.get(path)
        if content is None:
            raise web.HTTPNotFound
        return web.json_response(_file(path, content))

    async def _issue(self, request: web.Request) -> web.Response:
        self._enter(request)
        number = int(request.match_info["number"])
        if number == 9:  # a transferred issue, for which the real API follows the redirect
            return web.json_response(_issue("contoso/secret", 9))
        if number != 7:
            raise web.HTTPNotFound
        return web.json_response(_issue("contoso/app", 7))

    async def _comments(self, request: web.Request) -> web.Response:
        self._enter(request)
        comment = {"id": 1, "created_at": "2026-01-02T00:00:00Z", "body": "Seen, too.", "user": None}
        return web.json_response([comment])

    async def _commits(self, request: web.Request) -> web.Response:
        self._enter(request)
        author = {"name": "Anna", "date": "2026-01-01T00:00:00Z", "email": "anna@example.org"}
        commit = {"message": "Raise the pressure", "author": author, "tree": {}}
        return web.json_response([{"sha": "a1b2", "html_url": "https://github.com/x", "commit": commit}])


def _file(path: str, content: bytes, *, encoding: str = "base64", size: int | None = None) -> dict[str, Any]:
    return {
        "type": "file",
        "path": path,
        "size": len(content) if size is None else size,
        "html_url": f"https://github.com/contoso/app/blob/main/{path}",
        "encoding": encoding,
        "content": base64.encodebytes(content).decode(),
    }


def _code_results(repository: str) -> dict[str, Any]:
    return {
        "path": "docs/guide.md",
        "html_url": f"https://github.com/{repository}/blob/main/docs/guide.md",
        "repository": {"full_name": repository, "id": 1},
        "text_matches": [{"fragment": "The valve opens at 6.5 bar."}],
    }


def _issue(repository: str, number: int) -> dict[str, Any]:
    return {
        "number": number,
        "title": "The valve leaks",
        "state": "open",
        "html_url": f"https://github.com/{repository}/issues/{number}",
        "repository_url": f"https://api.github.com/repos/{repository}",
        "created_at": "2026-01-01T00:00:00Z",
        "body": "At 7 bar.",
        "user": {"login": "ben"},
        "comments": 1,
    }
