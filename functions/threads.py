"""Threads over HTTP: begin, list, rename, read, clear, delete. Each is its owner's alone."""

import uuid
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from functions.http import models as http
from functions.http.application import ObservedRoute
from functions.http.conditions import etag_of, require_match
from functions.http.contracts import Reply, contract, json_reply
from functions.http.requests import (
    admitted,
    caller_and_services,
    caller_of,
    claimed_key,
    ready_services,
    say_replayed,
)
from functions.http.responses import json_response, read_model, read_query, tagged_response
from shared.conversations import models as conversations
from shared.platform.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.conversations.models import ThreadView

router = APIRouter(tags=["Threads"], route_class=ObservedRoute)


@router.post(
    "/api/threads",
    **contract(
        "Begin a thread, or a branch of one",
        json_reply(201, "The thread.", conversations.ThreadView, "Location"),
        errors=(NotFoundError, ConflictError),
        body=conversations.NewThread,
        headers=http.KeyHeaders,
        costs=True,
    ),
)
async def create_thread(req: Request) -> Response:
    """Begin a thread, or a branch of one."""
    from shared.access.idempotency import finish
    from shared.conversations.branches import branch_thread
    from shared.conversations.models import NewThread
    from shared.conversations.threads import new_thread, owned_thread, view_of

    user, services = await caller_and_services(req)
    body = await read_model(req, NewThread)
    claimed = await claimed_key(req, body, user, services.idempotency, resource_id=uuid.uuid4().hex)
    await admitted(req, user, services)
    if claimed and claimed.is_repeat and claimed.claim.is_done:
        thread = view_of(await owned_thread(claimed.resource_id, user, services.threads))
        say_replayed(req)
    else:
        thread_id = claimed.resource_id if claimed else uuid.uuid4().hex
        if body.branch:
            thread = await branch_thread(body.branch, body.title, user, services, thread_id)
        else:
            thread = await new_thread(body.title, user, services.threads, thread_id)
        await finish(claimed, services.idempotency)
    return json_response(thread, 201, {"Location": f"/api/threads/{thread.thread_id}"})


@router.get(
    "/api/threads",
    **contract(
        "The caller's threads, the one that was last asked in first",
        json_reply(200, "A page of threads.", conversations.ThreadList),
        query=http.ThreadsQuery,
    ),
)
async def get_threads(req: Request) -> Response:
    """The caller's threads, a page at a time."""
    from functions.http.models import ThreadsQuery
    from shared.conversations.threads import find_threads, list_threads, with_active_runs

    user = await caller_of(req)
    page = read_query(req, ThreadsQuery)
    services = await ready_services()
    if page.q:
        return json_response(await find_threads(page.q, user, services.threads, page.limit))
    found = await list_threads(user, services.threads, page.limit, page.cursor or None)
    return json_response(await with_active_runs(found, user, services.threads, services.runs))


@router.get(
    "/api/threads/{thread_id}",
    **contract(
        "One thread, without its turns",
        json_reply(200, "The thread.", conversations.ThreadView, "ETag"),
        headers=http.CachedHeaders,
    ),
)
async def get_thread(req: Request) -> Response:
    """One thread, without its turns."""
    from shared.conversations.threads import owned_thread, view_of

    user = await caller_of(req)
    return tagged_response(
        req, view_of(await owned_thread(_id_of(req), user, (await ready_services()).threads))
    )


@router.patch(
    "/api/threads/{thread_id}",
    **contract(
        "Rename a thread",
        json_reply(200, "The thread.", conversations.ThreadView, "ETag"),
        errors=(ConflictError,),
        body=conversations.ThreadRename,
        headers=http.IfMatchHeaders,
    ),
)
async def patch_thread(req: Request) -> Response:
    """Rename a thread."""
    from shared.conversations.models import ThreadRename
    from shared.conversations.threads import rename_thread

    user = await caller_of(req)
    body = await read_model(req, ThreadRename)
    renamed = await rename_thread(
        _id_of(req), body.title, user, (await ready_services()).threads, _match(req)
    )
    return tagged_response(req, renamed)


@router.delete(
    "/api/threads/{thread_id}",
    **contract(
        "Delete a thread and everything made of it",
        Reply(204, "It is deleted."),
        errors=(ConflictError,),
        headers=http.IfMatchHeaders,
    ),
)
async def delete_thread(req: Request) -> Response:
    """Delete a thread and everything made of it."""
    from shared.conversations.threads import delete_thread as deleted

    user = await caller_of(req)
    await deleted(_id_of(req), user, await ready_services(), _match(req))
    return Response(status_code=204)


@router.post(
    "/api/threads/{thread_id}/clear",
    **contract(
        "Delete the turns of a thread, and keep the thread",
        json_reply(200, "The empty thread.", conversations.ThreadView),
        errors=(ConflictError,),
    ),
)
async def clear_thread(req: Request) -> Response:
    """Delete the turns of a thread, and keep the thread."""
    from shared.conversations.threads import clear_thread as cleared

    user = await caller_of(req)
    return json_response(await cleared(_id_of(req), user, await ready_services()))


@router.get(
    "/api/threads/{thread_id}/messages",
    **contract(
        "Questions and answers of a thread, a page at a time from the newest",
        json_reply(200, "A page of turns, oldest first.", conversations.MessageList),
        query=http.MessagesQuery,
    ),
)
async def get_thread_messages(req: Request) -> Response:
    """The turns of a thread with their answers, a page at a time from the newest."""
    from functions.http.models import MessagesQuery
    from shared.conversations.threads import read_messages

    user = await caller_of(req)
    page = read_query(req, MessagesQuery)
    before = int(page.cursor) if page.cursor else None
    return json_response(await read_messages(_id_of(req), user, await ready_services(), page.limit, before))


def _match(request: Request) -> "Callable[[ThreadView], None]":
    """Refuses a thread that is not as the caller says (If-Match)."""
    return lambda view: require_match(request.headers, etag_of(view))


def _id_of(request: Request) -> str:
    return str(request.path_params["thread_id"])
