"""GET /api/audit: who read, changed, published or deleted what. For administrators."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import AuditQuery
from functions.http.requests import Administrator, Ready, note_act
from functions.http.responses import json_response
from shared.access.audit_trail import AuditFilter
from shared.access.models import AuditPage
from shared.platform.errors import CallerError
from shared.platform.telemetry import pseudonym

router = APIRouter(tags=["Operators"], route_class=ApiRoute)


@router.get(
    "/api/audit",
    **contract(
        "Who read, changed, published or deleted what",
        json_reply(200, "Entries, newest first.", AuditPage),
    ),
)
async def get_audit_trail(
    req: Request, asked: Annotated[AuditQuery, Query()], administrator: Administrator, services: Ready
) -> Response:
    """The audit trail of a time, newest first, narrowed to a person, a document or an action."""
    until = asked.until or datetime.now(UTC) + timedelta(seconds=1)
    since = asked.since or until - timedelta(days=1)
    if since >= until:
        raise CallerError("`since` is not before `until`.", "Give an earlier `since`.")
    wanted = AuditFilter(since, until, asked.user_id, asked.doc_id, asked.action)
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
