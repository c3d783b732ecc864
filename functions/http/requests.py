"""Route dependencies that authenticate callers, enforce their limits, and write the audit trail."""

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
from shared.documents.rights import is_admin
from shared.documents.views import DocumentList
from shared.platform.errors import AccessDeniedError, DependencyError, NotAuthenticatedError
from shared.platform.telemetry import get_logger, note_fields
from shared.wiring import Services

_CALLER = "groundwork.caller"  # key under which the authenticated user is stored in the ASGI scope


class SignInRedirect(Exception):  # noqa: N818  # a redirect, not an error
    """Raised to redirect a browser without a session to the sign-in page. The message is the URL to redirect
    to.
    """


def durable_client(request: Request) -> df.DurableOrchestrationClient:
    """Return the Durable Functions client that the HTTP-triggered function received."""
    return request.state.client


Durable = Annotated[df.DurableOrchestrationClient, Depends(durable_client)]
"""A route's parameter: the client of Durable Functions. The route's function must be one that starts work."""


async def caller_of(request: Request) -> UserContext:
    """Authenticate the caller. The result is cached for the duration of the request.

    Raises:
        NotAuthenticatedError: (401) there is no valid identity.
        AccessDeniedError: (403) the user may not use this app.
        DependencyError: (502-504) the user's groups aren't in the token and cannot be looked up.
    """
    if (cached := request.scope.get(_CALLER)) is not None:
        user: UserContext = cached
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
    """Authenticate the caller and require the administrator role. Raises the errors of `caller_of`, and
    `AccessDeniedError` (403) if the role is missing.
    """
    user = await caller_of(request)
    if not is_admin(user):
        raise AccessDeniedError(
            "This operation requires an administrator.", "Ask for the application role `admin`."
        )
    return user


def only_header(request: Request, name: str) -> str:
    """Return the value of a header, or "" if it is missing. Raises `NotAuthenticatedError` (401) if the
    header occurs with different values.

    With two values, it is unknown which of them the platform has checked.
    """
    values = set(request.headers.getlist(name))
    if len(values) > 1:
        raise NotAuthenticatedError("The request contains two different identities.", "Send only one.")
    return str(values.pop()) if values else ""


Caller = Annotated[UserContext, Depends(caller_of)]
"""A route's parameter: who is asking. Errors as `caller_of`."""

Administrator = Annotated[UserContext, Depends(administrator_of)]
"""The same, for routes that only administrators may use."""


async def services_for(caller: Caller) -> Services:
    """Return the services once all their stores and indexes exist. Callers are authenticated first."""
    return await wiring.ready_services()


Ready = Annotated[Services, Depends(services_for)]
"""A route's parameter: what serves the caller. Every store and index exists."""


async def caller_and_services(request: Request) -> tuple[UserContext, Services]:
    """Authenticate the caller, then return the caller and the services. Used by routes that handle
    authentication errors themselves.
    """
    return await caller_of(request), await wiring.ready_services()


_MAX_ID_CHARS = 128  # maximum length of a document id


async def count_call(
    request: Request,
    user: UserContext,
    services: Services,
    *,
    calls: int = 1,
    slot: Slot | None = None,
    needs: Sequence[Resource] = (),
    used: Usage | None = None,
) -> None:
    """Count a call against the limits of the caller, and report the remaining allowance in response headers.

    Raises:
        TooManyRequestsError, TooManyRunsError, DailyLimitError: as `shared.access.limits.admit`.
    """
    settings, store = services.settings, services.user_limits
    left = await admit(user, settings, store, calls=calls, slot=slot, needs=needs, used=used)
    add_headers(request, limit_headers(left))


def open_stream(user: UserContext, services: Services) -> OpenStream:
    """Reserve one of the streams that the caller may have open at a time. Raises `TooManyRequestsError` if
    all are in use.
    """
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
    """Record an action of the caller in the audit trail. Never raises.

    Args:
        may_repeat: whether identical actions within ten minutes share one entry.
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
    """Record in the audit trail which documents a list showed to the caller. Never raises."""
    doc_ids = [document.doc_id for document in page.documents]
    await note_act(request, user, services, "list", *doc_ids, may_repeat=True)


async def _note_refusal(request: Request, user: UserContext, target: str) -> None:
    """Record in the audit trail that the caller was denied access. `target` is the method and route of the
    request.
    """
    path = {name: str(value)[:_MAX_ID_CHARS] for name, value in request.path_params.items()}
    doc_ids = [path["doc_id"]] if "doc_id" in path else []
    run_id = path.get("run_id") or path.get("summary_id") or ""
    services = wiring.get_services()
    await note_act(
        request, user, services, "refused", *doc_ids, run_id=run_id, subject=target, may_repeat=True
    )


def client_address(request: Request) -> str:
    """Return the IP address of the client. In Azure, this is the last X-Forwarded-For entry, because App
    Service appends it and clients can forge all others.
    """
    if wiring.get_services().settings.host.in_azure:
        forwarded: str = request.headers.get("x-forwarded-for", "")
        return forwarded.rpartition(",")[2].strip()[:64]
    return str(request.client.host) if request.client else ""
