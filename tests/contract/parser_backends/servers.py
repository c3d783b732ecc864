"""Stand-ins for the two services on loopback. They implement the protocols, check the key, and can fail."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

KEY = "a-key-of-the-tests"


@dataclass(frozen=True)
class Fault:
    """A faulty response to one request: a status, or a delay."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    body: str = '{"error": {"code": "Fault", "message": "on request"}}'


@dataclass
class Served:
    """A request that the server received."""

    path: str
    query: dict[str, str]
    body: bytes = b""
    fields: dict[str, list[str]] = field(default_factory=dict)


class StandIn:
    """The base class of both stand-ins. It is an async context manager; each entry of `faults` applies to one
    request.
    """

    def __init__(self) -> None:
        self.faults: list[Fault | None] = []
        self.served: list[Served] = []
        self._polls: dict[str, int] = {}
        self._runner: web.AppRunner | None = None
        self.endpoint = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20, middlewares=[self._guard])
        self.add_routes(app.router)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        address = self._runner.addresses[0]
        self.endpoint = f"http://{address[0]}:{address[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def add_routes(self, router: web.UrlDispatcher) -> None:
        raise NotImplementedError

    key_header = ""

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get(self.key_header) != KEY:
            return web.json_response({"error": {"code": "401", "message": "wrong key"}}, status=401)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            self.served.append(Served(request.path, dict(request.query)))
            await asyncio.sleep(fault.delay_s)
            if fault.status != 200 or fault.delay_s == 0:
                return web.Response(
                    status=fault.status,
                    text=fault.body,
                    headers=fault.headers,
                    content_type="application/json",
                )
        answer: web.StreamResponse = await handler(request)
        return answer

    def polled(self, result_id: str) -> int:
        """Count a request for this result, and return how often it was requested."""
        self._polls[result_id] = self._polls.get(result_id, 0) + 1
        return self._polls[result_id]


class DocumentIntelligenceStandIn(StandIn):
    """A stand-in for Document Intelligence: POST …:analyze, then GET …/analyzeResults/{id}, which first
    reports `running` and then returns the result.
    """

    key_header = "Ocp-Apim-Subscription-Key"

    def __init__(self, **results: dict[str, Any]) -> None:
        """Create a server that returns the result given for each model (`layout` and `read`)."""
        super().__init__()
        self.results = {f"prebuilt-{name}": result for name, result in results.items()}
        self.failure: dict[str, Any] | None = None
        self.operation_location: str | None = None

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/documentintelligence/documentModels/{model}:analyze", self.analyze)
        router.add_get("/documentintelligence/documentModels/{model}/analyzeResults/{id}", self.result)

    async def analyze(self, request: web.Request) -> web.Response:
        body = await request.read()
        model = request.match_info["model"]
        if request.query.get("api-version") != "2024-11-30" or model not in self.results:
            return web.json_response({"error": {"code": "NotFound"}}, status=404)
        if request.content_type != "application/octet-stream":
            return web.json_response({"error": {"code": "InvalidRequest"}}, status=400)
        self.served.append(Served(request.path, dict(request.query), body))
        address = (
            f"{self.endpoint}/documentintelligence/documentModels/{model}/analyzeResults/r-{len(self.served)}"
        )
        location = self.operation_location or f"{address}?api-version=2024-11-30"
        return web.Response(status=202, headers={"Operation-Location": location, "Retry-After": "0"})

    async def result(self, request: web.Request) -> web.Response:
        self.served.append(Served(request.path, dict(request.query)))
        if self.polled(request.match_info["id"]) == 1:
            return web.json_response({"status": "running"}, headers={"Retry-After": "0"})
        if self.failure is not None:
            return web.json_response({"status": "failed", "error": self.failure})
        result = self.results[request.match_info["model"]]
        return web.json_response({"status": "succeeded", "analyzeResult": result})


class DoclingStandIn(StandIn):
    """A stand-in for the asynchronous API of Docling: a task, its status, and its result."""

    key_header = "X-Api-Key"

    def __init__(self, document: Any) -> None:
        super().__init__()
        self.document = document
        self.final_status = "success"

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/convert/file/async", self.convert)
        router.add_get("/v1/status/poll/{id}", self.status)
        router.add_get("/v1/result/{id}", self.result)

    async def convert(self, request: web.Request) -> web.Response:
        served = Served(request.path, dict(request.query))
        form = await request.post()
        for name in form:
            for value in form.getall(name):
                if isinstance(value, web.FileField):
                    served.body = value.file.read()
                    served.fields.setdefault(name, []).append(value.filename)
                else:
                    served.fields.setdefault(name, []).append(str(value))
        self.served.append(served)
        return self._task(f"t-{len(self.served)}", "pending")

    async def status(self, request: web.Request) -> web.Response:
        self.served.append(Served(request.path, dict(request.query)))
        task_id = request.match_info["id"]
        return self._task(task_id, "started" if self.polled(task_id) == 1 else self.final_status)

    async def result(self, request: web.Request) -> web.Response:
        self.served.append(Served(request.path, dict(request.query)))
        document = {"filename": "document.pdf", "json_content": self.document, "md_content": None}
        return web.json_response(
            {"document": document, "status": "success", "errors": [], "processing_time": 0.1, "timings": {}}
        )

    def _task(self, task_id: str, status: str) -> web.Response:
        return web.json_response(
            {"task_id": task_id, "task_type": "convert", "task_status": status, "task_position": 0}
        )
