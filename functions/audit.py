"""The route GET /api/audit, with which administrators query who read, changed, published or deleted which
document.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import AwareDatetime, Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import Page
from functions.http.requests import Administrator, Ready, note_act
from functions.http.responses import json_response
from shared.access.audit_trail import AuditFilter
from shared.access.models import AUDIT_CURSOR, AuditAction, AuditPage
from shared.platform.concurrency import run_together
from shared.platform.errors import CallerError
from shared.platform.models import Model
from shared.platform.telemetry import pseudonym
from shared.wiring import Services

# An audit entry may list up to 100 documents, but file names are looked up only for the first few.
_NAMED = 3
# Number of document states that are read concurrently to look up file names.
_AT_ONCE = 32


class AuditQuery(Model):
    """Query parameters that filter the audit trail."""

    since: AwareDatetime | None = Field(
        default=None, description="Start of the period. Defaults to one day before `until`."
    )
    until: AwareDatetime | None = Field(
        default=None, description="End of the period. Defaults to the current time."
    )
    user_id: str = Field(
        default="", max_length=256, description="Return only entries of the user with this id."
    )
    doc_id: str = Field(
        default="", max_length=128, description="Return only entries about the document with this id."
    )
    action: AuditAction | None = Field(default=None, description="Return only entries with this action.")
    limit: Page = Field(default=50, description="Maximum number of entries per page.")
    cursor: str = Field(
        default="", pattern=AUDIT_CURSOR, description="The value of `cursor` in the previous page, unchanged."
    )


router = APIRouter(tags=["Operators"], route_class=ApiRoute)


@router.get(
    "/api/audit",
    **contract(
        "The audit trail: who read, changed, published or deleted what",
        json_reply(200, "Entries, newest first.", AuditPage),
    ),
)
async def get_audit_trail(
    req: Request, query: Annotated[AuditQuery, Query()], administrator: Administrator, services: Ready
) -> Response:
    """List the audit entries of a period, newest first, optionally filtered by user, document or action.
    Reading the audit trail is itself recorded in it.
    """
    until = query.until or datetime.now(UTC) + timedelta(seconds=1)
    since = query.since or until - timedelta(days=1)
    if since >= until:
        raise CallerError("`since` must be before `until`.", "Send an earlier `since`.")
    criteria = AuditFilter(since, until, query.user_id, query.doc_id, query.action)
    page = await services.audit.page(criteria, query.limit, query.cursor)
    await note_act(
        req,
        administrator,
        services,
        "read_audit",
        *filter(None, [query.doc_id]),
        subject=pseudonym(query.user_id) if query.user_id else "",
        may_repeat=True,
    )
    return json_response(page.model_copy(update={"names": await _names(page, services)}))


async def _names(page: AuditPage, services: Services) -> dict[str, str]:
    """Return the file names of the first three documents of each entry, keyed by document id. Deleted
    documents and files attached to a conversation are left out.
    """
    doc_ids = dict.fromkeys(doc_id for entry in page.entries for doc_id in entry.doc_ids[:_NAMED])
    states = await run_together(*map(services.documents.get, doc_ids), at_once=_AT_ONCE)
    visible_states = [one for one in states if one is not None and not one.is_deleted and not one.thread_id]
    return {state.doc_id: state.filename for state in visible_states}
