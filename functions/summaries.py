"""Routes for summaries: create, list, read, cancel and delete. Users can access only their own summaries."""

import asyncio
import math
import re
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Annotated

import azure.durable_functions as df
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import Reply, contract, json_reply
from functions.http.event_stream import closer, stop_run
from functions.http.idempotency import Key, idempotent
from functions.http.models import KeyHeaders, ListQuery
from functions.http.requests import (
    Caller,
    Durable,
    Ready,
    client_address,
    count_call,
    note_act,
    open_stream,
)
from functions.http.responses import json_response
from shared.access.idempotency import KeyClaim, complete_key
from shared.access.limits import release, slot_of_summary
from shared.access.models import UserContext
from shared.answering import summary_runs
from shared.answering.run_end import cancel_run
from shared.answering.runs import close_dead_run
from shared.answering.summary_models import SummaryList, SummaryView
from shared.answering.summary_runs import begin_summary, new_summary_id, renew_summary, view_summary
from shared.erasure.threads import delete_run
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError, status_of
from shared.platform.instances import Instances
from shared.platform.tracing import link_to
from shared.runs.journal import current_record
from shared.runs.models import RunRecord, SummaryOrder
from shared.runs.run_store import RunStore, owned_run
from shared.wiring import Services


class SummaryHeaders(KeyHeaders):
    """Request headers of POST /api/summaries."""

    prefer: str = Field(
        default="",
        alias="Prefer",
        description="`wait=60` delays the reply by up to 60 seconds, until the summary is complete.",
    )


SummaryId = Annotated[str, Path(min_length=1, description="Summary id, as returned by POST /summaries.")]

router = APIRouter(tags=["Summaries"], route_class=ApiRoute)


async def own_summary(summary_id: SummaryId, user: Caller, services: Ready) -> RunRecord:
    """Return the current record of the summary in the path. Raises `NotFoundError` if it doesn't exist or
    belongs to another user.
    """
    record = await owned_run(summary_id, user, services.runs, "document_summary")
    return await current_record(record, services.run_log)


OwnSummary = Annotated[RunRecord, Depends(own_summary)]

_POLL_S = 0.3
_WAIT = re.compile(r"(?:^|[,\s])wait=([0-9]{1,4})(?:$|[,;\s])")


@dataclass(frozen=True)
class _SummaryRequest:
    """A request for a summary, together with the user and the services that process it."""

    request: Request
    order: SummaryOrder
    user: UserContext
    services: Services
    client: df.DurableOrchestrationClient


@router.post(
    "/api/summaries",
    **contract(
        "Start a summary of 1-20 documents",
        json_reply(200, "The summary with its result.", SummaryView, "Location"),
        json_reply(202, "The summary is in progress.", SummaryView, "Location"),
        errors=(NotFoundError,),
        headers=SummaryHeaders,
        ends_as=SummaryView,
        costs=True,
    ),
)
async def create_summary(
    req: Request, order: SummaryOrder, user: Caller, services: Ready, client: Durable
) -> Response:
    """Start a summary of one or more documents. With `Prefer: wait=60`, wait up to 60 seconds for its
    result.
    """
    wait = _WAIT.search(req.headers.get("prefer", ""))
    # Reserve the connection first, so that a summary whose result the caller wants to wait for is refused
    # before it starts.
    with closing(open_stream(user, services)) if wait else nullcontext():
        summary = await _begin(_SummaryRequest(req, order, user, services, client))
        if wait:
            await _wait(summary, services.runs, min(int(wait[1]), services.settings.host.stream_seconds))
    view = await view_summary(summary, services, user)
    await _note_read(req, user, services, view)
    return json_response(view, _status_of(view), {"Location": view.status_url})


@router.get(
    "/api/summaries",
    **contract(
        "The caller's summaries, newest first",
        json_reply(200, "A page of summaries.", SummaryList),
    ),
)
async def list_summaries(page: Annotated[ListQuery, Query()], user: Caller, services: Ready) -> Response:
    """List the caller's summaries, newest first, one page at a time."""
    return json_response(await summary_runs.list_summaries(user, services, page.limit, page.cursor))


@router.get(
    "/api/summaries/{summary_id}",
    **contract(
        "Progress and result of a summary",
        json_reply(200, "The summary in its current state.", SummaryView),
    ),
)
async def get_summary(
    req: Request, summary: OwnSummary, user: Caller, services: Ready, client: Durable
) -> Response:
    """Return the progress of a summary, and its result once it is complete."""
    if summary.finished_at is None:
        await closer(client, summary.run_id, services)()
    view = await view_summary(summary, services, user)
    await _note_read(req, user, services, view)
    return json_response(view)


