"""Summaries over HTTP: create, list, read, cancel, delete. Only the owner sees them."""

import asyncio
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import azure.durable_functions as df
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.contracts import Reply, contract, json_reply
from functions.http.idempotency import Key, idempotent, new_id
from functions.http.models import KeyHeaders, ListQuery
from functions.http.requests import (
    Caller,
    Durable,
    Ready,
    admitted,
    note_act,
)
from functions.http.responses import json_response
from shared.access.idempotency import Claimed, beginning
from shared.access.limits import release, slot_of_summary
from shared.access.models import UserContext
from shared.answering.revival import revive_instance
from shared.platform.blobs import BlobStore
from shared.platform.errors import ConflictError, GroundworkError, NotFoundError, status_of
from shared.platform.instances import Instances
from shared.platform.telemetry import get_logger
from shared.platform.tracing import link_to
from shared.summaries import own_list, summaries
from shared.summaries.models import SummaryList, SummaryOrder, SummaryRequest, SummaryView
from shared.summaries.summaries import (
    Forget,
    begin_summary,
    close_dead_summary,
    forget_instances,
    has_ended,
    owned_summary,
    renew_summary,
    start_of,
    view_summary,
)
from shared.wiring import Services


class SummaryHeaders(KeyHeaders):
    """Headers of a request for a summary."""

    prefer: str = Field(
        default="", alias="Prefer", description="`wait=60` waits up to 60 seconds for the result."
    )


SummaryId = Annotated[str, Path(min_length=1, description="Summary id, from POST /summaries.")]

router = APIRouter(tags=["Summaries"], route_class=ApiRoute)


async def own_summary(summary_id: SummaryId, user: Caller, services: Ready) -> SummaryRequest:
    """Return the summary of the path. Raises `NotFoundError` also for summaries of other users."""
    return await owned_summary(summary_id, user, services.blobs)


OwnSummary = Annotated[SummaryRequest, Depends(own_summary)]

_POLL_S = 0.3
_WAIT = re.compile(r"(?:^|[,\s])wait=([0-9]{1,4})(?:$|[,;\s])")


@dataclass(frozen=True)
class _Order:
    """A request for a summary, with its user and services."""

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
    """Start a summary. `Prefer: wait=60` waits up to 60 seconds for the result."""
    wait = _WAIT.search(req.headers.get("prefer", ""))
    summary = await _begin(_Order(req, order, user, services, client))
    if wait:
        await _wait(summary, services.blobs, min(int(wait[1]), services.settings.host.stream_seconds))
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
    """List the caller's summaries, one page at a time."""
    return json_response(await own_list.list_summaries(user, services.blobs, page.limit, page.cursor))


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
    view = await view_summary(summary, services, user)
    if view.status == "running":
        with suppress(Exception):  # the client raises no specific error; the state is then unknown
            if await revive_instance(summary.summary_id, Instances(client), services.runs) == "closed":
                # Marks a dead summary as failed; has no effect if it ended between the two reads.
                await close_dead_summary(summary, services)
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
    """Cancel a summary; idempotent."""
    await summaries.cancel_summary(summary, services)
    await forget_instances(summary, _stopper(client))
    view = await view_summary(summary, services, user)
    await _note_read(req, user, services, view)
    return json_response(view)


@router.delete(
    "/api/summaries/{summary_id}",
    **contract(
        "Delete a summary and all data derived from it",
        Reply(204, "It is gone."),
    ),
)
async def delete_summary(summary: OwnSummary, services: Ready, client: Durable) -> Response:
    """Delete a summary and all data derived from it."""
    await summaries.delete_summary(
        summary, services.settings, services.blobs, services.user_limits, forgetter(client)
    )
    return Response(status_code=204)


async def _note_read(req: Request, user: UserContext, services: Services, view: SummaryView) -> None:
    """Record in the audit trail which documents a summary showed its reader."""
    if view.result is not None:
        shown = dict.fromkeys(cited.doc_id for cited in view.result.citations)
        await note_act(req, user, services, "summary", *shown, run_id=view.summary_id)


