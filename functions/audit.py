"""GET /api/audit: who read, changed, published or deleted what. For administrators."""

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request, Response

from functions.http import models as http
from functions.http.application import ObservedRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import administrator_of, note_act, ready_services
from functions.http.responses import json_response, read_query
from shared.access.models import AuditPage
from shared.platform.errors import CallerError
from shared.platform.telemetry import pseudonym

router = APIRouter(tags=["Operators"], route_class=ObservedRoute)


@router.get(
    "/api/audit",
    **contract(
        "Who read, changed, published or deleted what",
        json_reply(200, "Entries, newest first.", AuditPage),
        query=http.AuditQuery,
    ),
)
async def get_audit_trail(req: Request) -> Response:
    """The audit trail of a time, newest first, narrowed to a person, a document or an action."""
    from functions.http.models import AuditQuery
    from shared.access.audit_trail import AuditFilter

    administrator = await administrator_of(req)
    asked = read_query(req, AuditQuery)
    until = asked.until or datetime.now(UTC) + timedelta(seconds=1)
    since = asked.since or until - timedelta(days=1)
    if since >= until:
        raise CallerError("`since` is not before `until`.", "Give an earlier `since`.")
    wanted = AuditFilter(since, until, asked.user_id, asked.doc_id, asked.action)
    services = await ready_services()
    page = await services.audit.page(wanted, asked.limit, asked.cursor)
    await note_act(
        req,
        administrator,
        services,
        "read_audit",
        *filter(None, [asked.doc_id]),
        subject=pseudonym(asked.user_id) if asked.user_id else "",
        may_repeat=True,
    )
    return json_response(page)
