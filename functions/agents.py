"""The route GET /api/agents, which lists the agents that the caller may use."""

from fastapi import APIRouter, Request, Response

from functions.http.api_route import ApiRoute
from functions.http.contracts import contract, json_reply
from functions.http.requests import caller_of
from functions.http.responses import json_response
from shared.answering.agent_files import list_agents
from shared.platform.settings import get_settings
from shared.runs.agents import AgentList

router = APIRouter(tags=["Questions"], route_class=ApiRoute)


@router.get(
    "/api/agents",
    **contract(
        "Agents available to the caller",
        json_reply(200, "The agents, by name.", AgentList),
    ),
)
async def get_agents(req: Request) -> Response:
    """List the agents that the caller may use, each with its name, description and tools. Instructions and
    access lists are omitted.
    """
    return json_response(list_agents(await caller_of(req), get_settings()))