def forgetter(client: df.DurableOrchestrationClient) -> Forget:
    """Return a function that terminates an orchestration and purges its history."""
    stop = _stopper(client)

    async def forget(instance_id: str) -> None:
        await stop(instance_id)
        try:
            await client.purge_instance_history(instance_id)
        except Exception:  # noqa: BLE001  # the client raises no specific error; the history contains only ids
            get_logger().warning("summary.purge_failed", run_id=instance_id)

    return forget


def _stopper(client: df.DurableOrchestrationClient) -> Forget:
    async def stop(instance_id: str) -> None:
        try:
            await Instances(client).stop(instance_id, "cancelled or deleted by its owner")
        except Exception:  # noqa: BLE001  # it has ended or will: steps of a closed summary do nothing
            get_logger().warning("summary.terminate_failed", run_id=instance_id)

    return stop


async def _begin(wanted: _Order) -> SummaryRequest:
    """Create a summary, or return the summary of an earlier request with the same key.

    Raises:
        NotFoundError: the earlier summary has been deleted.
    """
    services = wanted.services
    key = Key(wanted.request, wanted.order, wanted.user, services, resource_id=new_id(wanted.user, services))

    async def find(claimed: Claimed) -> SummaryRequest | None:
        try:
            return await owned_summary(claimed.resource_id, wanted.user, services.blobs)
        except NotFoundError:
            return None

    async def make(claimed: Claimed | None, known: SummaryRequest | None) -> SummaryRequest:
        summary_id = claimed.resource_id if claimed else key.resource_id
        request = await _renewed(known, wanted) if known else await _store(summary_id, wanted)
        async with beginning(claimed, services.idempotency):  # closes a summary that cannot be started
            await _start(wanted.client, request, services)
        return request

    return await idempotent(key, make, find)


async def _renewed(known: SummaryRequest, wanted: _Order) -> SummaryRequest:
    """Reset the creation time of a stored request, unless its orchestration has been started."""
    is_started = True
    with suppress(Exception):  # the client raises no specific error; the request then stays unchanged
        is_started = await Instances(wanted.client).state(known.summary_id) is not None
    if is_started or await has_ended(known.summary_id, wanted.services.blobs):
        return known
    return await renew_summary(known, wanted.user, wanted.services)


async def _store(summary_id: str, wanted: _Order) -> SummaryRequest:
    user, services, order = wanted.user, wanted.services, wanted.order
    slot = slot_of_summary(summary_id, services.settings)
    # Each document costs at least as much as a question.
    await admitted(wanted.request, user, services, calls=len(set(order.doc_ids)), slot=slot)
    try:
        return await begin_summary(order, user, services, summary_id)
    except GroundworkError:
        await release(user.user_id, summary_id, services.settings, services.user_limits)
        raise


async def _start(client: df.DurableOrchestrationClient, request: SummaryRequest, services: Services) -> None:
    """Start the orchestration, unless a request under the same key has started it."""
    if await has_ended(request.summary_id, services.blobs):
        # It may have ended before this request acquired its slot.
        await release(request.user.user_id, request.summary_id, services.settings, services.user_limits)
        return
    start = {**start_of(request, services.settings).model_dump(mode="json"), **link_to(request.summary_id)}
    try:
        await Instances(client).start("summarize_documents", request.summary_id, start)
    except Exception:
        # The client raises no specific error. The stored request must not appear to be running forever.
        await close_dead_summary(request, services)
        raise


async def _wait(request: SummaryRequest, blobs: BlobStore, wait_s: float) -> None:
    for _ in range(math.ceil(wait_s / _POLL_S)):
        if await has_ended(request.summary_id, blobs):
            return
        await asyncio.sleep(_POLL_S)


def _status_of(view: SummaryView) -> int:
    if view.status == "running":
        return 202
    return 200 if view.status == "completed" else status_of(view.error_type)
