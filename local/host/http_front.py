"""Serves HTTP functions through the streaming extension's own web app, as the worker does.

Requests, responses, and what becomes of a returned str, dict or model are therefore the extension's; this
module finds the function, hands it the Request with its route parameters, and keeps internals out of error
responses.
"""

import importlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import azurefunctions.extensions.base as extension_base
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from local.host.catalogue import HostedFunction
from local.host.errors import AppError
from local.host.invocation import Invoker
from local.host.route_template import RouteTemplate, compile_route

MATCH_KEY = "local.host.match"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HttpRoute:
    """One HTTP function's address. No methods means: every method."""

    function: HostedFunction
    template: RouteTemplate
    methods: frozenset[str]


def http_routes(functions: Sequence[HostedFunction]) -> list[HttpRoute]:
    """The routes of all HTTP functions, the most specific first.

    Raises:
        AppError: a route cannot be compiled, or two functions share a route and a method.
    """
    routes = []
    for function in functions:
        if function.kind == "httpTrigger":
            template = compile_route(function.trigger.get("route") or function.name)
            methods = frozenset(str(method).upper() for method in function.trigger.get("methods") or ())
            routes.append(HttpRoute(function, template, methods))
    _refuse_duplicates(routes)
    return sorted(routes, key=lambda route: route.template.rank)


def _refuse_duplicates(routes: list[HttpRoute]) -> None:
    taken: dict[tuple[str, str], str] = {}
    for route in routes:
        for method in route.methods or {"*"}:
            other = taken.setdefault((route.template.text.lower(), method), route.function.name)
            if other != route.function.name:
                raise AppError(
                    f"functions {other} and {route.function.name} share {method} {route.template.text}"
                )


class HttpFront:
    """The ASGI app below the route prefix."""

    def __init__(self, routes: Sequence[HttpRoute], prefix: str, invoker: Invoker) -> None:
        self._routes = routes
        self._prefix = f"/{prefix}/" if prefix else "/"
        self._invoker = invoker
        self._web_app = self._build_web_app() if routes else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._find(scope)
        if found is None or self._web_app is None:
            # The real host answers 404 for a wrong method, too.
            await PlainTextResponse("", status_code=404)(scope, receive, send)
            return
        await self._web_app({**scope, MATCH_KEY: found}, receive, send)

    def _find(self, scope: Scope) -> tuple[HostedFunction, dict[str, str]] | None:
        path: str = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]
        if not path.lower().startswith(self._prefix.lower()):
            return None
        for route in self._routes:
            if route.methods and scope["method"] not in route.methods:
                continue
            parameters = route.template.match(path[len(self._prefix) :].rstrip("/"))
            if parameters is not None:
                return route.function, parameters
        return None

    def _build_web_app(self) -> ASGIApp:
        extension = importlib.import_module(extension_base.ModuleTrackerMeta.get_module())
        request_type = extension_base.RequestTrackerMeta.get_request_type()
        synchronizer = extension_base.RequestTrackerMeta.get_synchronizer()
        invoker = self._invoker

        async def catch_all(request):  # type: ignore[no-untyped-def]
            function, parameters = request.scope[MATCH_KEY]
            synchronizer.sync_route_params(request, parameters)
            return await _answer(invoker, function, request, parameters)

        # FastAPI reads the annotation to know that it must pass the request itself.
        catch_all.__annotations__["request"] = request_type
        web_app = extension.WebApp()
        web_app.route(catch_all)
        built: ASGIApp = web_app.get_app()
        return built


async def _answer(
    invoker: Invoker, function: HostedFunction, request: object, parameters: dict[str, str]
) -> Any:
    try:
        response = await invoker.call(function, request, parameters)
    except HTTPException:
        raise  # the extension's FastAPI turns it into its status
    except Exception:  # the function is foreign code: whatever it raises is a 500
        log.exception("function %s failed", function.name)
        return PlainTextResponse("", status_code=500)
    if response is None:
        log.error("function %s returned None; the worker answers 500 to that", function.name)
        return PlainTextResponse("", status_code=500)
    return response
