"""Who calls a route, whether they may, and whether they sent the same request before."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import azure.durable_functions as df
from fastapi import Depends, Request

from functions.http.responses import add_headers, record_refusals
from shared import wiring
from shared.access.audit_trail import record_act
from shared.access.daily_use import Resource, Usage
from shared.access.identity import BEARER_HEADER, PRINCIPAL_HEADER, authenticate
from shared.access.limits import admit, limit_headers
from shared.access.models import AuditAction, AuditEntry, UserContext
from shared.access.user_limit_store import OpenStream, Slot
from shared.documents.listing import DocumentList
from shared.documents.rights import is_admin
from shared.platform.errors import AccessDeniedError, DependencyError, NotAuthenticatedError
from shared.platform.telemetry import get_logger, note_fields
from shared.wiring import Services

_CALLER = "groundwork.caller"  # in a request's scope, which is its own alone


class SignInRedirect(Exception):  # noqa: N818  # it leads on, and is no error
    """Nobody is signed in, and a browser asks: the response leads to the address that this names."""


def durable_client(request: Request) -> df.DurableOrchestrationClient:
    """Return the client that the function was called with."""
    return request.state.client


Durable = Annotated[df.DurableOrchestrationClient, Depends(durable_client)]
"""A route's parameter: the client of Durable Functions. The route's function must be one that starts work."""


async def caller_of(request: Request) -> UserContext:
    """Who is asking.

    Raises:
        NotAuthenticatedError: (401) nothing believable says so.
        AccessDeniedError: (403) somebody who is not let in.
        DependencyError: (502-504) their groups are not in the token, and cannot be looked up.
    """
    if (known := request.scope.get(_CALLER)) is not None:
        user: UserContext = known
        return user
    services = wiring.get_services()
    headers = {name: only_header(request, name) for name in (PRINCIPAL_HEADER, BEARER_HEADER)}
    try:
        user = await authenticate(headers, services.settings, services.directory)
    except DependencyError as error:
        get_logger().warning("identity.directory_failed", error_type=error.code)
        raise
    note_fields(user_id=user.user_id)
    request.scope[_CALLER] = user
    record_refusals(request, partial(_note_refusal, request, user))
    return user


async def administrator_of(request: Request) -> UserContext:
    """Who is asking. Errors as `caller_of`; AccessDeniedError (403) without the role."""
    user = await caller_of(request)
    if not is_admin(user):
        raise AccessDeniedError("This is for administrators.", "Ask for the application role `admin`.")
    return user


def only_header(request: Request, name: str) -> str:
    """A header's value; empty without it. NotAuthenticatedError (401) for two that differ.

    Nobody can tell which of them the platform has checked.
    """
    values = set(request.headers.getlist(name))
    if len(values) > 1:
        raise NotAuthenticatedError("The request carries two identities.", "Send one.")
    return str(values.pop()) if values else ""


Caller = Annotated[UserContext, Depends(caller_of)]
"""A route's parameter: who is asking. Errors as `caller_of`."""

Administrator = Annotated[UserContext, Depends(administrator_of)]
"""The same, for routes that only administrators may use."""


async def services_for(caller: Caller) -> Services:
    """Return the prepared services, once the caller is known."""
    return await wiring.ready_services()


Ready = Annotated[Services, Depends(services_for)]
"""A route's parameter: what serves the caller. Every store and index exists."""


async def caller_and_services(request: Request) -> tuple[UserContext, Services]:
    """Return who is asking, as `caller_of`, and what serves them, for routes that handle strangers."""
    return await caller_of(request), await wiring.ready_services()


_MAX_ID_CHARS = 128  # as the ids of documents; what is longer is no id


async def admitted(
    request: Request,
    user: UserContext,
    services: Services,
    *,
    calls: int = 1,
    slot: Slot | None = None,
    needs: Sequence[Resource] = (),
    used: Usage | None = None,
) -> None:
    """Count a call that costs; its answer, whatever it will be, tells what is left.

    Raises:
        TooManyRequestsError, TooManyRunsError, DailyLimitError: as `shared.access.limits.admit`.
    """
    settings, store = services.settings, services.user_limits
    left = await admit(user, settings, store, calls=calls, slot=slot, needs=needs, used=used)
    add_headers(request, limit_headers(left))


def open_stream(user: UserContext, services: Services) -> OpenStream:
    """Take a place for a connection of the caller that stays open. TooManyRequestsError if none is left."""
    return services.user_limits.streams.open(user.user_id, services.settings.limits)


async def note_act(
    request: Request,
    user: UserContext,
    services: Services,
    action: AuditAction,
    *doc_ids: str,
    run_id: str = "",
    subject: str = "",
    may_repeat: bool = False,
) -> None:
    """Add to the audit trail what the caller does. Never raises.

    Args:
        may_repeat: equal acts of the last ten minutes need no entry of their own.
    """
    entry = AuditEntry(
        at=datetime.now(UTC),
        user_id=user.user_id,
        action=action,
        doc_ids=doc_ids,
        run_id=run_id,
        subject=subject,
        origin=client_address(request),
    )
    await record_act(services.audit, entry, may_repeat=may_repeat)


async def note_list(request: Request, user: UserContext, services: Services, page: DocumentList) -> None:
    """Add to the audit trail that the caller was shown a list of documents. Never raises."""
    doc_ids = [document.doc_id for document in page.documents]
    await note_act(request, user, services, "list", *doc_ids, may_repeat=True)


async def _note_refusal(request: Request, user: UserContext, asked: str) -> None:
    """Add to the audit trail that the caller's role or rights did not allow what they asked for."""
    path = {name: str(value)[:_MAX_ID_CHARS] for name, value in request.path_params.items()}
    doc_ids = [path["doc_id"]] if "doc_id" in path else []
    run_id = path.get("run_id") or path.get("summary_id") or ""
    services = wiring.get_services()
    await note_act(
        request, user, services, "refused", *doc_ids, run_id=run_id, subject=asked, may_repeat=True
    )


def client_address(request: Request) -> str:
    """Where a request comes from, as far as it is known: the last that App Service adds, else the peer's."""
    if wiring.get_services().settings.host.in_azure:
        forwarded: str = request.headers.get("x-forwarded-for", "")
        return forwarded.rpartition(",")[2].strip()[:64]
    return str(request.client.host) if request.client else ""
