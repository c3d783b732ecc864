"""GET /api/agents: the agents that the caller may ask."""

import azure.functions as func

from functions.http.requests import caller_of
from functions.http.responses import Request, Response, json_response, route
from shared.platform.settings import get_settings

blueprint = func.Blueprint()


@route(blueprint, "GET", "agents")
async def get_agents(req: Request) -> Response:
    """Name, description, tools and proof of each, never its instructions or who else may ask it."""
    from shared.answering.agent_files import list_agents

    return json_response(list_agents(await caller_of(req), get_settings()))
