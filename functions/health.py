"""Routes for health checks: liveness, which uses no other service, and readiness, which probes search,
storage and tables.

The model isn't probed: a probe every few seconds would cost money, and runs report a failing model.
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import caller_of
from functions.http.responses import json_response
from shared import wiring
from shared.platform.errors import GroundworkError
from shared.platform.models import Model
from shared.platform.names import DOCUMENTS
from shared.platform.search import SearchRequest


class HealthView(Model):
    """Reply of the liveness check."""

    status: Literal["ok"] = Field(default="ok", description="Status of the process, always `ok`.")


class ReadinessView(Model):
    """Availability of the services that the app depends on."""

    status: Literal["ok", "unavailable"] = Field(
        description="`unavailable` if search, storage or tables don't respond, otherwise `ok`."
    )
    failed: dict[str, str] = Field(
        description=(
            "Error code of each unavailable service (search, storage, tables or a tool). Empty for anonymous "
            "callers."
        )
    )


router = APIRouter(tags=["Health"], route_class=ApiRoute)

_READY_TIMEOUT_S = 5.0
# Lifetime of a cached probe result; without the cache, anonymous callers could overload the stores.
_KEPT_S = 3.0


@router.get(
    "/api/health",
    **contract(
        "Liveness of the process",
        json_reply(200, "The process responds.", HealthView),
        is_open=True,
    ),
)
async def get_health() -> Response:
    """Return 200 as long as the process responds."""
    return json_response(HealthView())


@dataclass
class _Check:
    """The latest probe of the stores, shared by all anonymous callers for `_KEPT_S` seconds."""

    at: float = float("-inf")
    failed: asyncio.Task[dict[str, str]] | None = None


_LAST = _Check()


@router.get(
    "/api/health/ready",
    **contract(
        "Availability of search and storage",
        json_reply(200, "All services respond.", ReadinessView),
        json_reply(503, "At least one service doesn't respond.", ReadinessView),
        is_open=True,
    ),
)
async def get_readiness(req: Request) -> Response:
    """Return 200 if search, storage and tables respond, otherwise 503. Details are included only for
    signed-in callers.
    """
    is_known = await _is_known(req)
    failed = await (_probe_stores() if is_known else _recent_failures())
    # A failing tool is listed in the details but doesn't change the status, because the app works without it.
    tools = await _probe_tools() if is_known else {}
    details = failed | tools if is_known else {}
    view = ReadinessView(status="unavailable" if failed else "ok", failed=details)
    return json_response(view, 503 if failed else 200)


async def _is_known(request: Request) -> bool:
    try:
        await caller_of(request)
    except GroundworkError:
        return False
    return True


async def _recent_failures() -> dict[str, str]:
    """Return an error code for each failing store, keyed by store. The probe is at most `_KEPT_S` seconds
    old.
    """
    now, loop = time.monotonic(), asyncio.get_running_loop()
    if _LAST.failed is None or now - _LAST.at >= _KEPT_S or _LAST.failed.get_loop() is not loop:
        _LAST.at, _LAST.failed = now, loop.create_task(_probe_stores())
    return await asyncio.shield(_LAST.failed)


async def _probe_stores() -> dict[str, str]:
    services = wiring.get_services()
    checks = {
        "search": services.documents_index.search(SearchRequest(top=1, select=("doc_id",))),
        "storage": services.blobs.properties(DOCUMENTS, "readiness-probe"),
        "tables": services.runs.get("readiness-probe"),
    }
    return await _failures(checks)


async def _probe_tools() -> dict[str, str]:
    """Return an error code for each enabled tool whose service doesn't respond, keyed by tool name."""
    clients = wiring.get_services().tool_clients
    return await _failures({name: client.check() for name, client in clients.items()})


async def _failures(checks: Mapping[str, Awaitable[object]]) -> dict[str, str]:
    results = await asyncio.gather(
        *(asyncio.wait_for(check, _READY_TIMEOUT_S) for check in checks.values()), return_exceptions=True
    )
    return {
        name: result.code if isinstance(result, GroundworkError) else "TimeoutError"
        for name, result in zip(checks, results, strict=True)
        if isinstance(result, BaseException)
    }
