"""Memory over HTTP: what is remembered of the caller's questions, and how to have it forgotten."""

from fastapi import APIRouter, Request, Response

from functions.http import models as http
from functions.http.application import ObservedRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import caller_and_services
from functions.http.responses import json_response, read_model, read_query
from shared.conversations import models as conversations

router = APIRouter(tags=["Memory"], route_class=ObservedRoute)


@router.get(
    "/api/memory",
    **contract(
        "What is remembered of the caller's questions",
        json_reply(200, "A page of memories, newest first.", conversations.MemoryList),
        query=http.ListQuery,
    ),
)
async def get_memory(req: Request) -> Response:
    """The caller's memories, newest first."""
    from functions.http.models import ListQuery
    from shared.conversations.memory import list_memories
    from shared.platform.concurrency import run_together

    user, services = await caller_and_services(req)
    page = read_query(req, ListQuery)
    found, is_on = await run_together(
        list_memories(user, services.documents_index, services.memory_index, page.limit, page.cursor or None),
        services.threads.is_memory_on(user.user_id),
    )
    return json_response(found.model_copy(update={"is_on": is_on}))


@router.put(
    "/api/memory",
    **contract(
        "Switch remembering on or off",
        json_reply(200, "As it is now.", conversations.MemorySwitch),
        body=conversations.MemorySwitch,
    ),
)
async def put_memory(req: Request) -> Response:
    """Switch remembering on or off."""
    from shared.conversations.memory import switch_memory
    from shared.conversations.models import MemorySwitch

    user, services = await caller_and_services(req)
    return json_response(await switch_memory(await read_model(req, MemorySwitch), user, services.threads))


@router.delete(
    "/api/memory",
    **contract(
        "Forget all of it",
        json_reply(200, "How many there were.", conversations.MemoriesDeleted),
    ),
)
async def delete_memory(req: Request) -> Response:
    """Forget everything that is remembered of the caller."""
    from shared.conversations.memory import forget_all

    user, services = await caller_and_services(req)
    return json_response(await forget_all(user, services.memory_index, services.threads))
