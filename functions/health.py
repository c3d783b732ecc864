"""Health: alive without touching anything, ready when every store is in reach.

The model is not asked: a probe every few seconds would cost money, and a run says itself when it is down.
"""

import asyncio

import azure.functions as func

from functions.http.responses import Request, Response, json_response, route
from shared.platform.errors import GroundworkError

blueprint = func.Blueprint()

_READY_TIMEOUT_S = 5.0


@route(blueprint, "GET", "health")
async def get_health(req: Request) -> Response:
    """200 as long as the process answers."""
    # Imported when used: a worker that starts does not wait for it.
    from functions.http.models import HealthView

    return json_response(HealthView())


@route(blueprint, "GET", "health/ready")
async def get_readiness(req: Request) -> Response:
    """200 when search, storage and tables answer, else 503 naming which does not."""
    from functions.http.models import ReadinessView
    from shared.platform.names import DOCUMENTS
    from shared.platform.search import SearchRequest
    from shared.wiring import get_services

    services = get_services()
    checks = {
        "search": services.documents_index.search(SearchRequest(top=1, select=("doc_id",))),
        "storage": services.blobs.properties(DOCUMENTS, "readiness-probe"),
        "tables": services.runs.get("readiness-probe"),
    }
    results = await asyncio.gather(
        *(asyncio.wait_for(check, _READY_TIMEOUT_S) for check in checks.values()), return_exceptions=True
    )
    failed = {
        name: result.code if isinstance(result, GroundworkError) else "TimeoutError"
        for name, result in zip(checks, results, strict=True)
        if isinstance(result, BaseException)
    }
    view = ReadinessView(status="unavailable" if failed else "ok", failed=failed)
    return json_response(view, 503 if failed else 200)
