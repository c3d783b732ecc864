"""Routes for threads: create, list, rename, read, clear and delete. Users can access only their own
threads.
"""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from functions.http.api_route import ApiRoute
from functions.http.conditions import etag_of, require_match
from functions.http.contracts import Reply, contract, json_reply
from functions.http.idempotency import Key, idempotent, new_id
from functions.http.models import CachedHeaders, IfMatchHeaders, KeyHeaders, ListQuery, Page
from functions.http.requests import Caller, Durable, Ready, count_call
from functions.http.responses import json_response, tagged_response
from functions.ingest import start_ingestions
from shared.access.idempotency import KeyClaim, finish
from shared.conversations import models as conversations
from shared.conversations import threads
from shared.conversations.branches import branch_thread
from shared.conversations.messages import read_messages
from shared.conversations.models import NewThread, ThreadRename, ThreadView
from shared.conversations.thread_search import find_threads
from shared.conversations.threads import list_threads, new_thread, owned_thread, rename_thread, view_of
from shared.platform.errors import ConflictError, NotFoundError
from shared.platform.models import Model


class ThreadsQuery(ListQuery):
    """Query parameters of GET /api/threads."""

    q: str = Field(
        default="",
        max_length=200,
        description="Words that titles or questions must contain. All matches are on a single page.",
    )


class MessagesQuery(Model):
    """Query parameters of GET /api/threads/{thread_id}/messages."""

    limit: Page = Field(default=20, description="Maximum number of turns per page.")
    cursor: str = Field(
        default="",
        pattern=r"^([1-9][0-9]{0,7})?$",
        description="The value of `cursor` in the previous page, unchanged.",
    )


ThreadId = Annotated[
    str, Path(min_length=1, description="Thread id, as returned by POST /threads or as part of a run.")
]

router = APIRouter(tags=["Threads"], route_class=ApiRoute)


@router.post(
    "/api/threads",
    **contract(
        "Create a thread, or a branch of an existing one",
        json_reply(201, "The thread.", conversations.ThreadView, "Location"),
        errors=(NotFoundError, ConflictError),
        headers=KeyHeaders,
        costs=True,
    ),
)
async def create_thread(req: Request, body: NewThread, user: Caller, services: Ready) -> Response:
    """Create an empty thread, or a branch of an existing thread."""
    key = Key(req, body, user, services, resource_id=new_id(user, services))

    async def find(claimed: KeyClaim) -> ThreadView | None:
        if not claimed.claim.is_done:
            return None  # the earlier request did not finish, so `make` runs again and completes the thread
        return view_of(await owned_thread(claimed.resource_id, user, services.threads))

    async def make(claimed: KeyClaim | None, _: ThreadView | None) -> ThreadView:
        await count_call(req, user, services)
        thread_id = claimed.resource_id if claimed else key.resource_id
        if body.branch:
            thread = await branch_thread(body.branch, body.title, user, services, thread_id)
        else:
            thread = await new_thread(body.title, user, services.threads, thread_id)
        await finish(claimed, services.idempotency)
        return thread

    thread = await idempotent(key, make, find)
    return json_response(thread, 201, {"Location": f"/api/threads/{thread.thread_id}"})


@router.get(
    "/api/threads",
    **contract(
        "The caller's threads, most recently used first",
        json_reply(200, "A page of threads.", conversations.ThreadList),
    ),
)
async def get_threads(page: Annotated[ThreadsQuery, Query()], user: Caller, services: Ready) -> Response:
    """List the caller's threads, most recently used first, or search them if `q` is set."""
    if page.q:
        return json_response(await find_threads(page.q, user, services.threads, page.limit))
    return json_response(await list_threads(user, services.threads, page.limit, page.cursor or None))


@router.get(
    "/api/threads/{thread_id}",
    **contract(
        "A thread, without its turns",
        json_reply(200, "The thread.", conversations.ThreadView, "ETag"),
        headers=CachedHeaders,
    ),
)
async def get_thread(req: Request, thread_id: ThreadId, user: Caller, services: Ready) -> Response:
    """Return the title and other properties of a thread, without its turns."""
    return tagged_response(req, view_of(await owned_thread(thread_id, user, services.threads)))


@router.patch(
    "/api/threads/{thread_id}",
    **contract(
        "Rename a thread",
        json_reply(200, "The thread.", conversations.ThreadView, "ETag"),
        errors=(ConflictError,),
        headers=IfMatchHeaders,
    ),
)
async def patch_thread(
    req: Request, thread_id: ThreadId, body: ThreadRename, user: Caller, services: Ready
) -> Response:
    """Change the title of a thread."""
    renamed = await rename_thread(thread_id, body.title, user, services.threads, _match(req))
    return tagged_response(req, renamed)


@router.delete(
    "/api/threads/{thread_id}",
    **contract(
        "Delete a thread and all data derived from it",
        Reply(204, "The thread has been deleted."),
        errors=(ConflictError,),
        headers=IfMatchHeaders,
    ),
)
async def delete_thread(
    req: Request, thread_id: ThreadId, user: Caller, services: Ready, client: Durable
) -> Response:
    """Delete a thread with its turns, its files and all data derived from them."""
    await threads.delete_thread(thread_id, user, services, _match(req))
    await start_ingestions(client, services)  # the ingestions delete all data derived from the thread's files
    return Response(status_code=204)


@router.post(
    "/api/threads/{thread_id}/clear",
    **contract(
        "Delete the turns and files of a thread, but not the thread",
        json_reply(200, "The empty thread.", conversations.ThreadView),
        errors=(ConflictError,),
    ),
)
async def clear_thread(thread_id: ThreadId, user: Caller, services: Ready, client: Durable) -> Response:
    """Delete the turns and files of a thread, and return the empty thread."""
    view = await threads.clear_thread(thread_id, user, services)
    await start_ingestions(client, services)
    return json_response(view)


@router.get(
    "/api/threads/{thread_id}/messages",
    **contract(
        "Questions and answers of a thread, newest page first",
        json_reply(200, "A page of turns, oldest first.", conversations.MessageList),
    ),
)
async def get_thread_messages(
    thread_id: ThreadId, page: Annotated[MessagesQuery, Query()], user: Caller, services: Ready
) -> Response:
    """Return the turns of a thread with their answers. The first page has the latest turns; within a page,
    turns are in chronological order.
    """
    before = int(page.cursor) if page.cursor else None
    return json_response(await read_messages(thread_id, user, services, page.limit, before))


def _match(request: Request) -> Callable[[ThreadView], None]:
    """Return a function that raises `PreconditionFailedError` if the If-Match header of the request doesn't
    match a thread's ETag.
    """
    return lambda view: require_match(request.headers, etag_of(view))


def _id_of(request: Request) -> str:
    return str(request.path_params["thread_id"])