@router.post(
    "/api/summaries/{summary_id}/cancel",
    **contract(
        "Cancel a summary",
        json_reply(200, "The cancelled summary.", SummaryView),
        errors=(ConflictError,),
    ),
)
async def cancel_summary(
    req: Request, summary: OwnSummary, user: Caller, services: Ready, client: Durable
) -> Response:
    """Cancel a summary that is in progress. Cancelling it again has no effect."""
    summary = await cancel_run(summary.run_id, services)
    await stop_run(client, summary.run_id, services)
    view = await view_summary(summary, services, user)
    await _note_read(req, user, services, view)
    return json_response(view)


@router.delete(
    "/api/summaries/{summary_id}",
    **contract(
        "Delete a summary and all data derived from it",
        Reply(204, "The summary has been deleted."),
    ),
)
async def delete_summary(summary: OwnSummary, services: Ready, client: Durable) -> Response:
    """Delete a summary and all data derived from it."""
    await delete_run(summary.run_id, services, Instances(client).forget)
    return Response(status_code=204)


async def _note_read(req: Request, user: UserContext, services: Services, view: SummaryView) -> None:
    """Record in the audit trail which documents a summary cites. Does nothing if the reader was shown no
    result.
    """
    if view.result is not None:
        doc_ids = dict.fromkeys(cited.doc_id for cited in view.result.citations)
        await note_act(req, user, services, "summary", *doc_ids, run_id=view.summary_id)


async def _begin(summary_request: _SummaryRequest) -> RunRecord:
    """Start a summary, or return the summary that an earlier request with the same key has started.

    Raises:
        NotFoundError: the earlier summary has been deleted.
    """
    services = summary_request.services
    summary_id = new_summary_id(summary_request.user, services)
    key = Key(
        summary_request.request, summary_request.order, summary_request.user, services, resource_id=summary_id
    )

    async def find(claimed: KeyClaim) -> RunRecord | None:
        return await services.runs.get(claimed.resource_id)

    async def make(claimed: KeyClaim | None, existing: RunRecord | None) -> RunRecord:
        if existing is None:
            record = await _store(claimed.resource_id if claimed else summary_id, summary_request)
        else:
            record = await current_record(existing, services.run_log)
        # The context manager closes the summary if it can't be started.
        async with complete_key(claimed, services.idempotency):
            await _start(record, summary_request, is_known=existing is not None)
        return record

    return await idempotent(key, make, find)


async def _store(summary_id: str, summary_request: _SummaryRequest) -> RunRecord:
    user, services, order = summary_request.user, summary_request.services, summary_request.order
    slot = slot_of_summary(summary_id, services.settings)
    # Each document counts as one call, because summarising it costs at least as much as a question.
    await count_call(summary_request.request, user, services, calls=len(set(order.doc_ids)), slot=slot)
    try:
        return await begin_summary(order, user, services, summary_id, client_address(summary_request.request))
    except GroundworkError:
        await release(user.user_id, summary_id, services.settings, services.user_limits)
        raise


async def _start(record: RunRecord, summary_request: _SummaryRequest, *, is_known: bool) -> None:
    """Start the orchestration of a summary unless it is already running. If the summary has ended, only
    release its slot.
    """
    run_id, user, services = record.run_id, summary_request.user, summary_request.services
    instances = Instances(summary_request.client)
    if record.finished_at is not None:
        # The summary may have ended before this request acquired the slot, so nothing else would release it.
        await release(user.user_id, run_id, services.settings, services.user_limits)
        return
    if is_known and not await _is_started(run_id, instances):
        await renew_summary(record, user, services)
    try:
        await instances.start("document_summary", run_id, {"run_id": run_id, **link_to(run_id)})
    except Exception:
        # Close the stored summary, which would otherwise seem to run forever. The client raises no specific
        # error.
        await close_dead_run(run_id, "The summary could not be started.", services)
        raise


async def _is_started(run_id: str, instances: Instances) -> bool:
    """Return whether the orchestration of a summary was started. Return True if its status can't be read."""
    try:
        return await instances.state(run_id) is not None
    except Exception:  # noqa: BLE001  # the client raises no specific error
        return True


async def _wait(summary: RunRecord, runs: RunStore, wait_s: float) -> None:
    for _ in range(math.ceil(wait_s / _POLL_S)):
        record = await runs.get(summary.run_id)
        if record is None or record.finished_at is not None:
            return
        await asyncio.sleep(_POLL_S)


def _status_of(view: SummaryView) -> int:
    if view.status == "running":
        return 202
    return 200 if view.status == "completed" else status_of(view.error_type)
