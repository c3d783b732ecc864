"""Routes for administrators: repair what events missed, audit the stores, list events that failed."""

import time

from fastapi import APIRouter, Request, Response

from functions.http.application import ObservedRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import Durable, administrator_of, ready_services
from functions.http.responses import json_response
from functions.reconciliation import reconcile
from shared.ingestion.models import AuditReport, ReconcileReport
from shared.platform.queues import PoisonList

router = APIRouter(tags=["Operators"], route_class=ObservedRoute)


@router.post(
    "/api/maintenance/reconcile",
    **contract(
        "Repair what events missed, now",
        json_reply(200, "What was done.", ReconcileReport),
    ),
)
async def reconcile_now(req: Request, client: Durable) -> Response:
    """The same at once, for administrators."""
    await administrator_of(req)
    return json_response(await reconcile(client, int(time.time())))


# Not below `admin/`: the Functions host keeps routes that begin so for itself, and refuses to load them.
@router.get(
    "/api/maintenance/audit",
    **contract(
        "Whether files, states and indexes agree",
        json_reply(200, "What was found.", AuditReport),
    ),
)
async def get_audit(req: Request) -> Response:
    """Whether files, states, rows, blocks and figures agree, for administrators; names what does not."""
    from shared.ingestion.audit import audit  # imported when used: much of ingestion comes with it

    await administrator_of(req)
    return json_response(await audit(await ready_services(), int(time.time())))


@router.get(
    "/api/maintenance/poison",
    **contract(
        "Events that failed every attempt",
        json_reply(200, "The oldest of each queue.", PoisonList),
    ),
)
async def get_poison(req: Request) -> Response:
    """Events that were given up, for administrators: which file each is about, and no more."""
    await administrator_of(req)
    messages = tuple(await (await ready_services()).poison.peek())
    return json_response(PoisonList(messages=messages, count=len(messages)))
