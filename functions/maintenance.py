"""Maintenance routes for administrators: repair documents after missed events, check consistency, and list
failures.
"""

import time

from fastapi import APIRouter, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import Administrator, Durable, Ready, note_act
from functions.http.responses import json_response
from functions.reconciliation import reconcile
from shared.documents.failed import FailedDocumentList, failed_documents
from shared.ingestion.audit import audit
from shared.ingestion.models import AuditReport, ReconcileReport
from shared.platform.queues import PoisonList

router = APIRouter(tags=["Operators"], route_class=ApiRoute)


@router.post(
    "/api/maintenance/reconcile",
    **contract(
        "Repair documents whose events were missed",
        json_reply(200, "The actions taken.", ReconcileReport),
    ),
)
async def reconcile_now(administrator: Administrator, client: Durable) -> Response:
    """Repair documents whose events were missed, without waiting for the timer. Return the actions taken."""
    return json_response(await reconcile(client, int(time.time())))


# The path doesn't start with `admin/`, because the Functions host reserves that prefix and would refuse to
# load the route.
@router.get(
    "/api/maintenance/audit",
    **contract(
        "Consistency of files, states and indexes",
        json_reply(200, "The inconsistencies.", AuditReport),
    ),
)
async def get_audit(administrator: Administrator, services: Ready) -> Response:
    """Check that files, states, index rows, blocks and figures are consistent, and return the differences."""
    return json_response(await audit(services, int(time.time())))


@router.get(
    "/api/maintenance/failed",
    **contract(
        "Failed documents of all users",
        json_reply(200, "Failed documents, newest first.", FailedDocumentList),
    ),
)
async def get_failed(req: Request, administrator: Administrator, services: Ready) -> Response:
    """List the failed documents of all users, with file names and owners."""
    failed = await failed_documents(services.documents)
    doc_ids = [document.doc_id for document in failed.documents]
    await note_act(req, administrator, services, "list", *doc_ids, may_repeat=True)
    return json_response(failed)


@router.get(
    "/api/maintenance/poison",
    **contract(
        "Events that failed every attempt",
        json_reply(200, "The oldest messages of each queue.", PoisonList),
    ),
)
async def get_poison(administrator: Administrator, services: Ready) -> Response:
    """List the messages in the poison queues, each with the name of its file."""
    messages = tuple(await services.poison.peek())
    return json_response(PoisonList(messages=messages, count=len(messages)))
