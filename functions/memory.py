"""Routes of the memory feature: list the caller's memories, enable or disable memory, and delete all
memories.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.models import ListQuery
from functions.http.requests import Caller, Ready
from functions.http.responses import json_response
from shared.conversations import models as conversations
from shared.conversations.memory import forget_all, list_memories, switch_memory
from shared.conversations.models import MemorySwitch
from shared.platform.concurrency import run_together

router = APIRouter(tags=["Memory"], route_class=ApiRoute)


@router.get(
    "/api/memory",
    **contract(
        "The caller's memories",
        json_reply(200, "A page of memories, newest first.", conversations.MemoryList),
    ),
)
async def get_memory(page: Annotated[ListQuery, Query()], user: Caller, services: Ready) -> Response:
    """List the caller's memories, newest first, and whether memory is enabled."""
    memories, is_on = await run_together(
        list_memories(user, services, page.limit, page.cursor or None),
        services.threads.is_memory_on(user.user_id),
    )
    return json_response(memories.model_copy(update={"is_on": is_on}))


@router.put(
    "/api/memory",
    **contract(
        "Enable or disable memory",
        json_reply(200, "The new setting.", conversations.MemorySwitch),
    ),
)
async def put_memory(body: MemorySwitch, user: Caller, services: Ready) -> Response:
    """Enable or disable memory for the caller."""
    return json_response(await switch_memory(body, user, services.threads))


@router.delete(
    "/api/memory",
    **contract(
        "Delete all of the caller's memories",
        json_reply(200, "Number of deleted memories.", conversations.MemoriesDeleted),
    ),
)
async def delete_memory(user: Caller, services: Ready) -> Response:
    """Delete all memories of the caller."""
    return json_response(await forget_all(user, services.memory_index, services.threads))
