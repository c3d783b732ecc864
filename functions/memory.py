"""Memory over HTTP: what is remembered of the caller's questions, and how to have it forgotten."""

import azure.functions as func

from functions.http.requests import caller_and_services
from functions.http.responses import Request, Response, json_response, read_model, read_query, route

blueprint = func.Blueprint()


@route(blueprint, "GET", "memory", has_query=True)
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


@route(blueprint, "PUT", "memory")
async def put_memory(req: Request) -> Response:
    """Switch remembering on or off."""
    from shared.conversations.memory import switch_memory
    from shared.conversations.models import MemorySwitch

    user, services = await caller_and_services(req)
    return json_response(await switch_memory(await read_model(req, MemorySwitch), user, services.threads))


@route(blueprint, "DELETE", "memory")
async def delete_memory(req: Request) -> Response:
    """Forget everything that is remembered of the caller."""
    from shared.conversations.memory import forget_all

    user, services = await caller_and_services(req)
    return json_response(await forget_all(user, services.memory_index, services.threads))
