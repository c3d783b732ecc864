"""An agent with a tool that weighs things, run with the real SDK, and the requests that the model endpoint
received.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from shared.access.models import UserContext
from shared.answering.agent import Agent
from shared.platform.errors import DocumentNotFoundError
from shared.runs.events import RunEvent
from shared.tools.base import Parameters, Tool, ToolResult
from tests.contract.clients.scripted_server import ScriptedServer

ANNA = UserContext(user_id="anna")

MakeAgent = Callable[..., Agent]


class WeighParameters(Parameters):
    thing: str
    delay_s: float = 0.0


class Weigh(Tool):
    """A tool that can be slow, return an error, or raise an exception."""

    name = "weigh"
    description = "Weigh a thing."
    parameters = WeighParameters

    def __init__(self) -> None:
        self.weighed: list[str] = []
        self.most_at_once = 0
        self._at_once = 0

    async def _run(self, arguments: WeighParameters) -> ToolResult:
        if arguments.thing == "nothing":
            raise DocumentNotFoundError("There is no such thing.", "Weigh another one.")
        if arguments.thing == "bug":
            raise KeyError("what the tool read")
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(arguments.delay_s)
        self._at_once -= 1
        self.weighed.append(arguments.thing)
        return {"kilograms": 12, "text": "x" * (50_000 if arguments.thing == "book" else 1)}


async def collect_events(
    agent: Agent, question: str = "How heavy?", session: str | None = None
) -> list[RunEvent]:
    return [event async for event in agent.execute(question, session)]


def names(events: list[RunEvent]) -> list[str]:
    return [event.name for event in events]


def request_bodies(server: ScriptedServer) -> list[dict[str, Any]]:
    """Return the request bodies that the endpoint received."""
    return [json.loads(body) for body in server.bodies]


def results(server: ScriptedServer) -> list[dict[str, Any]]:
    """Return the tool results in the last request."""
    return [
        json.loads(message["content"])
        for message in request_bodies(server)[-1]["messages"]
        if message["role"] == "tool"
    ]
